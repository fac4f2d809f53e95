#include "engine/runtime/core/half_through_float.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/op_defs.h"
#include "engine/runtime/core/half.h"

namespace optfarm::runtime {
namespace {

class HalfThroughFloat final : public Kernel {
 public:
  HalfThroughFloat(std::vector<DataType> outputs,
                   std::unique_ptr<Kernel> in_float)
      : outputs_(std::move(outputs)), in_float_(std::move(in_float)) {}

  absl::Status Compute(KernelContext* context) const override {
    std::vector<Tensor> inputs(context->num_inputs());
    for (int i = 0; i < context->num_inputs(); ++i) {
      inputs[i] = context->input(i);
      if (!IsHalf(inputs[i].dtype())) continue;
      OPTFARM_ASSIGN_OR_RETURN(inputs[i], HalfAsFloat(inputs[i]));
    }
    std::vector<Tensor> outputs(context->num_outputs());
    KernelContext wide =
        context->WithTensors(absl::MakeSpan(inputs), absl::MakeSpan(outputs));
    OPTFARM_RETURN_IF_ERROR(in_float_->Compute(&wide));
    for (int i = 0; i < context->num_outputs(); ++i) {
      if (outputs[i].dtype() == tensorflow::DT_FLOAT &&
          i < static_cast<int>(outputs_.size()) && IsHalf(outputs_[i])) {
        OPTFARM_ASSIGN_OR_RETURN(outputs[i],
                                 FloatAsHalf(outputs[i], outputs_[i]));
      }
      if (outputs[i].has_value()) {
        context->SetOutput(i, std::move(outputs[i]));
      }
    }
    return absl::OkStatus();
  }

 private:
  std::vector<DataType> outputs_;
  std::unique_ptr<Kernel> in_float_;
};

}  // namespace

std::optional<HalfAttributes> FindHalfAttributes(
    const tensorflow::NodeDef& node) {
  const tensorflow::OpDef* def = graph::FindOpDef(node.op());
  if (def == nullptr) return std::nullopt;
  // A variable is written where it stands: no conversion stands between.
  for (const auto& argument : def->input_arg()) {
    if (argument.is_ref() || argument.type() == tensorflow::DT_RESOURCE) {
      return std::nullopt;
    }
  }
  absl::StatusOr<std::vector<DataType>> outputs =
      graph::OutputTypes(*def, node);
  if (!outputs.ok()) return std::nullopt;
  HalfAttributes halves{node, {}};
  for (DataType type : *outputs) {
    halves.outputs.push_back(graph::BaseType(type));
  }
  bool found = false;
  for (auto& [name, value] : *halves.float_node.mutable_attr()) {
    if (value.value_case() == tensorflow::AttrValue::kType &&
        IsHalf(value.type())) {
      value.set_type(tensorflow::DT_FLOAT);
      found = true;
    }
  }
  if (!found) return std::nullopt;
  return halves;
}

std::unique_ptr<Kernel> MakeHalfThroughFloat(const HalfAttributes& halves,
                                             std::unique_ptr<Kernel> in_float) {
  return std::make_unique<HalfThroughFloat>(halves.outputs,
                                            std::move(in_float));
}

}  // namespace optfarm::runtime
