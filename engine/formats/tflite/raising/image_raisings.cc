// Images of another size.

#include <tflite/schema_generated.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/tflite/raising/raising_table.h"
#include "engine/graph/attr.h"

namespace optfarm::formats::tflite_raising {
namespace {

using graph::PartialShape;
using tflite::BuiltinOperator;

absl::Status RaiseResizeImage(NodeRaiser& node) {
  OperatorOptions options;
  OPTFARM_ASSIGN_OR_RETURN(
      options.align_corners,
      graph::GetBoolOr(node.def(), "align_corners", false));
  OPTFARM_ASSIGN_OR_RETURN(
      options.half_pixel_centers,
      graph::GetBoolOr(node.def(), "half_pixel_centers", false));
  LayerRequest request;
  request.rule = node.rule();
  request.inputs = {node.input(0)};
  const Layer layer = node.Begin(request);
  node.Finish(layer, node.builtin(), {layer.inputs[0], node.Int32Input(1)},
              options);
  return absl::OkStatus();
}

// Longer axes than those of pictures are not computed place by place.
constexpr int64_t kLongestAxis = 1 << 20;

// Where pixels of one axis of a Resize come from.
struct ResizedAxis {
  int axis = 0;
  int64_t from = 0;
  int64_t to = 0;
  // Stated, or the quotient of the sizes.
  double scale = 1;
};

struct ResizeModes {
  std::string mode, coordinates, nearest;
};

// The place in the input that pixel `i` of the output stands for.
double SourceOf(const ResizedAxis& axis, const std::string& coordinates,
                int64_t i) {
  const double x = static_cast<double>(i);
  if (coordinates == "align_corners") {
    return axis.to == 1 ? 0.0
                        : x * static_cast<double>(axis.from - 1) /
                              static_cast<double>(axis.to - 1);
  }
  if (coordinates == "asymmetric") return x / axis.scale;
  if (coordinates == "pytorch_half_pixel" && axis.to == 1) return 0;
  if (coordinates == "tf_half_pixel_for_nn") return (x + 0.5) / axis.scale;
  return (x + 0.5) / axis.scale - 0.5;
}

int64_t NearestOf(const ResizedAxis& axis, const ResizeModes& modes,
                  int64_t i) {
  const double source = SourceOf(axis, modes.coordinates, i);
  double rounded = std::ceil(source - 0.5);
  if (modes.nearest == "round_prefer_ceil") rounded = std::floor(source + 0.5);
  if (modes.nearest == "floor") rounded = std::floor(source);
  if (modes.nearest == "ceil") rounded = std::ceil(source);
  return std::clamp<int64_t>(static_cast<int64_t>(rounded), 0, axis.from - 1);
}

absl::StatusOr<std::vector<ResizedAxis>> ReadResizedAxes(
    const NodeRaiser& node) {
  const PartialShape& from = node.ShapeOfInput(0);
  const PartialShape& to = node.ShapeOfOutput();
  if (!from.has_rank() || !to.has_rank() || from.rank() != to.rank()) {
    return absl::FailedPreconditionError("its sizes are not known");
  }
  OPTFARM_ASSIGN_OR_RETURN(std::vector<int64_t> axes,
                           graph::GetIntsOr(node.def(), "axes", {}));
  std::vector<float> scales;
  if (node.node().FindAttr("fixed_scales") != nullptr) {
    OPTFARM_ASSIGN_OR_RETURN(scales,
                             graph::GetFloats(node.def(), "fixed_scales"));
  }
  if (axes.empty()) {
    for (int i = 0; i < from.rank(); ++i) axes.push_back(i);
  }
  std::vector<ResizedAxis> resized;
  for (size_t i = 0; i < axes.size(); ++i) {
    OPTFARM_ASSIGN_OR_RETURN(const int axis, node.AxisOf(axes[i], 0));
    const int64_t before = from.dim(axis), after = to.dim(axis);
    // Of an open size only the scale tells whether it changes.
    const bool is_kept = i < scales.size() ? scales[i] == 1 : axis == 0;
    if (before < 0 && after < 0 && is_kept) continue;
    if (before < 1 || after < 1 || before > kLongestAxis ||
        after > kLongestAxis) {
      return absl::FailedPreconditionError(
          "its sizes are not known or out of range");
    }
    if (before == after) continue;
    const double ratio =
        static_cast<double>(after) / static_cast<double>(before);
    resized.push_back(
        {axis, before, after,
         i < scales.size() ? static_cast<double>(scales[i]) : ratio});
  }
  return resized;
}

// Pixels are picked along one axis after the other.
absl::Status PickNearest(NodeRaiser& node, const std::vector<ResizedAxis>& axes,
                         const ResizeModes& modes) {
  LayerRequest request;
  request.rule = ScaleRule::kDataMovement;
  request.inputs = {node.input(0)};
  const Layer layer = node.Begin(request);
  TensorId image = layer.inputs[0];
  PartialShape shape = node.ShapeOfInput(0);
  for (size_t i = 0; i < axes.size(); ++i) {
    std::vector<int64_t> sources;
    for (int64_t x = 0; x < axes[i].to; ++x) {
      sources.push_back(NearestOf(axes[i], modes, x));
    }
    OperatorOptions options;
    options.axis = axes[i].axis;
    shape.set_dim(axes[i].axis, axes[i].to);
    std::vector<TensorId> inputs = {image, node.Int32s(sources)};
    if (i + 1 == axes.size()) {
      node.Finish(layer, BuiltinOperator::GATHER, std::move(inputs), options);
      return absl::OkStatus();
    }
    image = node.EmitBetween(BuiltinOperator::GATHER, std::move(inputs), image,
                             shape, options);
  }
  return absl::InternalError("there is nothing to resize");
}

// Whether RESIZE_NEAREST_NEIGHBOR without options picks the same pixels.
bool IsPlainNearest(const std::vector<ResizedAxis>& axes,
                    const ResizeModes& modes) {
  for (const ResizedAxis& axis : axes) {
    for (int64_t i = 0; i < axis.to; ++i) {
      if (NearestOf(axis, modes, i) != i * axis.from / axis.to) return false;
    }
  }
  return true;
}

absl::StatusOr<OperatorOptions> LinearOptions(
    const std::vector<ResizedAxis>& axes, const ResizeModes& modes) {
  OperatorOptions options;
  for (const ResizedAxis& axis : axes) {
    const double size = static_cast<double>(axis.from) * axis.scale;
    const bool rounds = std::abs(size - static_cast<double>(axis.to)) > 1e-3;
    const bool is_point =
        modes.coordinates == "pytorch_half_pixel" && axis.to == 1;
    if ((rounds && modes.coordinates != "align_corners") || is_point) {
      return absl::UnimplementedError(absl::StrCat(
          "it scales ", axis.from, " pixels by ", axis.scale, " to ", axis.to));
    }
  }
  options.align_corners = modes.coordinates == "align_corners";
  options.half_pixel_centers = modes.coordinates == "half_pixel" ||
                               modes.coordinates == "pytorch_half_pixel" ||
                               modes.coordinates == "half_pixel_symmetric";
  if (!options.align_corners && !options.half_pixel_centers &&
      modes.coordinates != "asymmetric") {
    return absl::UnimplementedError(
        absl::StrCat("its coordinates are ", modes.coordinates));
  }
  return options;
}

// A resizing operator on images whose height is dimension `height`: channels
// that stand in front go behind for it.
absl::Status FinishImageResize(NodeRaiser& node, BuiltinOperator op,
                               ScaleRule rule, int height,
                               const OperatorOptions& options) {
  LayerRequest request;
  request.rule = rule;
  request.inputs = {node.input(0)};
  const Layer layer = node.Begin(request);
  const PartialShape& from = node.ShapeOfInput(0);
  const PartialShape& to = node.ShapeOfOutput();
  const TensorId sizes = node.Int32s({to.dim(height), to.dim(height + 1)});
  if (height == 1) {
    node.Finish(layer, op, {layer.inputs[0], sizes}, options);
    return absl::OkStatus();
  }
  const auto behind = [](const PartialShape& shape) {
    return PartialShape(
        {shape.dim(0), shape.dim(2), shape.dim(3), shape.dim(1)});
  };
  const TensorId image = node.EmitBetween(
      BuiltinOperator::TRANSPOSE, {layer.inputs[0], node.Int32s({0, 2, 3, 1})},
      layer.inputs[0], behind(from));
  const TensorId resized =
      node.EmitBetween(op, {image, sizes}, image, behind(to), options);
  node.Finish(layer, BuiltinOperator::TRANSPOSE,
              {resized, node.Int32s({0, 3, 1, 2})});
  return absl::OkStatus();
}

absl::Status RaiseResize(NodeRaiser& node) {
  ResizeModes modes;
  OPTFARM_ASSIGN_OR_RETURN(modes.mode,
                           graph::GetStringOr(node.def(), "mode", "nearest"));
  OPTFARM_ASSIGN_OR_RETURN(
      modes.coordinates,
      graph::GetStringOr(node.def(), "coordinates", "half_pixel"));
  OPTFARM_ASSIGN_OR_RETURN(
      modes.nearest,
      graph::GetStringOr(node.def(), "nearest_mode", "round_prefer_floor"));
  OPTFARM_ASSIGN_OR_RETURN(const bool antialias,
                           graph::GetBoolOr(node.def(), "antialias", false));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<ResizedAxis> axes,
                           ReadResizedAxes(node));
  if (antialias || modes.coordinates == "tf_crop_and_resize" ||
      modes.mode == "cubic") {
    return absl::UnimplementedError(
        absl::StrCat("resizing by ", modes.mode, ", ", modes.coordinates,
                     antialias ? ", antialiased" : "", ", has no operator"));
  }
  if (axes.empty()) {
    node.SetOutput(node.Tensor(0));
    return absl::OkStatus();
  }
  const auto is_within = [&](int first) {
    return node.ShapeOfInput(0).rank() == 4 &&
           std::all_of(axes.begin(), axes.end(), [&](const ResizedAxis& axis) {
             return axis.axis == first || axis.axis == first + 1;
           });
  };
  if (modes.mode == "nearest") {
    if (is_within(1) && IsPlainNearest(axes, modes)) {
      return FinishImageResize(node, BuiltinOperator::RESIZE_NEAREST_NEIGHBOR,
                               ScaleRule::kDataMovement, 1, {});
    }
    return PickNearest(node, axes, modes);
  }
  if (!is_within(1) && !is_within(2)) {
    return absl::UnimplementedError(
        "it interpolates along other dimensions than those of an image");
  }
  OPTFARM_ASSIGN_OR_RETURN(const OperatorOptions options,
                           LinearOptions(axes, modes));
  return FinishImageResize(node, BuiltinOperator::RESIZE_BILINEAR,
                           ScaleRule::kSame, is_within(1) ? 1 : 2, options);
}

constexpr RaisingRow kRows[] = {
    {"ResizeBilinear", RaiseResizeImage, BuiltinOperator::RESIZE_BILINEAR,
     ScaleRule::kSame},
    {"ResizeNearestNeighbor", RaiseResizeImage,
     BuiltinOperator::RESIZE_NEAREST_NEIGHBOR, ScaleRule::kDataMovement},
    {"Resize", RaiseResize},
};

}  // namespace

absl::Span<const RaisingRow> ImageRaisings() { return kRows; }

}  // namespace optfarm::formats::tflite_raising
