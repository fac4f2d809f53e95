// ResizeBicubic and ResizeArea over NHWC images: every output element is a
// weighted sum over a few rows and columns, whose weights are made first.

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"
#include "engine/runtime/reference/images/resize_attrs.h"

namespace optfarm::runtime {
namespace {

// The input positions that one output position takes, with their weights.
struct Taps {
  std::vector<int64_t> positions;
  std::vector<float> weights;
};

// The cubic convolution kernel (Keys 1981) at distance 0 to 2; TensorFlow's
// old corner convention has a = -0.75, the half-pixel one -0.5.
float CubicWeight(float distance, float a) {
  const float x = distance;
  if (x <= 1.0f) return ((a + 2.0f) * x - (a + 3.0f)) * x * x + 1.0f;
  return ((a * x - 5.0f * a) * x + 8.0f * a) * x - 4.0f * a;
}

std::vector<Taps> CubicTaps(int64_t in, int64_t out, const ResizeAttrs& attrs) {
  // TensorFlow looks the weights up in a table of so many steps.
  constexpr float kSteps = 1024.0f;
  const float a = attrs.half_pixel_centers ? -0.5f : -0.75f;
  const float step = ResizeStep(in, out, attrs.align_corners);
  std::vector<Taps> all(out);
  for (int64_t i = 0; i < out; ++i) {
    const float position = attrs.half_pixel_centers
                               ? (static_cast<float>(i) + 0.5f) * step - 0.5f
                               : static_cast<float>(i) * step;
    const float floor = std::floor(position);
    const float rest = std::rint((position - floor) * kSteps) / kSteps;
    const int64_t first = static_cast<int64_t>(floor) - 1;
    const std::array<float, 4> distances = {1.0f + rest, rest, 1.0f - rest,
                                            2.0f - rest};
    Taps& taps = all[i];
    float sum = 0.0f;
    for (int k = 0; k < 4; ++k) {
      const int64_t at = first + k;
      const bool is_outside = at < 0 || at >= in;
      // Half-pixel: what lies outside has no weight, the rest makes up for it.
      const float weight = attrs.half_pixel_centers && is_outside
                               ? 0.0f
                               : CubicWeight(distances[k], a);
      taps.positions.push_back(std::clamp<int64_t>(at, 0, in - 1));
      taps.weights.push_back(weight);
      sum += weight;
    }
    if (!attrs.half_pixel_centers || std::abs(sum) < 1e-6f) continue;
    for (float& weight : taps.weights) weight /= sum;
  }
  return all;
}

// Input cells under [i, i + 1) output cells, by the part that is covered.
std::vector<Taps> AreaTaps(int64_t in, int64_t out, const ResizeAttrs& attrs) {
  const float step = ResizeStep(in, out, attrs.align_corners);
  std::vector<Taps> all(out);
  for (int64_t i = 0; i < out; ++i) {
    const float begin = static_cast<float>(i) * step;
    const float end = static_cast<float>(i + 1) * step;
    const int64_t last = static_cast<int64_t>(std::ceil(end));
    for (int64_t k = static_cast<int64_t>(std::floor(begin)); k < last; ++k) {
      const float low = std::max(begin, static_cast<float>(k));
      const float high = std::min(end, static_cast<float>(k + 1));
      all[i].positions.push_back(std::clamp<int64_t>(k, 0, in - 1));
      all[i].weights.push_back((high - low) / step);
    }
  }
  return all;
}

template <typename T>
void ResizeRow(const T* image, const Shape& in, const Taps& y,
               const std::vector<Taps>& xs, float* to) {
  const int64_t channels = in.dim(3);
  for (const Taps& x : xs) {
    for (int64_t c = 0; c < channels; ++c) {
      float sum = 0.0f;
      for (size_t i = 0; i < y.positions.size(); ++i) {
        const T* row = image + y.positions[i] * in.dim(2) * channels + c;
        float across = 0.0f;
        for (size_t k = 0; k < x.positions.size(); ++k) {
          across +=
              static_cast<float>(row[x.positions[k] * channels]) * x.weights[k];
        }
        sum += across * y.weights[i];
      }
      *to++ = sum;
    }
  }
}

absl::StatusOr<Shape> ResizedShape(const Tensor& images, const Tensor& size) {
  OPTFARM_RETURN_IF_ERROR(RequireRank(images, "images", 4));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes,
                           ReadIntegers(size, "size"));
  // A list per row and column is made below.
  constexpr int64_t kMaxSize = int64_t{1} << 20;
  const bool fits = sizes.size() == 2 && sizes[0] >= 1 && sizes[1] >= 1 &&
                    sizes[0] <= kMaxSize && sizes[1] <= kMaxSize &&
                    images.dim(1) > 0 && images.dim(2) > 0;
  if (!fits) {
    return absl::InvalidArgumentError(
        absl::StrCat("images of shape ", images.shape().ToString(),
                     " cannot be resized: 'size' must be two values from 1 to ",
                     kMaxSize, ", and the images must not be empty"));
  }
  const int64_t dims[] = {images.dim(0), sizes[0], sizes[1], images.dim(3)};
  return Shape::FromDims(dims);
}

using MakeTaps = std::vector<Taps> (*)(int64_t, int64_t, const ResizeAttrs&);

template <MakeTaps kTaps>
absl::StatusOr<std::unique_ptr<Kernel>> MakeResize(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_NUMBER_TYPES));
  OPTFARM_ASSIGN_OR_RETURN(const ResizeAttrs attrs, ReadResizeAttrs(node));
  return MakeKernel([attrs](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    const Tensor& images = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape,
                             ResizedShape(images, context->input(1)));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out, context->AllocateOutput(0, tensorflow::DT_FLOAT, shape));
    if (shape.num_elements() == 0) return absl::OkStatus();
    const std::vector<Taps> ys = kTaps(images.dim(1), shape.dim(1), attrs);
    const std::vector<Taps> xs = kTaps(images.dim(2), shape.dim(2), attrs);
    const int64_t image = DimProduct(images.shape(), 1, 4);
    const int64_t row = shape.dim(2) * shape.dim(3);
    return VisitNumber(images.dtype(), "images", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      context->pool()->ParallelFor(
          shape.dim(0) * shape.dim(1), 1 + 1024 / row,
          [&](int64_t begin, int64_t end) {
            for (int64_t r = begin; r < end; ++r) {
              ResizeRow(images.data<T>() + r / shape.dim(1) * image,
                        images.shape(), ys[r % shape.dim(1)], xs,
                        out->data<float>() + r * row);
            }
          });
      return absl::OkStatus();
    });
  });
}

}  // namespace

void AddSmoothResizeKernels(KernelCatalog* catalog) {
  catalog->Add("ResizeBicubic", MakeResize<CubicTaps>);
  catalog->Add("ResizeArea", MakeResize<AreaTaps>);
}

}  // namespace optfarm::runtime
