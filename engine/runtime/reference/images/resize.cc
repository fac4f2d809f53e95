// Resize of any number of axes, one axis after the other, as ONNX defines it.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/core/run_bounds.h"
#include "engine/runtime/core/scratch.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/images/axis_resize.h"
#include "engine/runtime/reference/layer_families.h"

namespace optfarm::runtime {
namespace {

struct ResizeAttrs {
  ResizeRule rule;
  std::vector<int64_t> axes;
  std::vector<float> scales;
  double extrapolation = 0;
  // Sizes as they are, or the smaller or the larger scale for all axes.
  enum class Policy {
    kStretch,
    kNotLarger,
    kNotSmaller
  } policy = Policy::kStretch;
};

struct NamedCoordinates {
  absl::string_view name;
  ResizeCoordinates coordinates;
};
constexpr NamedCoordinates kCoordinates[] = {
    {"half_pixel", ResizeCoordinates::kHalfPixel},
    {"half_pixel_symmetric", ResizeCoordinates::kHalfPixelSymmetric},
    {"pytorch_half_pixel", ResizeCoordinates::kPytorchHalfPixel},
    {"align_corners", ResizeCoordinates::kAlignCorners},
    {"asymmetric", ResizeCoordinates::kAsymmetric},
    {"tf_half_pixel_for_nn", ResizeCoordinates::kTfHalfPixelForNearest},
    {"tf_crop_and_resize", ResizeCoordinates::kTfCropAndResize},
};

// Floats of an input, one for each axis, or none.
absl::StatusOr<std::vector<float>> Floats(const Tensor& tensor,
                                          absl::string_view name,
                                          size_t count) {
  OPTFARM_RETURN_IF_ERROR(RequireDtype(tensor, name, tensorflow::DT_FLOAT));
  const auto flat = tensor.flat<float>();
  if (!flat.empty() && flat.size() != count) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " has ", flat.size(), " values, not ", count));
  }
  return std::vector<float>(flat.begin(), flat.end());
}

// Output sizes where they are given and not scales.
absl::Status SizesByPolicy(const ResizeAttrs& attrs,
                           const std::vector<int64_t>& sizes,
                           std::vector<ResizeAxis>* axes) {
  double common = 0;
  for (size_t i = 0; i < axes->size(); ++i) {
    ResizeAxis& axis = (*axes)[i];
    if (sizes[i] < 0 || sizes[i] > std::numeric_limits<int32_t>::max()) {
      return absl::InvalidArgumentError(absl::StrCat("a size of ", sizes[i]));
    }
    axis.out = sizes[i];
    axis.scale = static_cast<double>(axis.out) / static_cast<double>(axis.in);
    const bool is_better = attrs.policy == ResizeAttrs::Policy::kNotLarger
                               ? axis.scale < common
                               : axis.scale > common;
    if (i == 0 || is_better) common = axis.scale;
  }
  if (attrs.policy == ResizeAttrs::Policy::kStretch) return absl::OkStatus();
  for (ResizeAxis& axis : *axes) {
    axis.scale = common;
    axis.out = static_cast<int64_t>(
        std::floor(common * static_cast<double>(axis.in) + 0.5));
  }
  return absl::OkStatus();
}

absl::Status SizesByScales(const std::vector<float>& scales,
                           std::vector<ResizeAxis>* axes) {
  for (size_t i = 0; i < axes->size(); ++i) {
    ResizeAxis& axis = (*axes)[i];
    const float out = std::floor(static_cast<float>(axis.in) * scales[i]);
    if (!(scales[i] > 0) || !(out < 2147483648.0f)) {
      return absl::InvalidArgumentError(
          absl::StrCat("a scale of ", scales[i], " for ", axis.in));
    }
    axis.scale = double{scales[i]};
    axis.out = static_cast<int64_t>(out);
  }
  return absl::OkStatus();
}

// The axes that are resized, from inputs and attributes.
absl::StatusOr<std::vector<ResizeAxis>> ReadAxes(
    const ResizeAttrs& attrs, const KernelContext& context,
    const std::vector<int>& places) {
  const Tensor& x = context.input(0);
  std::vector<ResizeAxis> axes(places.size());
  for (size_t i = 0; i < places.size(); ++i) {
    axes[i].in = x.dim(places[i]);
    if (axes[i].in < 1) {
      return absl::InvalidArgumentError("an axis without elements");
    }
  }
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<float> roi,
                           Floats(context.input(1), "roi", 2 * places.size()));
  OPTFARM_ASSIGN_OR_RETURN(std::vector<float> scales,
                           Floats(context.input(2), "scales", places.size()));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes,
                           ReadIntegers(context.input(3), "sizes"));
  for (size_t i = 0; i < places.size() && !roi.empty(); ++i) {
    axes[i].crop_start = double{roi[i]};
    axes[i].crop_end = double{roi[i + places.size()]};
  }
  if (scales.empty()) scales = attrs.scales;
  if (sizes.size() == places.size() && !sizes.empty()) {
    OPTFARM_RETURN_IF_ERROR(SizesByPolicy(attrs, sizes, &axes));
  } else if (scales.size() == places.size()) {
    OPTFARM_RETURN_IF_ERROR(SizesByScales(scales, &axes));
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("there are ", scales.size(), " scales and ", sizes.size(),
                     " sizes for ", places.size(), " axes"));
  }
  return axes;
}

// out[j] = the weighted sum of plane[tap, j]; tap by tap, so that the loops
// over neighbouring elements become vectors. REQUIRES: count >= 2.
template <typename T>
void AddTaps(const ResizeTap* taps, int64_t count, const T* plane,
             int64_t inner, T* __restrict out) {
  const T first_weight = static_cast<T>(taps[0].weight);
  const T second_weight = static_cast<T>(taps[1].weight);
  const T* first = plane + taps[0].index * inner;
  const T* second = plane + taps[1].index * inner;
  for (int64_t j = 0; j < inner; ++j) {
    out[j] = first_weight * first[j] + second_weight * second[j];
  }
  for (int64_t t = 2; t < count; ++t) {
    const T weight = static_cast<T>(taps[t].weight);
    const T* in = plane + taps[t].index * inner;
    for (int64_t j = 0; j < inner; ++j) out[j] += weight * in[j];
  }
}

// The same of single elements; count may be 1.
template <typename T>
T SumTaps(const ResizeTap* taps, int64_t count, const T* line) {
  if (count == 1) return line[taps[0].index];
  T sum = static_cast<T>(taps[0].weight) * line[taps[0].index];
  for (int64_t t = 1; t < count; ++t) {
    sum += static_cast<T>(taps[t].weight) * line[taps[t].index];
  }
  return sum;
}

// [outer, in, inner] as [outer, out, inner].
template <typename T>
void ResizeOneAxis(const ResizeTaps& taps, const ResizeAxis& axis,
                   int64_t outer, int64_t inner, ThreadPool* pool,
                   const T* from, T* to) {
  const int64_t grain =
      std::max<int64_t>(1, 16384 / std::max<int64_t>(1, inner));
  pool->ParallelFor(
      inner == 0 ? 0 : outer * axis.out, grain,
      [&](int64_t begin, int64_t end) {
        const T* plane = from + begin / axis.out * axis.in * inner;
        int64_t at = begin % axis.out;
        for (int64_t row = begin; row < end; ++row) {
          if (row % 1024 == 0) LeaveIfRunEnded();
          T* out = to + row * inner;
          const int64_t first = taps.begin[static_cast<size_t>(at)];
          const int64_t count = taps.begin[static_cast<size_t>(at) + 1] - first;
          const ResizeTap* tap = &taps.taps[static_cast<size_t>(first)];
          if (inner == 1) {
            *out = SumTaps(tap, count, plane);
          } else if (count == 1) {
            std::copy_n(plane + tap->index * inner, inner, out);
          } else {
            AddTaps(tap, count, plane, inner, out);
          }
          if (++at == axis.out) {
            at = 0;
            plane += axis.in * inner;
          }
        }
      });
}

// Elements of which some coordinate lies outside of the image.
template <typename T>
void Extrapolate(const std::vector<ResizeTaps>& taps,
                 const std::vector<int>& places, double value, Tensor* out) {
  const Shape& shape = out->shape();
  T* data = out->data<T>();
  for (size_t i = 0; i < places.size(); ++i) {
    if (taps[i].is_outside.empty()) continue;
    const int64_t inner = DimProduct(shape, places[i] + 1, shape.rank());
    const int64_t size = shape.dim(places[i]);
    for (int64_t e = 0; e < shape.num_elements(); ++e) {
      if (taps[i].is_outside[static_cast<size_t>(e / inner % size)]) {
        data[e] = static_cast<T>(value);
      }
    }
  }
}

template <typename T, typename W>
absl::StatusOr<Tensor> Widened(const Tensor& x) {
  OPTFARM_ASSIGN_OR_RETURN(Tensor wide,
                           Tensor::Allocate(DataTypeOf<W>::kValue, x.shape()));
  const T* from = x.data<T>();
  W* to = wide.data<W>();
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    to[i] = static_cast<W>(from[i]);
  }
  return wide;
}

// As `dtype`, whose element is T: what lies beyond its range at the range's
// end.
template <typename T, typename W>
absl::StatusOr<Tensor> Narrowed(const Tensor& wide, DataType dtype) {
  OPTFARM_ASSIGN_OR_RETURN(Tensor narrow,
                           Tensor::Allocate(dtype, wide.shape()));
  const W* from = wide.data<W>();
  T* to = narrow.data<T>();
  const W lowest = static_cast<W>(std::numeric_limits<T>::lowest());
  const W most = static_cast<W>(std::numeric_limits<T>::max());
  for (int64_t i = 0; i < wide.num_elements(); ++i) {
    to[i] = from[i] <= lowest ? std::numeric_limits<T>::lowest()
            : from[i] >= most ? std::numeric_limits<T>::max()
                              : static_cast<T>(from[i]);
  }
  return narrow;
}

// The order in which axes are resized, as positions in `axes`: those that
// shrink first, so that the others have less to do, and of those that grow the
// innermost first, as outer ones go through long rows.
std::vector<size_t> OrderOfAxes(const std::vector<ResizeAxis>& axes,
                                const std::vector<int>& places) {
  std::vector<size_t> order(axes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const bool a_grows = axes[a].out > axes[a].in;
    const bool b_grows = axes[b].out > axes[b].in;
    if (a_grows != b_grows) return b_grows;
    return a_grows ? places[a] > places[b] : places[a] < places[b];
  });
  return order;
}

// In type W; T is the input's.
template <typename T, typename W>
absl::StatusOr<Tensor> ResizeAll(const ResizeAttrs& attrs, const Tensor& x,
                                 const std::vector<int>& places,
                                 const std::vector<ResizeAxis>& axes,
                                 ThreadPool* pool) {
  Tensor now = x;
  if constexpr (!std::is_same_v<T, W>) {
    OPTFARM_ASSIGN_OR_RETURN(now, (Widened<T, W>(x)));
  }
  std::vector<ResizeTaps> taps(places.size());
  for (const size_t i : OrderOfAxes(axes, places)) {
    const bool is_same =
        axes[i].in == axes[i].out && axes[i].scale == 1 &&
        attrs.rule.coordinates != ResizeCoordinates::kTfCropAndResize;
    if (is_same) continue;
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape,
                             WithDim(now.shape(), places[i], axes[i].out));
    OPTFARM_ASSIGN_OR_RETURN(Tensor next, Tensor::Allocate(now.dtype(), shape));
    const int64_t outer = DimProduct(shape, 0, places[i]);
    const int64_t inner = DimProduct(shape, places[i] + 1, shape.rank());
    if (shape.num_elements() > 0) {
      taps[i] = MakeResizeTaps(attrs.rule, axes[i]);
    }
    ResizeOneAxis<W>(taps[i], axes[i], outer, inner, pool,
                     static_cast<const Tensor&>(now).data<W>(), next.data<W>());
    now = std::move(next);
  }
  const bool any_outside =
      std::any_of(taps.begin(), taps.end(),
                  [](const ResizeTaps& t) { return !t.is_outside.empty(); });
  if (any_outside) Extrapolate<W>(taps, places, attrs.extrapolation, &now);
  if constexpr (!std::is_same_v<T, W>) return Narrowed<T, W>(now, x.dtype());
  return now;
}

absl::Status ComputeResize(const ResizeAttrs& attrs, KernelContext* context) {
  OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 4));
  const Tensor& x = context->input(0);
  std::vector<int> places;
  for (const int64_t axis : attrs.axes) {
    OPTFARM_ASSIGN_OR_RETURN(const int place, NormalizeAxis(axis, x.rank()));
    places.push_back(place);
  }
  for (int i = 0; i < x.rank() && attrs.axes.empty(); ++i) places.push_back(i);
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<ResizeAxis> axes,
                           ReadAxes(attrs, *context, places));
  return VisitNumber(x.dtype(), "x", [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    // Elements are only copied by the nearest mode.
    using W = std::conditional_t<std::is_same_v<T, float>, float, double>;
    absl::StatusOr<Tensor> y;
    const bool only_copies =
        attrs.rule.mode == ResizeMode::kNearest &&
        attrs.rule.coordinates != ResizeCoordinates::kTfCropAndResize;
    if (only_copies) {
      y = ResizeAll<T, T>(attrs, x, places, axes, context->pool());
    } else {
      y = ResizeAll<T, W>(attrs, x, places, axes, context->pool());
    }
    if (!y.ok()) return y.status();
    context->SetOutput(0, *std::move(y));
    return absl::OkStatus();
  });
}

absl::StatusOr<ResizeRule> ReadRule(const tensorflow::NodeDef& node) {
  ResizeRule rule;
  OPTFARM_ASSIGN_OR_RETURN(const std::string mode,
                           graph::GetStringOr(node, "mode", "nearest"));
  OPTFARM_ASSIGN_OR_RETURN(
      const std::string coordinates,
      graph::GetStringOr(node, "coordinates", "half_pixel"));
  OPTFARM_ASSIGN_OR_RETURN(
      const std::string rounding,
      graph::GetStringOr(node, "nearest_mode", "round_prefer_floor"));
  OPTFARM_ASSIGN_OR_RETURN(const float coefficient,
                           graph::GetFloatOr(node, "cubic_coeff_a", -0.75f));
  OPTFARM_ASSIGN_OR_RETURN(rule.exclude_outside,
                           graph::GetBoolOr(node, "exclude_outside", false));
  OPTFARM_ASSIGN_OR_RETURN(rule.antialias,
                           graph::GetBoolOr(node, "antialias", false));
  rule.cubic_coefficient = double{coefficient};
  if (mode == "linear") {
    rule.mode = ResizeMode::kLinear;
  } else if (mode == "cubic") {
    rule.mode = ResizeMode::kCubic;
  } else if (mode != "nearest") {
    return absl::InvalidArgumentError(absl::StrCat("mode is '", mode, "'"));
  }
  if (rounding == "round_prefer_ceil") {
    rule.rounding = ResizeRounding::kPreferCeil;
  } else if (rounding == "floor") {
    rule.rounding = ResizeRounding::kFloor;
  } else if (rounding == "ceil") {
    rule.rounding = ResizeRounding::kCeil;
  } else if (rounding != "round_prefer_floor") {
    return absl::InvalidArgumentError(
        absl::StrCat("nearest_mode is '", rounding, "'"));
  }
  for (const NamedCoordinates& named : kCoordinates) {
    if (named.name != coordinates) continue;
    rule.coordinates = named.coordinates;
    return rule;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("coordinates is '", coordinates, "'"));
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeResize(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_NUMBER_TYPES));
  ResizeAttrs attrs;
  OPTFARM_ASSIGN_OR_RETURN(attrs.rule, ReadRule(node));
  OPTFARM_ASSIGN_OR_RETURN(attrs.axes, graph::GetIntsOr(node, "axes", {}));
  if (attrs.axes.size() > static_cast<size_t>(kMaxRank)) {
    return absl::InvalidArgumentError("there are too many axes");
  }
  if (graph::FindAttr(node, "fixed_scales") != nullptr) {
    OPTFARM_ASSIGN_OR_RETURN(attrs.scales,
                             graph::GetFloats(node, "fixed_scales"));
  }
  OPTFARM_ASSIGN_OR_RETURN(const float value,
                           graph::GetFloatOr(node, "extrapolation_value", 0));
  attrs.extrapolation = double{value};
  OPTFARM_ASSIGN_OR_RETURN(
      const std::string policy,
      graph::GetStringOr(node, "keep_aspect_ratio", "stretch"));
  if (policy == "not_larger") attrs.policy = ResizeAttrs::Policy::kNotLarger;
  if (policy == "not_smaller") attrs.policy = ResizeAttrs::Policy::kNotSmaller;
  return MakeKernel([attrs = std::move(attrs)](KernelContext* context) {
    return ComputeResize(attrs, context);
  });
}

}  // namespace

void AddAnyResizeKernels(KernelCatalog* catalog) {
  catalog->Add("Resize", MakeResize);
}

}  // namespace optfarm::runtime
