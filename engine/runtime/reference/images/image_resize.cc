// ResizeBilinear and ResizeNearestNeighbor over NHWC images.

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"
#include "engine/runtime/reference/images/resize_attrs.h"

namespace optfarm::runtime {
namespace {

// Where one output position lies between two input positions.
struct Tap {
  int64_t lower = 0;
  int64_t upper = 0;
  float weight = 0.0f;
};

std::vector<Tap> BilinearTaps(int64_t in, int64_t out,
                              const ResizeAttrs& attrs) {
  const float step = ResizeStep(in, out, attrs.align_corners);
  std::vector<Tap> taps(out);
  for (int64_t i = 0; i < out; ++i) {
    const float position = attrs.half_pixel_centers
                               ? (static_cast<float>(i) + 0.5f) * step - 0.5f
                               : static_cast<float>(i) * step;
    const float floor = std::floor(position);
    const int64_t lower = static_cast<int64_t>(floor);
    taps[i] = {std::clamp<int64_t>(lower, 0, in - 1),
               std::clamp<int64_t>(lower + 1, 0, in - 1), position - floor};
  }
  return taps;
}

std::vector<int64_t> NearestTaps(int64_t in, int64_t out,
                                 const ResizeAttrs& attrs) {
  const float step = ResizeStep(in, out, attrs.align_corners);
  std::vector<int64_t> taps(out);
  for (int64_t i = 0; i < out; ++i) {
    const float position =
        (static_cast<float>(i) + (attrs.half_pixel_centers ? 0.5f : 0.0f)) *
        step;
    const float nearest =
        attrs.align_corners ? std::round(position) : std::floor(position);
    taps[i] = std::clamp<int64_t>(static_cast<int64_t>(nearest), 0, in - 1);
  }
  return taps;
}

template <typename T>
void BilinearRow(const T* top, const T* bottom, float y_weight,
                 const std::vector<Tap>& taps, int64_t channels, float* out) {
  for (const Tap& x : taps) {
    for (int64_t c = 0; c < channels; ++c) {
      const int64_t left = x.lower * channels + c;
      const int64_t right = x.upper * channels + c;
      const float tl = static_cast<float>(top[left]);
      const float bl = static_cast<float>(bottom[left]);
      const float t = tl + (static_cast<float>(top[right]) - tl) * x.weight;
      const float b = bl + (static_cast<float>(bottom[right]) - bl) * x.weight;
      *out++ = t + (b - t) * y_weight;
    }
  }
}

// Weights in fixed point: multiples of 2 ** -bits. No bits leave them alone.
void RoundWeights(int64_t bits, std::vector<Tap>* taps) {
  if (bits == 0) return;
  const auto steps = static_cast<float>(int64_t{1} << bits);
  for (Tap& tap : *taps)
    tap.weight = std::nearbyint(tap.weight * steps) / steps;
}

// The output's shape, checked: `size` is {height, width}.
absl::StatusOr<Shape> ResizedShape(const Tensor& images, const Tensor& size) {
  OPTFARM_RETURN_IF_ERROR(RequireRank(images, "images", 4));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes,
                           ReadIntegers(size, "size"));
  const bool is_empty = images.dim(1) == 0 || images.dim(2) == 0;
  if (sizes.size() != 2 || sizes[0] < 1 || sizes[1] < 1 || is_empty) {
    return absl::InvalidArgumentError(
        absl::StrCat("images of shape ", images.shape().ToString(),
                     " cannot be resized: 'size' must be two values >= 1, and "
                     "the images must not be empty"));
  }
  const int64_t dims[] = {images.dim(0), sizes[0], sizes[1], images.dim(3)};
  OPTFARM_ASSIGN_OR_RETURN(Shape shape, Shape::FromDims(dims));
  // A list per row and column is made below.
  if (std::max(sizes[0], sizes[1]) > (int64_t{1} << 24)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a size of ", shape.ToString(), " is too large"));
  }
  return shape;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeBilinear(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_NUMBER_TYPES));
  OPTFARM_ASSIGN_OR_RETURN(const ResizeAttrs attrs, ReadResizeAttrs(node));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t bits,
                           graph::GetIntOr(node, "weight_bits", 0));
  if (bits < 0 || bits > 16) {
    return absl::InvalidArgumentError(
        absl::StrCat("'weight_bits' must be from 0 to 16, not ", bits));
  }
  return MakeKernel([attrs, bits](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    const Tensor& images = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape,
                             ResizedShape(images, context->input(1)));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out, context->AllocateOutput(0, tensorflow::DT_FLOAT, shape));
    if (shape.num_elements() == 0) return absl::OkStatus();
    std::vector<Tap> ys = BilinearTaps(images.dim(1), shape.dim(1), attrs);
    std::vector<Tap> xs = BilinearTaps(images.dim(2), shape.dim(2), attrs);
    RoundWeights(bits, &ys);
    RoundWeights(bits, &xs);
    const int64_t channels = shape.dim(3);
    const int64_t in_row = images.dim(2) * channels;
    const int64_t out_row = shape.dim(2) * channels;
    return VisitNumber(images.dtype(), "images", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      context->pool()->ParallelFor(
          shape.dim(0) * shape.dim(1), 1 + 8192 / out_row,
          [&](int64_t begin, int64_t end) {
            for (int64_t r = begin; r < end; ++r) {
              const T* image =
                  images.data<T>() + r / shape.dim(1) * images.dim(1) * in_row;
              const Tap& y = ys[r % shape.dim(1)];
              BilinearRow(image + y.lower * in_row, image + y.upper * in_row,
                          y.weight, xs, channels,
                          out->data<float>() + r * out_row);
            }
          });
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeNearest(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const ResizeAttrs attrs, ReadResizeAttrs(node));
  return MakeKernel([attrs](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    const Tensor& images = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape,
                             ResizedShape(images, context->input(1)));
    OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                             context->AllocateOutput(0, images.dtype(), shape));
    if (shape.num_elements() == 0) return absl::OkStatus();
    const std::vector<int64_t> ys =
        NearestTaps(images.dim(1), shape.dim(1), attrs);
    const std::vector<int64_t> xs =
        NearestTaps(images.dim(2), shape.dim(2), attrs);
    const int64_t channels = shape.dim(3);
    return VisitBySize(images.dtype(), "images", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      T* to = out->data<T>();
      for (int64_t r = 0; r < shape.dim(0) * shape.dim(1); ++r) {
        const int64_t in_row =
            r / shape.dim(1) * images.dim(1) + ys[r % shape.dim(1)];
        const T* from = images.data<T>() + in_row * images.dim(2) * channels;
        for (int64_t x : xs) {
          to = std::copy_n(from + x * channels, channels, to);
        }
      }
      return absl::OkStatus();
    });
  });
}

}  // namespace

void AddImageResizeKernels(KernelCatalog* catalog) {
  catalog->Add("ResizeBilinear", MakeBilinear);
  catalog->Add("ResizeNearestNeighbor", MakeNearest);
}

}  // namespace optfarm::runtime
