/* Runs the layers of a network by XNNPACK so many times, on one thread and on
 * zeros, and does nothing else, as graph_runs does for our graphs: what more
 * runs take than fewer is what a run takes (scripts/arm_xnnpack).
 *
 *   xnnpack_runs mobilenet_v1|resnet50_v1 float|int8 RUNS
 *
 * The networks are those of full_size_models.cc at 224 pixels, one operator for
 * each convolution, product and sum of branches; pooling and softmax are not
 * among them. 8 bits have signed weights with a scale for each channel. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xnnpack.h>

enum { kMostLayers = 128, kMostOperators = 160 };
enum { kMostValues = 8 << 20, kMostWeights = 64 << 20, kMostChannels = 4096 };

typedef struct {
  int side, inputs, outputs, window, stride, is_depthwise;
} Convolution;
typedef struct {
  int side, channels;
} BranchSum;

static Convolution convolutions[kMostLayers];
static int convolution_count;
static BranchSum sums[kMostLayers];
static int sum_count;
static xnn_operator_t operators[kMostOperators];
static int operator_count;
static float *first, *second, *scales;
static char* weights;

static void Require(enum xnn_status status, const char* what) {
  if (status == xnn_status_success) return;
  fprintf(stderr, "xnnpack_runs: XNNPACK cannot %s: status %d\n", what, status);
  exit(1);
}

static void* Zeros(size_t bytes) {
  void* zeros = calloc(1, bytes);
  if (zeros != NULL) return zeros;
  fprintf(stderr, "xnnpack_runs: no memory\n");
  exit(1);
}

static void Add(int side, int inputs, int outputs, int window, int stride,
                int is_depthwise) {
  convolutions[convolution_count++] =
      (Convolution){side, inputs, outputs, window, stride, is_depthwise};
}

static void AddMobileNet(void) {
  static const int kOutputs[] = {64,  128, 128, 256, 256,  512, 512,
                                 512, 512, 512, 512, 1024, 1024};
  static const int kStrides[] = {1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1};
  int side = 112, channels = 32;
  Add(224, 3, channels, 3, 2, 0);
  for (int i = 0; i < 13; ++i) {
    Add(side, channels, channels, 3, kStrides[i], 1);
    side /= kStrides[i];
    Add(side, channels, kOutputs[i], 1, 1, 0);
    channels = kOutputs[i];
  }
  Add(1, channels, 1001, 1, 1, 0);
}

static void AddResNet(void) {
  static const int kFilters[] = {64, 128, 256, 512}, kUnits[] = {3, 4, 6, 3};
  int side = 56, channels = 64;
  Add(224, 3, channels, 7, 2, 0);
  for (int block = 0; block < 4; ++block) {
    const int filters = kFilters[block];
    for (int unit = 0; unit < kUnits[block]; ++unit) {
      const int stride = unit == 0 && block > 0 ? 2 : 1;
      if (unit == 0) Add(side, channels, 4 * filters, 1, stride, 0);
      Add(side, channels, filters, 1, stride, 0);
      side /= stride;
      Add(side, filters, filters, 3, 1, 0);
      Add(side, filters, 4 * filters, 1, 1, 0);
      channels = 4 * filters;
      sums[sum_count++] = (BranchSum){side, channels};
    }
  }
  Add(1, channels, 1000, 1, 1, 0);
}

static void MakeConvolution(const Convolution* l, int in_8_bits) {
  const int out = (l->side + l->stride - 1) / l->stride;
  const int all = (out - 1) * l->stride + l->window - l->side;
  const int before = all > 0 ? all / 2 : 0, after = all > 0 ? all - before : 0;
  const int groups = l->is_depthwise ? l->inputs : 1;
  const int inputs = l->inputs / groups, outputs = l->outputs / groups;
  xnn_operator_t* made = &operators[operator_count++];
  if (in_8_bits) {
    Require(xnn_create_convolution2d_nhwc_qc8(
                before, after, after, before, l->window, l->window, l->stride,
                l->stride, 1, 1, groups, inputs, outputs, l->inputs, l->outputs,
                -128, 0.02f, scales, (int8_t*)weights, (int32_t*)weights, -128,
                0.02f, -128, 127, 0, made),
            "make a convolution");
    Require(
        xnn_setup_convolution2d_nhwc_qc8(*made, 1, l->side, l->side,
                                         (int8_t*)first, (int8_t*)second, NULL),
        "set up a convolution");
  } else {
    Require(xnn_create_convolution2d_nhwc_f32(
                before, after, after, before, l->window, l->window, l->stride,
                l->stride, 1, 1, groups, inputs, outputs, l->inputs, l->outputs,
                (float*)weights, (float*)weights, 0, 6, 0, made),
            "make a convolution");
    Require(xnn_setup_convolution2d_nhwc_f32(*made, 1, l->side, l->side, first,
                                             second, NULL),
            "set up a convolution");
  }
}

static void MakeSum(const BranchSum* sum, int in_8_bits) {
  const size_t shape[1] = {(size_t)sum->side * sum->side * sum->channels};
  xnn_operator_t* made = &operators[operator_count++];
  if (in_8_bits) {
    Require(
        xnn_create_add_nd_qs8(0, 0.02f, 0, 0.03f, 0, 0.04f, -128, 127, 0, made),
        "make a sum");
    Require(xnn_setup_add_nd_qs8(*made, 1, shape, 1, shape, (int8_t*)first,
                                 (int8_t*)second, (int8_t*)second, NULL),
            "set up a sum");
  } else {
    Require(xnn_create_add_nd_f32(0, 6, 0, made), "make a sum");
    Require(xnn_setup_add_nd_f32(*made, 1, shape, 1, shape, first, second,
                                 second, NULL),
            "set up a sum");
  }
}

int main(int argc, char** argv) {
  const int runs = argc == 4 ? atoi(argv[3]) : 0;
  const int is_mobilenet = argc == 4 && strcmp(argv[1], "mobilenet_v1") == 0;
  const int is_resnet = argc == 4 && strcmp(argv[1], "resnet50_v1") == 0;
  const int in_8_bits = argc == 4 && strcmp(argv[2], "int8") == 0;
  if (runs < 1 || !(is_mobilenet || is_resnet) ||
      !(in_8_bits || strcmp(argv[2], "float") == 0)) {
    fprintf(stderr,
            "usage: xnnpack_runs mobilenet_v1|resnet50_v1 float|int8 RUNS\n");
    return 2;
  }
  is_mobilenet ? AddMobileNet() : AddResNet();
  Require(xnn_initialize(NULL), "start on this processor");
  first = Zeros(kMostValues * sizeof(float));
  second = Zeros(kMostValues * sizeof(float));
  weights = Zeros(kMostWeights);
  scales = Zeros(kMostChannels * sizeof(float));
  for (int i = 0; i < kMostChannels; ++i) scales[i] = 0.01f;
  for (int i = 0; i < convolution_count; ++i) {
    MakeConvolution(&convolutions[i], in_8_bits);
  }
  for (int i = 0; i < sum_count; ++i) MakeSum(&sums[i], in_8_bits);
  for (int run = 0; run < runs; ++run) {
    for (int i = 0; i < operator_count; ++i) {
      Require(xnn_run_operator(operators[i], NULL), "run a layer");
    }
  }
  return 0;
}
