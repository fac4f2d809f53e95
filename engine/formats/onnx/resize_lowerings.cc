// Resize in all its versions, and Upsample, from which it came.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/onnx/lowering_table.h"

namespace optfarm::formats {
namespace {

OpAttr FloatList(absl::string_view name, const std::vector<float>& values) {
  tensorflow::AttrValue value;
  value.mutable_list()->mutable_f()->Add(values.begin(), values.end());
  return {name, std::move(value)};
}

// Whether an optional list is there: a tensor without elements is not.
bool IsGiven(NodeLowering& n, int i) {
  if (!n.has_input(i)) return false;
  const PartialShape& shape = n.shape(n.input(i));
  return !(shape.is_static() && shape.elements() == 0);
}

struct ResizeInputs {
  // Nothing where they are not given.
  Endpoint roi, scales, sizes;
  // In place of the input.
  std::vector<float> fixed_scales;
};

// Without values of axes that keep their size: most models resize two of four.
void DropIdleAxes(std::vector<float>* scales, std::vector<int64_t>* axes) {
  std::vector<float> kept;
  std::vector<int64_t> resized;
  for (size_t i = 0; i < scales->size(); ++i) {
    if ((*scales)[i] == 1.0f) continue;
    kept.push_back((*scales)[i]);
    resized.push_back(axes->empty() ? static_cast<int64_t>(i) : (*axes)[i]);
  }
  // An empty list means all of them.
  if (kept.empty()) return;
  *scales = std::move(kept);
  *axes = std::move(resized);
}

absl::Status AddResize(NodeLowering& n, ResizeInputs in,
                       std::vector<int64_t> axes, std::vector<OpAttr> attrs) {
  const Endpoint x = n.input(0);
  GraphBuilder& builder = n.builder();
  if (in.scales.node != graph::kNoNode) {
    const auto known = n.KnownFloats(in.scales);
    if (known.has_value()) {
      in.fixed_scales = *known;
      in.scales = Endpoint();
    }
  }
  if (!in.fixed_scales.empty() && in.roi.node == graph::kNoNode) {
    DropIdleAxes(&in.fixed_scales, &axes);
  }
  attrs.push_back(FloatList("fixed_scales", in.fixed_scales));
  attrs.emplace_back("axes", axes);
  const Endpoint none = builder.Floats({});
  const auto or_none = [&](Endpoint given, Endpoint absent) {
    return given.node == graph::kNoNode ? absent : given;
  };
  n.SetOutput(0, n.Add("Resize",
                       {x, n.Cast(or_none(in.roi, none), tensorflow::DT_FLOAT),
                        or_none(in.scales, none),
                        or_none(in.sizes, builder.Int64s({}))},
                       std::move(attrs)));
  return absl::OkStatus();
}

// Upsample, and Resize before version 11: pixels are repeated from their left
// upper corner.
absl::Status AddUpsample(NodeLowering& n, ResizeInputs in) {
  const std::string mode = n.String("mode", "nearest");
  return AddResize(n, std::move(in), {},
                   {{"mode", mode == "bilinear" ? "linear" : mode},
                    {"coordinates", "asymmetric"},
                    {"nearest_mode", "floor"}});
}

absl::Status LowerUpsampleOfAttributes(NodeLowering& n) {
  ResizeInputs in;
  in.fixed_scales = n.Floats("scales");
  if (in.fixed_scales.empty()) {
    in.fixed_scales = {1, 1, n.Float("height_scale", 1),
                       n.Float("width_scale", 1)};
  }
  return AddUpsample(n, std::move(in));
}

absl::Status LowerUpsample(NodeLowering& n) {
  ResizeInputs in;
  in.scales = n.input(1);
  return AddUpsample(n, std::move(in));
}

absl::Status LowerResize(NodeLowering& n) {
  ResizeInputs in;
  const std::string coordinates =
      n.String("coordinate_transformation_mode", "half_pixel");
  if (coordinates == "tf_crop_and_resize" && IsGiven(n, 1)) in.roi = n.input(1);
  if (IsGiven(n, 2)) in.scales = n.input(2);
  if (IsGiven(n, 3)) in.sizes = n.Cast(n.input(3), tensorflow::DT_INT64);
  if (in.scales.node == graph::kNoNode && in.sizes.node == graph::kNoNode) {
    return absl::InvalidArgumentError("it has neither scales nor sizes");
  }
  if (in.sizes.node != graph::kNoNode) in.scales = Endpoint();
  return AddResize(
      n, std::move(in), n.Ints("axes"),
      {{"mode", n.String("mode", "nearest")},
       {"coordinates", coordinates},
       {"nearest_mode", n.String("nearest_mode", "round_prefer_floor")},
       {"cubic_coeff_a", n.Float("cubic_coeff_a", -0.75f)},
       {"exclude_outside", n.Int("exclude_outside", 0) != 0},
       {"antialias", n.Int("antialias", 0) != 0},
       {"extrapolation_value", n.Float("extrapolation_value", 0)},
       {"keep_aspect_ratio", n.String("keep_aspect_ratio_policy", "stretch")}});
}

constexpr LoweringRow kRows[] = {
    {"Resize", LowerUpsample, 10, 10},
    {"Resize", LowerResize, 11},
    {"Upsample", LowerUpsampleOfAttributes, 1, 8},
    {"Upsample", LowerUpsample, 9, 9},
};

}  // namespace

absl::Span<const LoweringRow> ResizeLowerings() { return kRows; }

}  // namespace optfarm::formats
