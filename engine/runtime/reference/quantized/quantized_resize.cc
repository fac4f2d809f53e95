// QuantizedResizeBilinear: interpolates between quantized values, which is the
// value of the interpolation because (3) in quantization.h is affine. The range
// passes through.

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/quantized/quantized_families.h"
#include "engine/runtime/reference/quantized/quantized_inputs.h"

namespace optfarm::runtime {
namespace {

using tensorflow::NodeDef;

struct Corners {
  bool align = false;
  bool half_pixel = false;
};

// Between which two rows (or columns) an output row lies, and how far.
struct Tap {
  int64_t low = 0;
  int64_t high = 0;
  float weight = 0;
};

std::vector<Tap> PlanAxis(int64_t in, int64_t out, Corners corners) {
  const float scale =
      corners.align && out > 1
          ? static_cast<float>(in - 1) / static_cast<float>(out - 1)
          : static_cast<float>(in) / static_cast<float>(out);
  std::vector<Tap> taps(static_cast<size_t>(out));
  for (int64_t i = 0; i < out; ++i) {
    const float at = corners.half_pixel
                         ? (static_cast<float>(i) + 0.5f) * scale - 0.5f
                         : static_cast<float>(i) * scale;
    const float floor = std::floor(at);
    taps[i].low = std::clamp<int64_t>(static_cast<int64_t>(floor), 0, in - 1);
    taps[i].high =
        std::clamp<int64_t>(static_cast<int64_t>(std::ceil(at)), 0, in - 1);
    taps[i].weight = at - floor;
  }
  return taps;
}

// Interpolates one output row.
void ResizeRow(const uint8_t* top, const uint8_t* bottom, float weight,
               const std::vector<Tap>& columns, int64_t channels,
               uint8_t* out) {
  for (const Tap& x : columns) {
    for (int64_t ch = 0; ch < channels; ++ch) {
      const float tl = top[x.low * channels + ch];
      const float tr = top[x.high * channels + ch];
      const float bl = bottom[x.low * channels + ch];
      const float br = bottom[x.high * channels + ch];
      const float upper = tl + (tr - tl) * x.weight;
      const float lower = bl + (br - bl) * x.weight;
      *out++ = static_cast<uint8_t>(
          std::clamp(std::round(upper + (lower - upper) * weight), 0.f, 255.f));
    }
  }
}

absl::Status Resize(KernelContext* c, Corners corners) {
  OPTFARM_RETURN_IF_ERROR(RequireInputs(*c, 4));
  const Tensor& input = c->input(0);
  OPTFARM_RETURN_IF_ERROR(RequireInputDtype(*c, 0, tensorflow::DT_QUINT8));
  OPTFARM_RETURN_IF_ERROR(RequireRank(input, "images", 4));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> size,
                           ReadIntegers(c->input(1), "size"));
  OPTFARM_ASSIGN_OR_RETURN(const Range range, InputRange(*c, 2));
  if (size.size() != 2 || size[0] < 1 || size[1] < 1 || input.dim(1) < 1 ||
      input.dim(2) < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("resizing ", input.shape().ToString(),
                     " needs a new height and width of at least 1"));
  }
  const int64_t channels = input.dim(3);
  OPTFARM_ASSIGN_OR_RETURN(
      const Shape shape,
      Shape::FromDims({input.dim(0), size[0], size[1], channels}));
  OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                           c->AllocateOutput(0, tensorflow::DT_QUINT8, shape));
  const std::vector<Tap> rows = PlanAxis(input.dim(1), size[0], corners);
  const std::vector<Tap> columns = PlanAxis(input.dim(2), size[1], corners);
  const int64_t in_row = input.dim(2) * channels;
  const int64_t out_row = size[1] * channels;
  c->pool()->ParallelFor(
      input.dim(0) * size[0], 4, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const uint8_t* image =
              input.data<uint8_t>() + i / size[0] * input.dim(1) * in_row;
          const Tap& y = rows[i % size[0]];
          ResizeRow(image + y.low * in_row, image + y.high * in_row, y.weight,
                    columns, channels, out->data<uint8_t>() + i * out_row);
        }
      });
  SetOutputRange(c, 1, range);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeResize(const NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", {tensorflow::DT_QUINT8}));
  Corners corners;
  OPTFARM_ASSIGN_OR_RETURN(corners.align,
                           graph::GetBoolOr(node, "align_corners", false));
  OPTFARM_ASSIGN_OR_RETURN(corners.half_pixel,
                           graph::GetBoolOr(node, "half_pixel_centers", false));
  return MakeKernel([corners](KernelContext* c) { return Resize(c, corners); });
}

}  // namespace

void AddQuantizedResizeKernels(KernelCatalog* catalog) {
  catalog->Add("QuantizedResizeBilinear", MakeResize);
}

}  // namespace optfarm::runtime
