// What else stands between DequantizeLinear and QuantizeLinear: sums, products,
// pooling, functions of one tensor, and data movement.

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "engine/graph/attr.h"
#include "engine/graph/ops/op_table.h"
#include "engine/runtime/fusion/qdq/qdq_fuser.h"
#include "engine/runtime/fusion/qdq/qdq_movement.h"
#include "engine/runtime/fusion/qdq/qdq_pool.h"
#include "engine/runtime/reference/catalog.h"

namespace optfarm::runtime {
namespace {

bool IsAmong(absl::string_view op, absl::string_view list) {
  for (absl::string_view name : absl::StrSplit(list, ',')) {
    if (name == op) return true;
  }
  return false;
}

// Each element of the result is a function of the elements of the inputs at its
// place, where inputs of one element have one for all.
constexpr char kElementOps[] =
    "Abs,Add,AddV2,Ceil,Celu,ClipByValue,Cos,Elu,Erf,Exp,Floor,Gelu,"
    "HardSigmoid,HardSwish,Identity,LeakyRelu,Log,Log1p,Maximum,Minimum,Mish,"
    "Mul,Neg,Pow,PRelu,RealDiv,Reciprocal,Relu,Relu6,Round,Rsqrt,Selu,Sigmoid,"
    "Sign,Sin,Softplus,Softsign,Sqrt,Square,SquaredDifference,Sub,Swish,Tanh,"
    "ThresholdedRelu";

// Deeper expressions are left alone.
constexpr int kMostElementOps = 16;

// The values of a tensor as what follows from one quantized tensor alone.
class TableMaker {
 public:
  TableMaker(const PlanEditor& plan, const QdqTail& tail)
      : plan_(plan), tail_(tail) {}

  // Follows what makes a slot. False when it is not that.
  bool Collect(int slot);
  const std::vector<int>& members() const { return members_; }
  const std::optional<QdqSource>& source() const { return source_; }
  // REQUIRES: Collect(tail.slot), and members ascend.
  std::optional<QdqTable> Make();
  void Sort() { std::sort(members_.begin(), members_.end()); }

 private:
  std::optional<Tensor> Evaluate(const Step& step);

  const PlanEditor& plan_;
  const QdqTail& tail_;
  std::vector<int> members_;
  std::optional<QdqSource> source_;
  absl::flat_hash_map<int, Tensor> values_;
};

bool TableMaker::Collect(int slot) {
  const Tensor* constant = plan_.ConstantOf(slot);
  if (constant != nullptr) return constant->num_elements() == 1;
  if (const auto source = ReadQdqSource(plan_, slot)) {
    if (!source_) source_ = source;
    return source_->floats == slot;
  }
  const int number = plan_.ProducerOf(slot);
  if (number == kNoStep || plan_.step(number) == nullptr) return false;
  if (std::find(members_.begin(), members_.end(), number) != members_.end()) {
    return true;
  }
  const Step& step = *plan_.step(number);
  if (step.node == nullptr || step.outputs.size() != 1 ||
      !IsAmong(step.op, kElementOps) ||
      static_cast<int>(members_.size()) == kMostElementOps) {
    return false;
  }
  members_.push_back(number);
  return std::all_of(step.inputs.begin(), step.inputs.end(),
                     [&](int input) { return Collect(input); });
}

std::optional<Tensor> TableMaker::Evaluate(const Step& step) {
  std::vector<Tensor> in;
  for (int slot : step.inputs) {
    const Tensor* constant = plan_.ConstantOf(slot);
    const auto it = values_.find(slot);
    if (constant == nullptr && it == values_.end()) return std::nullopt;
    in.push_back(constant != nullptr ? *constant : it->second);
  }
  auto made = EvaluateNode(*step.node, in, 1);
  if (!made.ok() || !made->front().has_value()) return std::nullopt;
  return std::move(made->front());
}

// Element i is the unsigned value i.
Tensor AllValues(DataType dtype) {
  std::vector<uint8_t> values(256);
  const uint8_t sign = dtype == tensorflow::DT_INT8 ? 0x80 : 0;
  for (int i = 0; i < 256; ++i) values[i] = static_cast<uint8_t>(i ^ sign);
  return Tensor::FromValues<uint8_t>({256}, values).Reinterpreted(dtype);
}

std::optional<QdqTable> TableMaker::Make() {
  const Step& first = *plan_.step(plan_.ProducerOf(source_->floats));
  values_[source_->values] = AllValues(source_->tensor.dtype);
  std::vector<const Step*> steps = {&first};
  for (int number : members_) steps.push_back(plan_.step(number));
  for (int number : tail_.members) steps.push_back(plan_.step(number));
  for (const Step* step : steps) {
    auto value = Evaluate(*step);
    if (!value) return std::nullopt;
    values_[step->outputs[0]] = *std::move(value);
  }
  const Tensor& result = values_[tail_.output];
  if (result.dtype() != tail_.out.dtype || result.num_elements() != 256) {
    return std::nullopt;
  }
  QdqTable table;
  const auto* values = static_cast<const uint8_t*>(result.raw());
  const uint8_t sign = tail_.out.is_signed() ? 0x80 : 0;
  for (int i = 0; i < 256; ++i) {
    table[i] = static_cast<uint8_t>(values[i] ^ sign);
  }
  return table;
}

// The members of a tail and one step before them.
std::vector<int> MembersWith(int number, const QdqTail& tail) {
  std::vector<int> members = {number};
  members.insert(members.end(), tail.members.begin(), tail.members.end());
  return members;
}

std::optional<QdqPoolPlan> ReadPool(const PlanEditor& plan, const Step& step) {
  QdqPoolPlan pool;
  pool.is_mean = !graph::HasRole(step.op, graph::OpRole::kMaxPool);
  if (graph::HasRole(step.op, graph::OpRole::kMean)) {
    const Tensor* axes = plan.ConstantOf(step.inputs[1]);
    const auto keeps = graph::GetBoolOr(*step.node, "keep_dims", false);
    if (axes == nullptr || !keeps.ok()) return std::nullopt;
    auto list = axes->AsInt64s();
    if (!list.ok()) return std::nullopt;
    std::sort(list->begin(), list->end());
    if (*list != std::vector<int64_t>{1, 2}) return std::nullopt;
    pool.keeps_axes = *keeps;
    return pool;
  }
  const auto window = ReadWindowAttrs(*step.node);
  const auto size = ReadWindowList(*step.node, "ksize", false);
  if (!window.ok() || window->is_nchw || !size.ok()) return std::nullopt;
  pool.window = *window;
  pool.size_y = (*size)[0];
  pool.size_x = (*size)[1];
  return pool;
}

// The same node for elements of another type.
std::unique_ptr<Kernel> KernelFor(const tensorflow::NodeDef& node,
                                  DataType dtype) {
  tensorflow::NodeDef other = node;
  graph::SetType(&other, ElementTypeAttr(node.op()), dtype);
  const KernelEntry* entry = AllKernels().Find(node.op());
  if (entry == nullptr) return nullptr;
  auto kernel = entry->Make(other);
  return kernel.ok() ? *std::move(kernel) : nullptr;
}

}  // namespace

std::string QdqFuser::Rounding(const QdqTail& tail) const {
  const auto rounding = graph::GetStringOr(
      *plan_.step(tail.members.back())->node, "rounding", "half_to_even");
  return rounding.ok() ? *rounding : "half_to_even";
}

bool QdqFuser::FuseSum(const QdqTail& tail) {
  const int number = OnlyMakerOf(tail.slot, tail.members.front());
  if (number == kNoStep) return false;
  const Step& step = *plan_.step(number);
  const bool is_sum = graph::HasRole(step.op, graph::OpRole::kAdd);
  const bool is_product = graph::HasRole(step.op, graph::OpRole::kMultiply);
  if ((!is_sum && !is_product) || step.inputs.size() != 2 ||
      step.inputs[0] == step.inputs[1]) {
    return false;
  }
  const auto a = ReadQdqSource(plan_, step.inputs[0]);
  const auto b = ReadQdqSource(plan_, step.inputs[1]);
  if (a && !b) return FuseSumWithConstant(tail, number, *a, step.inputs[1]);
  if (b && !a) return FuseSumWithConstant(tail, number, *b, step.inputs[0]);
  if (!a || a->values == b->values) return false;
  const QdqPair pair = {a->tensor, b->tensor, tail.out, tail.bounds(),
                        Rounding(tail) == "half_up"};
  QdqMatch match;
  match.members = MembersWith(number, tail);
  match.sources = {*a, *b};
  match.output = tail.output;
  return Replace(std::move(match), [&](QdqSteps steps) {
    return is_sum ? MakeQdqSum(pair, *kernels_.stages, std::move(steps))
                  : MakeQdqProduct(pair, std::move(steps));
  });
}

bool QdqFuser::FuseSumWithConstant(const QdqTail& tail, int number,
                                   const QdqSource& source, int slot) {
  const auto constant = ReadQdqConstant(plan_, slot);
  if (!constant || constant->values->num_elements() != 1 ||
      constant->scales.size() != 1 || constant->zero_points.size() != 1 ||
      constant->values->rank() > 1) {
    return false;
  }
  const QdqTensor b = {constant->values->dtype(), constant->scales[0],
                       constant->zero_points[0]};
  if (!b.is_signed() && b.dtype != tensorflow::DT_UINT8) return false;
  const Step& dequantize = *plan_.step(plan_.ProducerOf(slot));
  auto floats = EvaluateNode(*dequantize.node,
                             {*plan_.ConstantOf(dequantize.inputs[0]),
                              *plan_.ConstantOf(dequantize.inputs[1]),
                              *plan_.ConstantOf(dequantize.inputs[2])},
                             1);
  if (!floats.ok()) return false;
  const QdqPair pair = {source.tensor, b, tail.out, tail.bounds(),
                        Rounding(tail) == "half_up"};
  const auto value = static_cast<uint8_t>(
      *static_cast<const uint8_t*>(constant->values->raw()) ^
      (b.is_signed() ? 0x80 : 0));
  const bool is_sum =
      graph::HasRole(plan_.step(number)->op, graph::OpRole::kAdd);
  QdqMatch match;
  match.members = MembersWith(number, tail);
  match.sources = {source};
  match.output = tail.output;
  match.constants.push_back({slot, floats->front(), nullptr});
  return Replace(std::move(match), [&](QdqSteps steps) {
    return MakeQdqTable(
        source.tensor, tail.out,
        is_sum ? QdqSumTable(pair, value) : QdqProductTable(pair, value),
        std::move(steps));
  });
}

bool QdqFuser::FusePool(const QdqTail& tail) {
  const int number = OnlyMakerOf(tail.slot, tail.members.front());
  if (number == kNoStep) return false;
  const Step& step = *plan_.step(number);
  const graph::OpRole role = graph::RowOf(step.op).role;
  const bool is_mean = role == graph::OpRole::kMean && step.inputs.size() == 2;
  if (step.node == nullptr ||
      (role != graph::OpRole::kMaxPool && role != graph::OpRole::kAveragePool &&
       !is_mean)) {
    return false;
  }
  const auto source = ReadQdqSource(plan_, step.inputs[0]);
  auto pool = ReadPool(plan_, step);
  if (!source || !pool || (!pool->is_mean && source->tensor != tail.out)) {
    return false;
  }
  pool->in = source->tensor;
  pool->out = tail.out;
  pool->bounds = tail.bounds();
  pool->rounds_away = Rounding(tail) == "half_away";
  // What greatest values are clipped to is another table.
  if (!pool->is_mean && tail.members.size() > 1) return false;
  QdqMatch match;
  match.members = MembersWith(number, tail);
  match.sources = {*source};
  match.output = tail.output;
  return Replace(std::move(match), [&](QdqSteps steps) {
    return MakeQdqPool(*pool, std::move(steps));
  });
}

bool QdqFuser::FuseBarePool(int number) {
  const Step& step = *plan_.step(number);
  const auto dtype = graph::GetTypeOr(*step.node, "T", tensorflow::DT_INVALID);
  if (!dtype.ok() ||
      (*dtype != tensorflow::DT_INT8 && *dtype != tensorflow::DT_UINT8)) {
    return false;
  }
  auto pool = ReadPool(plan_, step);
  if (!pool || step.outputs.size() != 1) return false;
  // Whatever the values stand for.
  pool->in.dtype = pool->out.dtype = *dtype;
  QdqMatch match;
  match.members = {number};
  match.sources = {{kNoSlot, step.inputs[0], pool->in}};
  match.reads_values = true;
  match.output = step.outputs[0];
  return Replace(std::move(match), [&](QdqSteps steps) {
    return MakeQdqPool(*pool, std::move(steps));
  });
}

bool QdqFuser::FuseTable(const QdqTail& tail) {
  TableMaker maker(plan_, tail);
  if (!maker.Collect(tail.slot) || !maker.source()) return false;
  maker.Sort();
  QdqMatch match;
  match.members = maker.members();
  match.members.insert(match.members.end(), tail.members.begin(),
                       tail.members.end());
  if (!plan_.MayFuse(match.members, {tail.output})) return false;
  const auto table = maker.Make();
  if (!table) return false;
  const QdqSource source = *maker.source();
  match.sources = {source};
  match.output = tail.output;
  return Replace(std::move(match), [&](QdqSteps steps) {
    return MakeQdqTable(source.tensor, tail.out, *table, std::move(steps));
  });
}

bool QdqFuser::FuseMovement(const QdqTail& tail) {
  const int number = OnlyMakerOf(tail.slot, tail.members.front());
  if (number == kNoStep) return false;
  const Step& step = *plan_.step(number);
  if (step.node == nullptr || step.outputs.size() != 1 ||
      !IsQdqMovement(step.op)) {
    return false;
  }
  const auto tensors =
      static_cast<size_t>(MovedTensors(step.op, step.inputs.size()));
  FusedStep fused;
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    const int slot = step.inputs[i];
    if (i >= tensors) {
      fused.inputs.push_back(slot);
      continue;
    }
    const auto source = ReadQdqSource(plan_, slot);
    if (!source || source->tensor != tail.out) return false;
    fused.inputs.push_back(source->values);
  }
  auto kernel = KernelFor(*step.node, tail.out.dtype);
  const std::vector<int> members = MembersWith(number, tail);
  if (kernel == nullptr || !plan_.MayFuse(members, {tail.output})) return false;
  fused.outputs = {tail.output};
  fused.kernel = MakeQdqMovement(std::move(kernel), static_cast<int>(tensors));
  plan_.Fuse(members, std::move(fused));
  return true;
}

}  // namespace optfarm::runtime
