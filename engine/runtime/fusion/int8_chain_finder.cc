#include "engine/runtime/fusion/int8_chain_finder.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "engine/graph/attr.h"
#include "engine/graph/ops/op_table.h"
#include "engine/graph/spatial_attrs.h"
#include "engine/runtime/reference/quantized/quantized_arithmetic.h"

namespace optfarm::runtime {
namespace {

// Longer chains do not occur; bounds the work on a graph made to hurt.
constexpr size_t kMostCuts = 32;

std::optional<float> ConstantFloat(const PlanEditor& plan, int slot) {
  const Tensor* value = plan.ConstantOf(slot);
  if (value == nullptr || value->dtype() != tensorflow::DT_FLOAT ||
      value->num_elements() != 1) {
    return std::nullopt;
  }
  return value->data<float>()[0];
}

// One integer, or a list of one.
bool IsOneInteger(const Tensor* value, int64_t wanted) {
  if (value == nullptr || value->num_elements() != 1) return false;
  const auto integers = value->AsInt64s();
  return integers.ok() && (*integers)[0] == wanted;
}

class Finder {
 public:
  Finder(const PlanEditor& plan, Int8ChainCut begin, int rank)
      : plan_(plan), at_(std::move(begin)), rank_(rank) {}

  std::vector<Int8ChainCut> Find() {
    std::vector<Int8ChainCut> cuts;
    for (size_t steps = 0; steps < kMostCuts; ++steps) {
      // A range for each channel cannot be given.
      if (!at_.chain.is_per_channel()) cuts.push_back(at_);
      if (!Advance()) break;
    }
    std::reverse(cuts.begin(), cuts.end());
    return cuts;
  }

 private:
  // Takes the next step or steps into the chain.
  bool Advance();
  bool TakeAccumulators(const std::vector<int>& readers);
  bool TakeQuantized(const Step& step);
  bool TakeFloat(const std::vector<int>& readers);
  bool TakeFloatStep(const Step& step);

  bool TakeFoundRequantize(int range, int requantize);
  bool TakeFoundQuantize(int reshape, int quantize);
  bool TakeFoundRange(int range, int requantize);
  bool TakeDequantize(const Step& step);
  bool TakeDequantizePerChannel(const Step& step);

  // Whether inputs first, first + 1, ... of a step are the chain's quantized
  // values (at input 0 if need be) and their range.
  bool ReadsRange(const Step& step, int first) const {
    return step.inputs[first] == at_.outputs[1] &&
           step.inputs[first + 1] == at_.outputs[2];
  }
  std::optional<Int8Operand> OperandOf(const Step& step, bool may_be_first,
                                       bool is_bias) const;
  // The values of a constant that is one for all channels or one for each.
  const Tensor* ByChannel(int slot, DataType dtype) const;
  bool Enter(std::vector<int> steps, const Step& last) {
    is_layer_ = false;
    at_.members.insert(at_.members.end(), steps.begin(), steps.end());
    std::sort(at_.members.begin(), at_.members.end());
    at_.outputs = last.outputs;
    return true;
  }
  const Step* StepAt(int number) const { return plan_.step(number); }

  const PlanEditor& plan_;
  Int8ChainCut at_;
  int rank_;
  // The numbers are those of the product itself, in its own steps.
  bool is_layer_ = true;
};

const Tensor* Finder::ByChannel(int slot, DataType dtype) const {
  const Tensor* value = plan_.ConstantOf(slot);
  if (value == nullptr || value->dtype() != dtype || value->rank() > rank_) {
    return nullptr;
  }
  const int64_t count = value->num_elements();
  if (count == 1) return value;
  const bool is_row = value->rank() > 0 &&
                      value->dim(value->rank() - 1) == count &&
                      count == at_.chain.channels();
  return is_row ? value : nullptr;
}

bool Finder::Advance() {
  std::vector<int> readers = plan_.ReadersOf(at_.outputs[0]);
  // Twice in one step is a square, not a chain.
  std::sort(readers.begin(), readers.end());
  if (readers.empty() ||
      std::adjacent_find(readers.begin(), readers.end()) != readers.end()) {
    return false;
  }
  switch (at_.chain.state()) {
    case Int8State::kAccumulators:
      return TakeAccumulators(readers);
    case Int8State::kQuantized:
      return readers.size() == 1 && TakeQuantized(*StepAt(readers[0]));
    case Int8State::kFloat:
      return TakeFloat(readers);
  }
  return false;
}

bool Finder::TakeAccumulators(const std::vector<int>& readers) {
  if (readers.size() == 2) {
    for (int i = 0; i < 2; ++i) {
      const graph::OpRole role = graph::RowOf(StepAt(readers[i])->op).role;
      if (role == graph::OpRole::kRequantizationRange &&
          !at_.chain.is_per_channel()) {
        return TakeFoundRequantize(readers[i], readers[1 - i]);
      }
      if (role == graph::OpRole::kRequantizationRangePerChannel) {
        return TakeFoundRange(readers[i], readers[1 - i]);
      }
    }
    return false;
  }
  if (readers.size() != 1) return false;
  const Step& step = *StepAt(readers[0]);
  if (graph::HasRole(step.op, graph::OpRole::kRequantizePerChannel) &&
      ReadsRange(step, 1)) {
    const std::optional<Range> range =
        ConstantRange(plan_, step.inputs[3], step.inputs[4]);
    if (!range || !is_layer_) return false;
    at_.chain.AddRequantizePerChannel(*range, 0);
    return Enter(readers, step);
  }
  if (at_.chain.is_per_channel()) return TakeDequantizePerChannel(step);
  if (graph::IsDequantize(step.op)) return TakeDequantize(step);
  if (step.inputs.size() < 3 || !ReadsRange(step, 1)) return false;
  const graph::Activation activation = graph::QuantizedActivationOf(step.op);
  if (activation != graph::Activation::kNone) {
    at_.chain.AddQuantizedActivation(activation);
    return Enter(readers, step);
  }
  if (!graph::HasRole(step.op, graph::OpRole::kRequantize)) return false;
  const std::optional<Range> range =
      ConstantRange(plan_, step.inputs[3], step.inputs[4]);
  if (!range) return false;
  at_.chain.AddRequantize(*range);
  return Enter(readers, step);
}

bool Finder::TakeFoundRequantize(int range, int requantize) {
  const Step& finds = *StepAt(range);
  const Step& step = *StepAt(requantize);
  if (!graph::HasRole(step.op, graph::OpRole::kRequantize) ||
      !ReadsRange(finds, 1) || !ReadsRange(step, 1) ||
      step.inputs[3] != finds.outputs[0] ||
      step.inputs[4] != finds.outputs[1]) {
    return false;
  }
  at_.chain.AddRequantize(std::nullopt);
  return Enter({range, requantize}, step);
}

bool Finder::TakeFoundRange(int range, int requantize) {
  const Step& finds = *StepAt(range);
  const Step& step = *StepAt(requantize);
  if (!graph::HasRole(step.op, graph::OpRole::kRequantizePerChannel) ||
      !is_layer_ || finds.node == nullptr || !ReadsRange(finds, 1) ||
      !ReadsRange(step, 1) || step.inputs[3] != finds.outputs[0] ||
      step.inputs[4] != finds.outputs[1]) {
    return false;
  }
  const auto clip = graph::GetFloat(*finds.node, "clip_value_max");
  if (!clip.ok()) return false;
  at_.chain.AddRequantizePerChannel(std::nullopt, *clip);
  return Enter({range, requantize}, step);
}

bool Finder::TakeDequantize(const Step& step) {
  if (step.node == nullptr || !ReadsRange(step, 1)) return false;
  const auto mode = QuantizeModeOf(*step.node);
  const auto dtype = graph::GetType(*step.node, "T");
  const DataType wanted = at_.chain.state() == Int8State::kQuantized
                              ? tensorflow::DT_QUINT8
                              : tensorflow::DT_QINT32;
  if (!mode.ok() || !dtype.ok() || *dtype != wanted) return false;
  at_.chain.AddDequantize(*mode);
  return Enter(plan_.ReadersOf(at_.outputs[0]), step);
}

bool Finder::TakeDequantizePerChannel(const Step& step) {
  if (!graph::IsDequantize(step.op) || step.node == nullptr || !is_layer_ ||
      !ReadsRange(step, 1)) {
    return false;
  }
  const auto mode = QuantizeModeOf(*step.node);
  const auto dtype = graph::GetType(*step.node, "T");
  const auto axis = graph::GetIntOr(*step.node, "axis", -1);
  if (!mode.ok() || *mode != QuantizeMode::kScaled || !dtype.ok() ||
      *dtype != tensorflow::DT_QINT32 || !axis.ok() || *axis != rank_ - 1) {
    return false;
  }
  at_.chain.AddScales(/*are_ranges=*/true);
  return Enter(plan_.ReadersOf(at_.outputs[0]), step);
}

std::optional<Int8Operand> Finder::OperandOf(const Step& step,
                                             bool may_be_first,
                                             bool is_bias) const {
  if (step.inputs.size() != 6) return std::nullopt;
  const int mine = step.inputs[0] == at_.outputs[0] ? 0 : 1;
  const int other = 1 - mine;
  if ((mine == 1 && !may_be_first) || !ReadsRange(step, 2 + 2 * mine)) {
    return std::nullopt;
  }
  const Tensor* quantized =
      ByChannel(step.inputs[other], tensorflow::DT_QUINT8);
  const std::optional<Range> range = ConstantRange(
      plan_, step.inputs[2 + 2 * other], step.inputs[3 + 2 * other]);
  if (quantized == nullptr || !range) return std::nullopt;
  // QuantizedBiasAdd insists on one value for each channel.
  if (is_bias && (quantized->rank() != 1 ||
                  quantized->num_elements() != at_.chain.channels())) {
    return std::nullopt;
  }
  const auto flat = quantized->flat<uint8_t>();
  return Int8Operand{{flat.begin(), flat.end()}, *range};
}

bool Finder::TakeQuantized(const Step& step) {
  if (graph::IsDequantize(step.op)) return TakeDequantize(step);
  const std::vector<int> number = plan_.ReadersOf(at_.outputs[0]);
  const graph::Activation activation = graph::QuantizedActivationOf(step.op);
  if (activation != graph::Activation::kNone) {
    if (!ReadsRange(step, 1)) return false;
    at_.chain.AddQuantizedActivation(activation);
    return Enter(number, step);
  }
  const graph::OpRole role = graph::RowOf(step.op).role;
  const bool is_bias = role == graph::OpRole::kQuantizedBiasAdd;
  const bool is_sum = role == graph::OpRole::kQuantizedAdd;
  if (!is_bias && !is_sum && role != graph::OpRole::kQuantizedMultiply) {
    return false;
  }
  std::optional<Int8Operand> operand = OperandOf(step, !is_bias, is_bias);
  if (!operand) return false;
  if (is_bias) {
    at_.chain.AddQuantizedBiasAdd(*std::move(operand));
  } else if (is_sum) {
    at_.chain.AddQuantizedAdd(*std::move(operand));
  } else {
    at_.chain.AddQuantizedMul(*std::move(operand));
  }
  return Enter(number, step);
}

bool Finder::TakeFloat(const std::vector<int>& readers) {
  if (readers.size() == 2) {
    for (int i = 0; i < 2; ++i) {
      if (graph::IsReshape(StepAt(readers[i])->op)) {
        return TakeFoundQuantize(readers[i], readers[1 - i]);
      }
    }
    return false;
  }
  return readers.size() == 1 && TakeFloatStep(*StepAt(readers[0]));
}

bool Finder::TakeFoundQuantize(int reshape, int quantize) {
  const Step& step = *StepAt(quantize);
  if (!IsPlainQuantize(step)) return false;
  const auto found = FindRangeSteps(plan_, step);
  if (!found || found->list != reshape || step.inputs[0] != at_.outputs[0]) {
    return false;
  }
  at_.chain.AddQuantize(std::nullopt);
  return Enter({reshape, found->min, found->max, quantize}, step);
}

bool Finder::TakeFloatStep(const Step& step) {
  const std::vector<int> number = plan_.ReadersOf(at_.outputs[0]);
  if (step.node == nullptr) return false;
  const graph::OpRow& row = graph::RowOf(step.op);
  if (graph::ActivationOf(step.op) != graph::Activation::kNone) {
    at_.chain.AddActivation(row.activation);
    return Enter(number, step);
  }
  if (IsPlainQuantize(step)) {
    const std::optional<Range> range =
        ConstantRange(plan_, step.inputs[1], step.inputs[2]);
    if (!range) return false;
    at_.chain.AddQuantize(*range);
    return Enter(number, step);
  }
  const bool is_bias = row.role == graph::OpRole::kBiasAdd;
  const bool is_sum = is_bias || row.role == graph::OpRole::kAdd;
  if ((!is_sum && row.role != graph::OpRole::kMultiply) ||
      step.inputs.size() != 2) {
    return false;
  }
  const int mine = step.inputs[0] == at_.outputs[0] ? 0 : 1;
  const Tensor* operand =
      ByChannel(step.inputs[1 - mine], tensorflow::DT_FLOAT);
  if (operand == nullptr) return false;
  if (is_bias &&
      (mine != 0 || !graph::IsNhwc(*step.node) || operand->rank() != 1 ||
       operand->num_elements() != at_.chain.channels())) {
    return false;
  }
  const auto values = operand->flat<float>();
  if (!std::all_of(values.begin(), values.end(),
                   [](float value) { return std::isfinite(value); })) {
    return false;
  }
  if (is_sum) {
    at_.chain.AddAdd(values);
  } else {
    at_.chain.AddMul(values);
  }
  return Enter(number, step);
}

}  // namespace

std::optional<Range> ConstantRange(const PlanEditor& plan, int min, int max) {
  const std::optional<float> low = ConstantFloat(plan, min);
  const std::optional<float> high = ConstantFloat(plan, max);
  if (!low || !high || !std::isfinite(*low) || !std::isfinite(*high) ||
      *low > *high) {
    return std::nullopt;
  }
  return Range{*low, *high};
}

bool IsPlainQuantize(const Step& step) {
  if (!graph::IsQuantize(step.op) || step.node == nullptr ||
      step.inputs.size() != 3 || step.outputs.size() != 3) {
    return false;
  }
  const auto mode = QuantizeModeOf(*step.node);
  const auto dtype = graph::GetType(*step.node, "T");
  return mode.ok() && dtype.ok() && *mode == QuantizeMode::kMinFirst &&
         *dtype == tensorflow::DT_QUINT8;
}

std::optional<Int8FoundRange> FindRangeSteps(const PlanEditor& plan,
                                             const Step& quantize) {
  const int least = plan.ProducerOf(quantize.inputs[1]);
  const int most = plan.ProducerOf(quantize.inputs[2]);
  if (least == kNoStep || most == kNoStep) return std::nullopt;
  const Step *min = plan.step(least), *max = plan.step(most);
  if (!graph::HasRole(min->op, graph::OpRole::kMin) ||
      !graph::HasRole(max->op, graph::OpRole::kMax) ||
      min->inputs.size() != 2 || max->inputs.size() != 2 ||
      min->inputs[0] != max->inputs[0] ||
      !IsOneInteger(plan.ConstantOf(min->inputs[1]), 0) ||
      !IsOneInteger(plan.ConstantOf(max->inputs[1]), 0)) {
    return std::nullopt;
  }
  const int list = plan.ProducerOf(min->inputs[0]);
  if (list == kNoStep) return std::nullopt;
  const Step& reshape = *plan.step(list);
  if (!graph::IsReshape(reshape.op) || reshape.inputs.size() != 2 ||
      reshape.inputs[0] != quantize.inputs[0]) {
    return std::nullopt;
  }
  const Tensor* dims = plan.ConstantOf(reshape.inputs[1]);
  if (!IsOneInteger(dims, -1) || dims->rank() != 1) return std::nullopt;
  return Int8FoundRange{list, least, most};
}

std::vector<Int8ChainCut> FindInt8Chains(const PlanEditor& plan,
                                         Int8ChainCut begin, int rank) {
  return Finder(plan, std::move(begin), rank).Find();
}

}  // namespace optfarm::runtime
