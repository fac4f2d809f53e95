// Ops of ONNX's own that pick, cut and pad along axes which come as tensors.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/onnx/raising/raising_table.h"

namespace optfarm::formats {
namespace {

// Inputs as they are, without optional ones that have no elements.
std::vector<ValueId> GivenInputs(NodeRaiser& n) {
  std::vector<ValueId> inputs;
  for (int i = 0; i < n.input_count(); ++i) {
    const bool is_given = n.InShape(i).elements().value_or(1) != 0;
    inputs.push_back(i == 0 || is_given ? n.In(i) : kNoValue);
  }
  while (!inputs.empty() && inputs.back() == kNoValue) inputs.pop_back();
  return inputs;
}

absl::Status Plain(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(1));
  n.Set(n.Emit(n.onnx_op(), GivenInputs(n)));
  return absl::OkStatus();
}

// The same with the attribute `axis`.
absl::Status AlongAxis(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(2));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t axis,
                           graph::GetIntOr(n.def(), "axis", 0));
  std::vector<OnnxAttribute> attributes = {{"axis", axis}};
  OPTFARM_ASSIGN_OR_RETURN(const std::string reduction,
                           graph::GetStringOr(n.def(), "reduction", "none"));
  if (reduction != "none") {
    if (n.opset() < 16 ||
        (n.opset() < 18 && reduction[0] == 'm' && reduction != "mul")) {
      return absl::UnimplementedError(
          absl::StrCat("the reduction '", reduction, "' needs opset ",
                       reduction == "add" || reduction == "mul" ? 16 : 18));
    }
    attributes.push_back({"reduction", reduction});
  }
  n.Set(n.Emit(n.onnx_op(), GivenInputs(n), std::move(attributes)));
  return absl::OkStatus();
}

absl::Status GatherNdBatched(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(2));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t batch_dims,
                           graph::GetIntOr(n.def(), "batch_dims", 0));
  const ValueId indices = n.Cast(n.In(1), n.InType(1), tensorflow::DT_INT64);
  n.Set(n.Emit("GatherND", {n.In(0), indices}, {{"batch_dims", batch_dims}}));
  return absl::OkStatus();
}

// Bounds of some axes; the axes are those of the file where they are known.
absl::Status SliceAxes(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(5));
  const auto axes = n.graph().IntegersOf(n.input(3));
  const AxisOrder order = n.OrderOf(0);
  if (order.empty() || !axes.has_value() || axes->empty()) {
    n.Set(n.Emit("Slice", GivenInputs(n)));
    return absl::OkStatus();
  }
  std::vector<int64_t> in_file;
  for (int64_t axis : *axes) {
    OPTFARM_ASSIGN_OR_RETURN(const int counted,
                             n.Axis(axis, static_cast<int>(order.size())));
    in_file.push_back(AxisInFile(order, counted));
  }
  std::vector<ValueId> inputs = {n.In(0, order), n.InAsInt64(1), n.InAsInt64(2),
                                 n.Ints(in_file)};
  if (n.InShape(4).elements().value_or(1) != 0) {
    inputs.push_back(n.InAsInt64(4));
  }
  n.Set(n.Emit("Slice", std::move(inputs)), order);
  return absl::OkStatus();
}

absl::Status PadAxes(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(2));
  OPTFARM_ASSIGN_OR_RETURN(const std::string mode,
                           graph::GetStringOr(n.def(), "mode", "constant"));
  if (mode == "wrap" && n.opset() < 19) {
    return absl::UnimplementedError("padding that wraps needs opset 19");
  }
  std::vector<ValueId> inputs = GivenInputs(n);
  if (inputs.size() > 3 && n.opset() < 18) {
    return absl::UnimplementedError("padding of some axes needs opset 18");
  }
  n.Set(n.Emit("Pad", std::move(inputs), {{"mode", mode}}));
  return absl::OkStatus();
}

absl::Status ReshapeCopy(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(2));
  OPTFARM_ASSIGN_OR_RETURN(const bool allow_zero,
                           graph::GetBoolOr(n.def(), "allow_zero", false));
  std::vector<OnnxAttribute> attributes;
  if (allow_zero && n.opset() >= 14) {
    attributes.push_back({"allowzero", int64_t{1}});
  }
  n.Set(n.Emit("Reshape", {n.In(0), n.InAsInt64(1)}, std::move(attributes)));
  return absl::OkStatus();
}

absl::Status Trilu(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(1));
  if (n.opset() < 14) {
    return absl::UnimplementedError("it needs opset 14");
  }
  OPTFARM_ASSIGN_OR_RETURN(const bool upper,
                           graph::GetBoolOr(n.def(), "upper", true));
  n.Set(n.Emit("Trilu", GivenInputs(n), {{"upper", int64_t{upper ? 1 : 0}}}));
  return absl::OkStatus();
}

// Pictures have their channels first. Modes have other names since opset 20.
absl::Status GridSample(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(2));
  if (n.opset() < 16) return absl::UnimplementedError("it needs opset 16");
  OPTFARM_ASSIGN_OR_RETURN(std::string mode,
                           graph::GetStringOr(n.def(), "mode", "linear"));
  OPTFARM_ASSIGN_OR_RETURN(
      const std::string padding,
      graph::GetStringOr(n.def(), "padding_mode", "zeros"));
  OPTFARM_ASSIGN_OR_RETURN(const bool align,
                           graph::GetBoolOr(n.def(), "align_corners", false));
  if (n.opset() < 20 && mode != "nearest") {
    mode = mode == "linear" ? "bilinear" : "bicubic";
  }
  n.Set(n.Emit("GridSample", {n.In(0), n.In(1)},
               {{"mode", mode},
                {"padding_mode", padding},
                {"align_corners", int64_t{align ? 1 : 0}}}));
  return absl::OkStatus();
}

absl::Status MultiClassSuppression(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(2));
  OPTFARM_ASSIGN_OR_RETURN(const bool centered,
                           graph::GetBoolOr(n.def(), "centered", false));
  n.Set(n.Emit("NonMaxSuppression", GivenInputs(n),
               {{"center_point_box", int64_t{centered ? 1 : 0}}}));
  return absl::OkStatus();
}

constexpr RaisingRow kRows[] = {
    {"GatherElements", AlongAxis, "GatherElements"},
    {"ScatterElements", AlongAxis, "ScatterElements"},
    {"Compress", AlongAxis, "Compress"},
    {"GatherNdBatched", GatherNdBatched},
    {"SliceAxes", SliceAxes},
    {"PadAxes", PadAxes},
    {"ReshapeCopy", ReshapeCopy},
    {"SqueezeAxes", Plain, "Squeeze"},
    {"UnsqueezeAxes", Plain, "Unsqueeze"},
    {"Trilu", Trilu},
    {"GridSample", GridSample},
    {"MultiClassNonMaxSuppression", MultiClassSuppression},
};

}  // namespace

absl::Span<const RaisingRow> AxesRaisings() { return kRows; }

}  // namespace optfarm::formats
