// Reductions along axes, positions of extremes, running sums.

#include <tflite/schema_generated.h>

#include <numeric>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "engine/formats/tflite/raising/raising_table.h"
#include "engine/graph/attr.h"

namespace optfarm::formats::tflite_raising {
namespace {

using tflite::BuiltinOperator;

absl::Status RaiseReduction(NodeRaiser& node) {
  OPTFARM_ASSIGN_OR_RETURN(std::vector<int64_t> axes, node.Numbers(1));
  LayerRequest request;
  request.rule = node.rule();
  request.inputs = {node.input(0)};
  const Layer layer = node.Begin(request);
  OperatorOptions options;
  OPTFARM_ASSIGN_OR_RETURN(options.keep_dims,
                           graph::GetBoolOr(node.def(), "keep_dims", false));
  for (int64_t& axis : axes) {
    OPTFARM_ASSIGN_OR_RETURN(axis, node.AxisOf(axis, 0));
  }
  node.Finish(layer, node.builtin(), {layer.inputs[0], node.Int32s(axes)},
              options);
  return absl::OkStatus();
}

absl::Status RaiseArgument(NodeRaiser& node) {
  OPTFARM_ASSIGN_OR_RETURN(const int64_t axis, node.Number(1));
  OPTFARM_ASSIGN_OR_RETURN(const int along, node.AxisOf(axis, 0));
  // Positions are the same among quantized values.
  const std::optional<TensorId> twin = node.tensors().Twin(node.input(0));
  const TensorId input = twin.has_value() ? *twin : node.Tensor(0);
  node.Emit(node.builtin(), {input, node.Int32(along)});
  return absl::OkStatus();
}

absl::Status RaiseCumsum(NodeRaiser& node) {
  OPTFARM_ASSIGN_OR_RETURN(const int64_t axis, node.Number(1));
  OPTFARM_ASSIGN_OR_RETURN(const int along, node.AxisOf(axis, 0));
  OperatorOptions options;
  OPTFARM_ASSIGN_OR_RETURN(options.exclusive,
                           graph::GetBoolOr(node.def(), "exclusive", false));
  OPTFARM_ASSIGN_OR_RETURN(options.reverse,
                           graph::GetBoolOr(node.def(), "reverse", false));
  node.Emit(BuiltinOperator::CUMSUM, {node.Tensor(0), node.Int32(along)},
            options);
  return absl::OkStatus();
}

constexpr RaisingRow kRows[] = {
    {"Mean", RaiseReduction, BuiltinOperator::MEAN, ScaleRule::kFree},
    {"Sum", RaiseReduction, BuiltinOperator::SUM, ScaleRule::kFree},
    {"Max", RaiseReduction, BuiltinOperator::REDUCE_MAX, ScaleRule::kSame},
    {"Min", RaiseReduction, BuiltinOperator::REDUCE_MIN, ScaleRule::kSame},
    {"Prod", RaiseReduction, BuiltinOperator::REDUCE_PROD},
    {"Any", RaiseReduction, BuiltinOperator::REDUCE_ANY},
    {"All", RaiseReduction, BuiltinOperator::REDUCE_ALL},
    {"ArgMax", RaiseArgument, BuiltinOperator::ARG_MAX},
    {"ArgMin", RaiseArgument, BuiltinOperator::ARG_MIN},
    {"Cumsum", RaiseCumsum},
};

}  // namespace

absl::Span<const RaisingRow> ReductionRaisings() { return kRows; }

}  // namespace optfarm::formats::tflite_raising
