// Layers that ONNX has and TensorFlow has not: recurrent layers over whole
// sequences, pools with all their settings, resizing by any rule, and norms.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/onnx/raising/raising_table.h"
#include "engine/formats/onnx/raising/window_attributes.h"
#include "engine/runtime/reference/nn/recurrent_activation.h"

namespace optfarm::formats {
namespace {

using tensorflow::DataType;

// An optional input without elements is one that is not given.
bool IsGiven(const NodeRaiser& n, int index) {
  return index < n.input_count() &&
         n.InShape(index).elements().value_or(1) != 0;
}

ValueId Optional(NodeRaiser& n, int index) {
  return IsGiven(n, index) ? n.In(index) : kNoValue;
}

void DropTrailing(std::vector<ValueId>* inputs) {
  while (!inputs->empty() && inputs->back() == kNoValue) inputs->pop_back();
}

// --- Recurrent layers --------------------------------------------------------

// The activations by name, where the node names them. Their factors are always
// written: runtimes have different ones for those that are left out.
absl::Status AddFunctions(const NodeRaiser& n, absl::string_view direction,
                          std::vector<OnnxAttribute>* attributes) {
  const auto* given = graph::FindAttr(n.def(), "activations");
  if (given == nullptr || given->list().s_size() == 0) return absl::OkStatus();
  const std::vector<std::string> names(given->list().s().begin(),
                                       given->list().s().end());
  const int64_t directions = direction == "bidirectional" ? 2 : 1;
  const std::vector<absl::string_view> usual(
      names.begin(),
      names.begin() + static_cast<int64_t>(names.size()) / directions);
  OPTFARM_ASSIGN_OR_RETURN(
      const std::vector<runtime::RecurrentActivation> functions,
      runtime::ReadRecurrentActivations(n.def(), directions, usual));
  std::vector<float> alphas, betas;
  for (const runtime::RecurrentActivation& function : functions) {
    function.AppendFactors(&alphas, &betas);
  }
  attributes->push_back({"activations", names});
  if (!alphas.empty()) attributes->push_back({"activation_alpha", alphas});
  if (!betas.empty()) attributes->push_back({"activation_beta", betas});
  return absl::OkStatus();
}

absl::StatusOr<std::vector<OnnxAttribute>> RecurrentAttributes(
    const NodeRaiser& n) {
  OPTFARM_ASSIGN_OR_RETURN(const int64_t hidden,
                           graph::GetInt(n.def(), "hidden_size"));
  OPTFARM_ASSIGN_OR_RETURN(const std::string direction,
                           graph::GetStringOr(n.def(), "direction", "forward"));
  OPTFARM_ASSIGN_OR_RETURN(const float clip,
                           graph::GetFloatOr(n.def(), "clip", 0));
  std::vector<OnnxAttribute> attributes = {{"hidden_size", hidden},
                                           {"direction", direction}};
  if (clip > 0) attributes.push_back({"clip", clip});
  OPTFARM_RETURN_IF_ERROR(AddFunctions(n, direction, &attributes));
  for (const char* name : {"input_forget", "linear_before_reset"}) {
    OPTFARM_ASSIGN_OR_RETURN(const bool is_set,
                             graph::GetBoolOr(n.def(), name, false));
    if (is_set) attributes.push_back({name, int64_t{1}});
  }
  return attributes;
}

absl::Status Recurrent(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(3));
  OPTFARM_ASSIGN_OR_RETURN(std::vector<OnnxAttribute> attributes,
                           RecurrentAttributes(n));
  std::vector<ValueId> inputs;
  for (int i = 0; i < n.input_count(); ++i) inputs.push_back(Optional(n, i));
  DropTrailing(&inputs);
  const int count = n.onnx_op() == "LSTM" ? 3 : 2;
  const std::vector<ValueId> outputs =
      n.EmitMany(n.onnx_op(), std::move(inputs), count, std::move(attributes));
  for (int port = 0; port < count; ++port) {
    n.SetPort(port, outputs[static_cast<size_t>(port)]);
  }
  return absl::OkStatus();
}

// --- Pools -------------------------------------------------------------------

absl::Status WindowPool(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(1));
  OPTFARM_ASSIGN_OR_RETURN(const std::string kind,
                           graph::GetStringOr(n.def(), "kind", "MAX"));
  std::vector<OnnxAttribute> attributes;
  for (const auto& [from, to] : {std::pair("kernel", "kernel_shape"),
                                 {"strides", "strides"},
                                 {"pads", "pads"}}) {
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> entries,
                             graph::GetInts(n.def(), from));
    attributes.push_back({to, entries});
  }
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> dilations,
                           graph::GetIntsOr(n.def(), "dilations", {}));
  const bool is_dilated = std::any_of(dilations.begin(), dilations.end(),
                                      [](int64_t d) { return d != 1; });
  if (is_dilated && kind != "MAX" && n.opset() < 19) {
    return absl::UnimplementedError(
        "an average over a dilated window needs opset 19");
  }
  if (is_dilated) attributes.push_back({"dilations", dilations});
  for (const char* name : {"ceil_mode", "count_include_pad"}) {
    OPTFARM_ASSIGN_OR_RETURN(const bool is_set,
                             graph::GetBoolOr(n.def(), name, false));
    if (is_set) attributes.push_back({name, int64_t{1}});
  }
  OPTFARM_ASSIGN_OR_RETURN(const int64_t order,
                           graph::GetIntOr(n.def(), "storage_order", 0));
  if (order != 0) attributes.push_back({"storage_order", order});
  if (kind != "MAX") {
    n.Set(n.Emit("AveragePool", {n.In(0)}, std::move(attributes)));
    return absl::OkStatus();
  }
  const bool has_indices = !n.graph().graph().UsesOf(n.output(1)).empty();
  const std::vector<ValueId> outputs = n.EmitMany(
      "MaxPool", {n.In(0)}, has_indices ? 2 : 1, std::move(attributes));
  n.SetPort(0, outputs[0]);
  if (has_indices) n.SetPort(1, outputs[1]);
  return absl::OkStatus();
}

// --- Resizing ----------------------------------------------------------------

// Values of some axes as values of all of them, for opsets without `axes`.
template <typename T>
absl::StatusOr<std::vector<T>> ForAllAxes(const NodeRaiser& n,
                                          const std::vector<T>& values,
                                          const std::vector<int64_t>& axes,
                                          std::vector<T> all) {
  if (axes.empty()) return values;
  for (size_t i = 0; i < axes.size() && i < values.size(); ++i) {
    OPTFARM_ASSIGN_OR_RETURN(const int axis,
                             n.Axis(axes[i], static_cast<int>(all.size())));
    all[static_cast<size_t>(axis)] = values[i];
  }
  return all;
}

// Scales, sizes: one of them is given.
absl::StatusOr<std::vector<ValueId>> ResizeTargets(
    NodeRaiser& n, const std::vector<int64_t>& axes) {
  const bool names_axes = !axes.empty() && n.opset() >= 18;
  const auto* fixed = graph::FindAttr(n.def(), "fixed_scales");
  std::optional<std::vector<float>> scales;
  if (fixed != nullptr && fixed->list().f_size() > 0) {
    scales.emplace(fixed->list().f().begin(), fixed->list().f().end());
  }
  if (axes.empty() || names_axes) {
    if (scales.has_value()) {
      return std::vector<ValueId>{n.graph().AddFloats(*scales, n.name()),
                                  kNoValue};
    }
    return std::vector<ValueId>{Optional(n, 2), Optional(n, 3)};
  }
  OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(0));
  if (!scales.has_value() && IsGiven(n, 2)) {
    scales = n.graph().FloatsOf(n.input(2));
  }
  if (scales.has_value()) {
    OPTFARM_ASSIGN_OR_RETURN(
        const std::vector<float> all,
        ForAllAxes(n, *scales, axes,
                   std::vector<float>(static_cast<size_t>(rank), 1.0f)));
    return std::vector<ValueId>{n.graph().AddFloats(all, n.name()), kNoValue};
  }
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes,
                           n.Integers(3, "its size, with opset 17 or before,"));
  if (!n.InShape(0).is_static()) {
    return absl::FailedPreconditionError(
        "its shape is not known, which resizing of some axes needs with opset "
        "17 or before");
  }
  OPTFARM_ASSIGN_OR_RETURN(
      const std::vector<int64_t> all,
      ForAllAxes(n, sizes, axes,
                 std::vector<int64_t>(n.InShape(0).dims().begin(),
                                      n.InShape(0).dims().end())));
  return std::vector<ValueId>{kNoValue, n.Ints(all)};
}

absl::StatusOr<std::vector<OnnxAttribute>> ResizeAttributes(
    const NodeRaiser& n, const std::vector<int64_t>& axes) {
  std::vector<OnnxAttribute> attributes;
  for (const auto& [from, to] :
       {std::pair("mode", "mode"),
        {"coordinates", "coordinate_transformation_mode"},
        {"nearest_mode", "nearest_mode"}}) {
    OPTFARM_ASSIGN_OR_RETURN(const std::string value,
                             graph::GetStringOr(n.def(), from, ""));
    if (!value.empty()) attributes.push_back({to, value});
  }
  OPTFARM_ASSIGN_OR_RETURN(const float cubic,
                           graph::GetFloatOr(n.def(), "cubic_coeff_a", -0.75f));
  OPTFARM_ASSIGN_OR_RETURN(
      const float beyond, graph::GetFloatOr(n.def(), "extrapolation_value", 0));
  attributes.push_back({"cubic_coeff_a", cubic});
  attributes.push_back({"extrapolation_value", beyond});
  OPTFARM_ASSIGN_OR_RETURN(const bool excludes,
                           graph::GetBoolOr(n.def(), "exclude_outside", false));
  if (excludes) attributes.push_back({"exclude_outside", int64_t{1}});
  OPTFARM_ASSIGN_OR_RETURN(const bool antialias,
                           graph::GetBoolOr(n.def(), "antialias", false));
  OPTFARM_ASSIGN_OR_RETURN(
      const std::string aspect,
      graph::GetStringOr(n.def(), "keep_aspect_ratio", "stretch"));
  if (n.opset() < 18) {
    if (antialias || aspect != "stretch") {
      return absl::UnimplementedError(
          "smoothing and kept proportions need opset 18");
    }
    return attributes;
  }
  if (antialias) attributes.push_back({"antialias", int64_t{1}});
  attributes.push_back({"keep_aspect_ratio_policy", aspect});
  if (!axes.empty()) attributes.push_back({"axes", axes});
  return attributes;
}

absl::Status Resize(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(4));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> axes,
                           graph::GetIntsOr(n.def(), "axes", {}));
  OPTFARM_ASSIGN_OR_RETURN(std::vector<OnnxAttribute> attributes,
                           ResizeAttributes(n, axes));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<ValueId> targets,
                           ResizeTargets(n, axes));
  std::vector<ValueId> inputs = {n.In(0), Optional(n, 1), targets[0],
                                 targets[1]};
  DropTrailing(&inputs);
  n.Set(n.Emit("Resize", std::move(inputs), std::move(attributes)));
  return absl::OkStatus();
}

// --- Norms -------------------------------------------------------------------

absl::Status InstanceNorm(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(3));
  OPTFARM_ASSIGN_OR_RETURN(const float epsilon,
                           graph::GetFloatOr(n.def(), "epsilon", 1e-5f));
  OPTFARM_ASSIGN_OR_RETURN(const bool channels_first, HasChannelsFirst(n));
  OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(0));
  const AxisOrder order = channels_first ? AxisOrder() : ChannelsSecond(rank);
  n.Set(n.Emit("InstanceNormalization", {n.In(0, order), n.In(1), n.In(2)},
               {{"epsilon", epsilon}}),
        order);
  return absl::OkStatus();
}

// Groups as channels of an instance norm, then scale and bias of each channel.
absl::Status GroupNorm(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(3));
  OPTFARM_ASSIGN_OR_RETURN(const float epsilon,
                           graph::GetFloatOr(n.def(), "epsilon", 1e-5f));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t groups,
                           graph::GetInt(n.def(), "groups"));
  OPTFARM_ASSIGN_OR_RETURN(const bool channels_first, HasChannelsFirst(n));
  OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(0));
  if (groups < 1 || groups > (1 << 20) || rank < 2) {
    return absl::InvalidArgumentError(absl::StrCat("groups is ", groups));
  }
  const AxisOrder order = channels_first ? AxisOrder() : ChannelsSecond(rank);
  const ValueId x = n.In(0, order);
  const std::vector<float> ones(static_cast<size_t>(groups), 1.0f);
  const std::vector<float> zeros(static_cast<size_t>(groups), 0.0f);
  const ValueId grouped = n.Reshape(x, {0, groups, -1});
  const ValueId normed = n.Emit("InstanceNormalization",
                                {grouped, n.graph().AddFloats(ones, "ones"),
                                 n.graph().AddFloats(zeros, "zeros")},
                                {{"epsilon", epsilon}});
  const ValueId back = n.Emit("Reshape", {normed, n.Emit("Shape", {x})});
  ValueId scale = n.In(1), bias = n.In(2);
  if (rank > 2) {
    std::vector<int64_t> axes;
    for (int axis = 1; axis < rank - 1; ++axis) axes.push_back(axis);
    scale = n.Unsqueeze(scale, axes);
    bias = n.Unsqueeze(bias, axes);
  }
  n.Set(n.Emit("Add", {n.Emit("Mul", {back, scale}), bias}), order);
  return absl::OkStatus();
}

constexpr RaisingRow kRows[] = {
    {"LstmSequence", Recurrent, "LSTM"},
    {"GruSequence", Recurrent, "GRU"},
    {"RnnSequence", Recurrent, "RNN"},
    {"WindowPool", WindowPool},
    {"Resize", Resize},
    {"InstanceNorm", InstanceNorm},
    {"GroupNorm", GroupNorm},
};

}  // namespace

absl::Span<const RaisingRow> LayerRaisings() { return kRows; }

}  // namespace optfarm::formats
