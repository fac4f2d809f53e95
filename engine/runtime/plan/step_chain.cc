#include "engine/runtime/plan/step_chain.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/status_macros.h"

namespace optfarm::runtime {

StepChain::StepChain(std::vector<Step> steps, absl::Span<const int> inputs,
                     absl::Span<const int> outputs,
                     std::vector<ChainConstant> constants)
    : constants_(std::move(constants)) {
  absl::flat_hash_map<int, int> numbers;
  const auto number = [&](int slot) {
    const auto [it, added] = numbers.emplace(slot, value_count_);
    if (added) ++value_count_;
    return it->second;
  };
  // An input that comes twice has two places, of which readers take the first.
  for (int slot : inputs) {
    numbers.emplace(slot, value_count_);
    ++value_count_;
  }
  for (ChainConstant& constant : constants_) {
    constant.slot = number(constant.slot);
  }
  for (Step& step : steps) {
    Link link{std::move(step.kernel), step.name, step.op, {}, {}, {}};
    for (int slot : step.inputs) link.inputs.push_back(number(slot));
    for (int slot : step.controls) link.controls.push_back(number(slot));
    for (int slot : step.outputs) link.outputs.push_back(number(slot));
    links_.push_back(std::move(link));
  }
  for (int slot : outputs) outputs_.push_back(number(slot));
}

absl::Status StepChain::Run(KernelContext* context) const {
  std::vector<Tensor> values(value_count_);
  for (int i = 0; i < context->num_inputs(); ++i) values[i] = context->input(i);
  for (const ChainConstant& constant : constants_) {
    Tensor& value = values[constant.slot];
    value = constant.value;
    if (constant.restore) {
      OPTFARM_ASSIGN_OR_RETURN(value, constant.restore());
    }
  }
  for (const Link& link : links_) {
    const auto is_alive = [&](int i) { return values[i].has_value(); };
    if (!std::all_of(link.inputs.begin(), link.inputs.end(), is_alive) ||
        !std::all_of(link.controls.begin(), link.controls.end(), is_alive)) {
      continue;
    }
    std::vector<Tensor> in;
    for (int i : link.inputs) in.push_back(values[i]);
    if (link.kernel == nullptr) {
      values[link.outputs[0]] = in[0];
      continue;
    }
    std::vector<Tensor> out(link.outputs.size());
    KernelContext inner =
        context->WithTensors(absl::MakeSpan(in), absl::MakeSpan(out));
    const absl::Status status = link.kernel->Compute(&inner);
    // Who runs a chain of one names it.
    if (!status.ok() && links_.size() == 1) return status;
    if (!status.ok()) {
      return Annotate(status, DescribeNode(link.name, link.op));
    }
    for (size_t i = 0; i < out.size(); ++i) {
      values[link.outputs[i]] = std::move(out[i]);
    }
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    context->SetOutput(static_cast<int>(i), values[outputs_[i]]);
  }
  return absl::OkStatus();
}

}  // namespace optfarm::runtime
