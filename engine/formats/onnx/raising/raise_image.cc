// Pictures in other sizes.

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/onnx/raising/raising_table.h"

namespace optfarm::formats {
namespace {

// [batch, channels, height, width] of the result.
absl::StatusOr<ValueId> Sizes(NodeRaiser& n, ValueId picture) {
  const graph::PartialShape& shape = n.OutShape();
  if (shape.is_static() && shape.rank() == 4) {
    return n.Ints({shape.dim(0), shape.dim(3), shape.dim(1), shape.dim(2)});
  }
  const ValueId others =
      n.Emit("Slice", {n.Emit("Shape", {picture}), n.Ints({0}), n.Ints({2})});
  return n.Emit("Concat", {others, n.InAsInt64(1)}, {{"axis", int64_t{0}}});
}

absl::Status Resize(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(2));
  OPTFARM_ASSIGN_OR_RETURN(const bool align_corners,
                           graph::GetBoolOr(n.def(), "align_corners", false));
  OPTFARM_ASSIGN_OR_RETURN(
      const bool half_pixel_centers,
      graph::GetBoolOr(n.def(), "half_pixel_centers", false));
  const bool is_nearest = n.onnx_op() == "nearest";
  std::vector<OnnxAttribute> attributes = {
      {"mode", std::string(n.onnx_op())},
      {"coordinate_transformation_mode",
       std::string(align_corners        ? "align_corners"
                   : half_pixel_centers ? "half_pixel"
                                        : "asymmetric")}};
  if (is_nearest) {
    // TensorFlow's older form takes the pixel that the place falls into.
    const bool rounds = align_corners || half_pixel_centers;
    attributes.push_back(
        {"nearest_mode", std::string(rounds ? "round_prefer_ceil" : "floor")});
  }
  const AxisOrder order = ChannelsSecond(4);
  ValueId picture = n.In(0, order);
  if (!is_nearest) {
    picture = n.Cast(picture, n.InType(0), tensorflow::DT_FLOAT);
  }
  OPTFARM_ASSIGN_OR_RETURN(const ValueId sizes, Sizes(n, picture));
  n.Set(n.Emit("Resize", {picture, kNoValue, kNoValue, sizes},
               std::move(attributes)),
        order);
  return absl::OkStatus();
}

constexpr RaisingRow kRows[] = {
    {"ResizeBilinear", Resize, "linear"},
    {"ResizeNearestNeighbor", Resize, "nearest"},
};

}  // namespace

absl::Span<const RaisingRow> ImageRaisings() { return kRows; }

}  // namespace optfarm::formats
