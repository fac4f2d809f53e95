// Explicitly quantized graphs (ONNX's QDQ form, and TensorFlow Lite's integer
// models read as such): what stands between DequantizeLinear and QuantizeLinear
// runs on the quantized values.

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "engine/graph/attr.h"
#include "engine/graph/ops/op_table.h"
#include "engine/runtime/fusion/families.h"
#include "engine/runtime/fusion/kernel_role.h"
#include "engine/runtime/fusion/qdq/qdq_fuser.h"
#include "engine/runtime/fusion/qdq/qdq_movement.h"

namespace optfarm::runtime {
namespace {

const float* ScalarOf(const PlanEditor& plan, int slot) {
  const Tensor* value = plan.ConstantOf(slot);
  return value != nullptr && value->num_elements() == 1 &&
                 value->dtype() == tensorflow::DT_FLOAT
             ? value->data<float>()
             : nullptr;
}

// What a step clips, and to what.
struct Clip {
  int slot = kNoSlot;
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();
};

std::optional<Clip> ReadClip(const PlanEditor& plan, const Step& step) {
  Clip clip;
  clip.slot = step.inputs.empty() ? kNoSlot : step.inputs[0];
  const graph::Activation activation = graph::ActivationOf(step.op);
  if (step.node != nullptr && activation != graph::Activation::kNone) {
    clip.low = 0;
    if (activation == graph::Activation::kRelu6) clip.high = 6;
    return clip;
  }
  if (IsNode(&step, "ClipByValue") && step.inputs.size() == 3) {
    const float* low = ScalarOf(plan, step.inputs[1]);
    const float* high = ScalarOf(plan, step.inputs[2]);
    if (low == nullptr || high == nullptr || !(*low <= *high)) {
      return std::nullopt;
    }
    clip.low = *low;
    clip.high = *high;
    return clip;
  }
  const bool is_maximum = IsNode(&step, "Maximum");
  if ((!is_maximum && !IsNode(&step, "Minimum")) || step.inputs.size() != 2) {
    return std::nullopt;
  }
  for (int i : {0, 1}) {
    const float* bound = ScalarOf(plan, step.inputs[i]);
    if (bound == nullptr || std::isnan(*bound)) continue;
    clip.slot = step.inputs[1 - i];
    (is_maximum ? clip.low : clip.high) = *bound;
    return clip;
  }
  return std::nullopt;
}

// Slots whose tensors pass from kernel to kernel as they are.
class SlotGroups {
 public:
  int Of(int slot) {
    const auto it = parents_.find(slot);
    if (it == parents_.end() || it->second == slot) return slot;
    return it->second = Of(it->second);
  }
  void Join(int a, int b) { parents_[Of(a)] = Of(b); }

 private:
  absl::flat_hash_map<int, int> parents_;
};

}  // namespace

// The arithmetic of QuantizeLinear.
QdqBounds QdqTail::bounds() const {
  const auto quantized = [&](float value) {
    const double steps =
        std::nearbyint(static_cast<double>(value / out.scale)) +
        out.unsigned_zero();
    return static_cast<int32_t>(std::clamp(steps, 0.0, 255.0));
  };
  return {quantized(low), quantized(high)};
}

int QdqFuser::OnlyMakerOf(int slot, int reader) const {
  const int number = plan_.ProducerOf(slot);
  if (number == kNoStep || plan_.OnlyReaderOf(slot) != reader ||
      plan_.step(number) == nullptr || plan_.step(number)->node == nullptr) {
    return kNoStep;
  }
  return number;
}

std::optional<QdqTail> QdqFuser::ReadTail(int quantize, bool with_clips) const {
  const Step& step = *plan_.step(quantize);
  const auto out = ReadQdqResult(plan_, step);
  if (!out || plan_.ConstantOf(step.inputs[0]) != nullptr) return std::nullopt;
  QdqTail tail;
  tail.out = *out;
  tail.output = step.outputs[0];
  tail.members = {quantize};
  tail.slot = step.inputs[0];
  while (with_clips) {
    const int number = OnlyMakerOf(tail.slot, tail.members.front());
    if (number == kNoStep) break;
    const auto clip = ReadClip(plan_, *plan_.step(number));
    if (!clip) break;
    tail.low = std::clamp(clip->low, tail.low, tail.high);
    tail.high = std::clamp(clip->high, tail.low, tail.high);
    tail.slot = clip->slot;
    tail.members.insert(tail.members.begin(), number);
  }
  return tail;
}

bool QdqFuser::Replace(QdqMatch match, const MakeKernel& make) {
  if (!plan_.MayFuse(match.members, {match.output})) return false;
  FusedStep fused;
  std::vector<int> read;
  for (const QdqSource& source : match.sources) {
    fused.inputs.push_back(source.values);
    read.push_back(match.reads_values ? source.values : source.floats);
  }
  fused.outputs = {match.output};
  fused.constant_bytes = match.constant_bytes;
  fused.kernel = make({plan_.TakeChain(match.members, read, fused.outputs,
                                       std::move(match.constants)),
                       match.reads_values});
  plan_.Fuse(match.members, std::move(fused));
  return true;
}

// What made floats for steps that are gone.
void QdqFuser::DropUnread() {
  for (int i = 0; i < plan_.step_count(); ++i) {
    const Step* step = plan_.step(i);
    if (IsNode(step, "DequantizeLinear") && plan_.MayDrop(i)) plan_.Drop(i);
  }
}

// How many of a step's inputs are moved to its output by a step that looks at
// no element; 0 for other steps.
int QdqFuser::MovedInputs(int number) const {
  const Step* step = number == kNoStep ? nullptr : plan_.step(number);
  if (step == nullptr || step->outputs.size() != 1) return 0;
  const auto* moving = RoleOf<QdqMovement>(step->kernel.get());
  if (moving != nullptr) return moving->tensors();
  if (step->node == nullptr || !IsQdqMovement(step->op)) return 0;
  const auto dtype = graph::GetTypeOr(*step->node, ElementTypeAttr(step->op),
                                      tensorflow::DT_INVALID);
  if (!dtype.ok() || *dtype != tensorflow::DT_INT8) return 0;
  return MovedTensors(step->op, step->inputs.size());
}

QdqKernel* QdqFuser::QdqKernelOf(int number) const {
  const Step* step = number == kNoStep ? nullptr : plan_.step(number);
  return step == nullptr ? nullptr : RoleOf<QdqKernel>(step->kernel.get());
}

void QdqFuser::HoldUnsigned() {
  SlotGroups groups;
  std::vector<int> slots;
  for (int i = 0; i < plan_.step_count(); ++i) {
    const int moved = MovedInputs(i);
    if (moved == 0 && QdqKernelOf(i) == nullptr) continue;
    const Step& step = *plan_.step(i);
    const size_t count = moved > 0 ? moved : step.inputs.size();
    for (size_t k = 0; k < count; ++k) {
      if (moved > 0) groups.Join(step.inputs[k], step.outputs[0]);
      slots.push_back(step.inputs[k]);
    }
    slots.push_back(step.outputs[0]);
  }
  // A group with an end outside stays as the graph says.
  absl::flat_hash_set<int> open;
  for (int slot : slots) {
    const auto serves = [&](int number) {
      if (QdqKernelOf(number) != nullptr) return true;
      if (MovedInputs(number) == 0) return false;
      // Not as an axis or an index.
      const Step& step = *plan_.step(number);
      const auto other = step.inputs.begin() + MovedInputs(number);
      return std::find(other, step.inputs.end(), slot) == step.inputs.end();
    };
    const std::vector<int>& readers = plan_.ReadersOf(slot);
    if (!serves(plan_.ProducerOf(slot)) || plan_.IsVisible(slot, readers) ||
        !std::all_of(readers.begin(), readers.end(), serves)) {
      open.insert(groups.Of(slot));
    }
  }
  const auto is_held = [&](int slot) {
    return !open.contains(groups.Of(slot));
  };
  for (int slot : slots) {
    if (is_held(slot)) plan_.HoldOther(slot);
  }
  for (int i = 0; i < plan_.step_count(); ++i) {
    QdqKernel* const kernel = QdqKernelOf(i);
    if (kernel == nullptr) continue;
    const Step& step = *plan_.step(i);
    for (size_t k = 0; k < step.inputs.size(); ++k) {
      if (is_held(step.inputs[k]))
        kernel->HoldInputUnsigned(static_cast<int>(k));
    }
    if (is_held(step.outputs[0])) kernel->HoldOutputUnsigned();
  }
}

void QdqFuser::Run() {
  bool has_any = false;
  for (int i = 0; i < plan_.step_count(); ++i) {
    has_any |= IsNode(plan_.step(i), "MaxPool") && FuseBarePool(i);
    if (!IsNode(plan_.step(i), "QuantizeLinear")) continue;
    const auto tail = ReadTail(i, /*with_clips=*/true);
    const auto bare = ReadTail(i, /*with_clips=*/false);
    if (!tail || !bare) continue;
    has_any |= FuseLayer(*tail) || FuseSum(*tail) || FusePool(*tail) ||
               FuseMovement(*bare) || FuseTable(*bare);
  }
  if (!has_any) return;
  DropUnread();
  HoldUnsigned();
}

namespace {

void FuseQdq(const CpuFeatures& cpu, PlanEditor* plan) {
  QdqFuser(cpu, plan).Run();
}

}  // namespace

const Fusion kQdqFusion = {
    .name = "qdq",
    .pattern =
        "DequantizeLinear, then a layer with its bias, a sum, a product, "
        "pooling, functions of elements or data movement, then QuantizeLinear",
    .replacement = "the same in integers, rounded once",
    .run = FuseQdq,
    .wants_quantized_constants = true,
};

}  // namespace optfarm::runtime
