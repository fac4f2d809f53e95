// Packed int8 weights, and the row sums for a zero point that remains in them.

#include "engine/runtime/operators/int8_weights.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "engine/runtime/operators/int8_gemm.h"
#include "engine/runtime/operators/int8_kernels.h"
#include "engine/runtime/operators/int8_row_sums.h"
#include "engine/runtime/ukernels/cpu_features.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

constexpr PanelLayout kPanel = {.nr = 32, .kr = 4};

struct Packing {
  const char* name;
  // The zero point, and the least and the greatest value that weights have.
  int32_t zero;
  int least, greatest;
  // The first weight's value instead; -1 for none.
  int first;
  bool has_residual;
  // What remains of the zero point.
  int32_t left;
};

class Int8WeightsTest : public ::testing::TestWithParam<Packing> {};

// Every weight from what is packed: its group's, and what the residual adds.
std::vector<int32_t> SumOfGroups(const Int8Weights& weights) {
  const int64_t bytes = weights.layout().nr * weights.layout().kr;
  const int64_t groups = weights.padded_depth() / weights.layout().kr;
  std::vector<int32_t> sums(weights.panels() * groups * bytes);
  for (int64_t b = 0; b < weights.panels(); ++b) {
    int32_t* of_panel = sums.data() + b * groups * bytes;
    const int8_t* packed = weights.panel(b);
    for (int64_t i = 0; i < groups * bytes; ++i) of_panel[i] = packed[i];
    packed += groups * bytes;
    for (int32_t group : weights.residual(b)) {
      for (int i = 0; i < bytes; ++i) {
        of_panel[group * bytes + i] += *packed++;
      }
    }
  }
  return sums;
}

TEST_P(Int8WeightsTest, PackAndUnpack) {
  const Packing& p = GetParam();
  std::mt19937 random(5);
  std::uniform_int_distribution<int> pick(p.least, p.greatest);
  ThreadPool pool(2);
  for (const bool transposed : {false, true}) {
    const int64_t depth = transposed ? 35 : 70, columns = transposed ? 70 : 35;
    const Shape shape = *Shape::FromDims({70, 35});
    Tensor quantized = *Tensor::Allocate(tensorflow::DT_QUINT8, shape);
    for (int64_t i = 0; i < quantized.num_elements(); ++i) {
      quantized.data<uint8_t>()[i] = static_cast<uint8_t>(pick(random));
    }
    if (p.first >= 0)
      quantized.data<uint8_t>()[0] = static_cast<uint8_t>(p.first);
    const Int8Matrix matrix = MakeInt8Matrix(depth, columns, p.zero, kPanel);
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        Tensor packed, Int8Weights::Pack(quantized, matrix, transposed, &pool));
    EXPECT_EQ(packed.TotalBytes(), matrix.bytes());
    const Int8Weights weights(PackedWeights(packed), matrix);
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        const Tensor again,
        weights.Unpack(tensorflow::DT_QUINT8, shape, transposed));
    EXPECT_EQ(quantized.flat<uint8_t>(), again.flat<uint8_t>());
    EXPECT_EQ(weights.zero_point(), p.left);
    EXPECT_EQ(!weights.residual(0).empty(), p.has_residual);
    const std::vector<int32_t> made = SumOfGroups(weights);
    int32_t sum = 0;
    for (int64_t k = 0; k < depth; ++k) {
      const int32_t weight =
          quantized.data<uint8_t>()[transposed ? k : k * columns] - p.zero;
      sum += weight + p.left;
      EXPECT_EQ(made[k / kPanel.kr * kPanel.kr * kPanel.nr + k % kPanel.kr],
                weight + p.left);
    }
    EXPECT_EQ(weights.column_sums()[0], sum);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Quantized, Int8WeightsTest,
    ::testing::Values(Packing{"all_fit", 131, 3, 255, -1, false, 0},
                      Packing{"nothing_to_take_off", 128, 0, 255, -1, false, 0},
                      Packing{"one_does_not_fit", 131, 3, 255, 0, true, 0},
                      Packing{"one_at_the_other_end", 100, 0, 227, 255, true,
                              0},
                      Packing{"one_twice_too_far", 0, 0, 127, 255, false, -128},
                      Packing{"too_many_do_not_fit", 131, 0, 255, -1, false, 3},
                      Packing{"no_code_is_zero", -20, 0, 255, -1, false, -148}),
    [](const auto& test) { return std::string(test.param.name); });

struct RowSums {
  int64_t size, stride, dilation, channels;
  int32_t zero;
};

class Int8RowSumsTest : public ::testing::TestWithParam<RowSums> {};

TEST_P(Int8RowSumsTest, CountPaddingAndEachPixelOfAWindow) {
  const RowSums& p = GetParam();
  Int8Activations image;
  image.batch = 2;
  image.channels = p.channels;
  image.zero_point = p.zero;
  WindowAxis axis;
  axis.in = 9;
  axis.size = p.size;
  axis.stride = p.stride;
  axis.dilation = p.dilation;
  OPTFARM_ASSERT_OK_AND_ASSIGN(image.window.y,
                               PlaceWindowAxis(axis, Padding::kSame));
  axis.in = 7;
  OPTFARM_ASSERT_OK_AND_ASSIGN(image.window.x,
                               PlaceWindowAxis(axis, Padding::kSame));
  const WindowAxis &y = image.window.y, &x = image.window.x;
  std::vector<uint8_t> quantized(image.batch * y.in * x.in * p.channels);
  std::mt19937 random(3);
  for (uint8_t& q : quantized) q = static_cast<uint8_t>(random());
  image.values = quantized.data();
  const Int8Weights weights;
  const Int8Gemm gemm = {.input = image,
                         .weights = weights,
                         .kernels = SelectInt8Kernels(HostCpuFeatures())};
  ThreadPool pool(2);
  std::vector<int32_t> sums(image.rows());
  SumInt8Rows(gemm, &pool, sums.data());
  for (int64_t row = 0; row < image.rows(); ++row) {
    const int64_t out_y = row / x.out % y.out, out_x = row % x.out;
    int32_t expected = 0;
    for (int64_t i = 0; i < y.size * x.size; ++i) {
      const int64_t in_y =
          out_y * y.stride - y.pad_before + i / x.size * y.dilation;
      const int64_t in_x =
          out_x * x.stride - x.pad_before + i % x.size * x.dilation;
      const bool exists = in_y >= 0 && in_y < y.in && in_x >= 0 && in_x < x.in;
      const int64_t pixel = (row / (y.out * x.out) * y.in + in_y) * x.in + in_x;
      for (int64_t c = 0; c < p.channels; ++c) {
        expected += exists ? quantized[pixel * p.channels + c]
                           : std::clamp(p.zero, 0, 255);
      }
    }
    EXPECT_EQ(sums[row], expected) << row;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Windows, Int8RowSumsTest,
    ::testing::Values(RowSums{1, 1, 1, 8, 5}, RowSums{1, 2, 1, 4, 5},
                      RowSums{3, 1, 1, 36, 130}, RowSums{3, 2, 1, 4, 255},
                      RowSums{3, 1, 2, 8, 300}, RowSums{7, 1, 2, 4, -4},
                      RowSums{5, 3, 1, 12, 0}));

}  // namespace
}  // namespace optfarm::runtime
