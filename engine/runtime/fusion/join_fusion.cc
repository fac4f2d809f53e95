// Concat along the channels of an image: those who make its inputs write them
// where they are to stand, so that nothing is copied.

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "engine/graph/ops/op_table.h"
#include "engine/runtime/fusion/channel_affine.h"
#include "engine/runtime/fusion/families.h"
#include "engine/runtime/fusion/joined_part.h"
#include "engine/runtime/fusion/kernel_role.h"

namespace optfarm::runtime {
namespace {

// The inputs of a step that joins floats or 8-bit values, without the axis, and
// the axis' slot; nothing for another step.
struct JoinInputs {
  std::vector<int> slots;
  int axis = kNoSlot;
};

std::optional<JoinInputs> ReadJoin(const Step* step) {
  if (step == nullptr || step->node == nullptr) return std::nullopt;
  const std::vector<int>& inputs = step->inputs;
  const graph::OpRow& row = graph::RowOf(step->op);
  const bool is_quantized = row.role == graph::OpRole::kQuantizedConcat;
  if (!is_quantized &&
      (row.role != graph::OpRole::kConcat || !ComputesFloats(*step))) {
    return std::nullopt;
  }
  // Quantized values have their ranges behind them: a min and a max for each.
  const size_t count = (inputs.size() - 1) / (is_quantized ? 3 : 1);
  if (inputs.size() < 3 || count < 2) return std::nullopt;
  const auto begin = inputs.begin() + (row.has_axis_first ? 1 : 0);
  return JoinInputs{{begin, begin + static_cast<std::ptrdiff_t>(count)},
                    inputs[row.has_axis_first ? 0 : count]};
}

// The slots that a join along the last of four dimensions puts side by side;
// nothing for another step.
std::optional<std::vector<int>> JoinedSlots(const PlanEditor& plan,
                                            const Step* step) {
  std::optional<JoinInputs> join = ReadJoin(step);
  if (!join) return std::nullopt;
  const Tensor* axis = plan.ConstantOf(join->axis);
  if (axis == nullptr || axis->num_elements() != 1) return std::nullopt;
  const absl::StatusOr<std::vector<int64_t>> value = axis->AsInt64s();
  if (!value.ok() || ((*value)[0] != 3 && (*value)[0] != -1)) {
    return std::nullopt;
  }
  return std::move(join->slots);
}

// One of the values.
struct Branch {
  int step = kNoStep;
  int slot = kNoSlot;
  int64_t channels = 0;
  JoinableKernel* kernel = nullptr;
  JoinedPart part;
};

// Whether elements can stand side by side as they are: floats, or quantized
// values whose ranges are that of the joined ones, which has zero in it.
bool AreAlike(const std::vector<Branch>& branches) {
  const std::optional<Range> first = branches[0].kernel->QuantizedRange();
  return std::all_of(
      branches.begin(), branches.end(), [&](const Branch& branch) {
        const std::optional<Range> range = branch.kernel->QuantizedRange();
        if (!first || !range) return !first && !range;
        return range->min == first->min && range->max == first->max &&
               range->min <= 0.0f;
      });
}

class Joiner {
 public:
  explicit Joiner(PlanEditor* plan) : plan_(*plan) {}

  void Run() {
    FindChannels();
    // From the back: a join of joins comes before those that it takes in.
    for (int i = plan_.step_count() - 1; i >= 0; --i) {
      const auto slots = JoinedSlots(plan_, plan_.step(i));
      if (slots) Join(i, *slots);
    }
  }

 private:
  JoinableKernel* KernelOf(int step) const {
    if (step == kNoStep) return nullptr;
    auto* const kernel = RoleOf<JoinableKernel>(plan_.step(step)->kernel.get());
    return kernel != nullptr && kernel->MayBePart() ? kernel : nullptr;
  }

  // How many channels values have, as far as kernels know it.
  void FindChannels();
  int64_t ChannelsOf(int slot) const {
    const auto it = channels_.find(slot);
    return it == channels_.end() ? 0 : it->second;
  }
  // The values that `join` puts side by side, also through joins that nobody
  // else reads; those are added to `members`.
  std::optional<std::vector<Branch>> FindBranches(int join,
                                                  const std::vector<int>& slots,
                                                  std::vector<int>* members);
  void Join(int join, const std::vector<int>& slots);

  PlanEditor& plan_;
  // By slot.
  absl::flat_hash_map<int, int64_t> channels_;
};

void Joiner::FindChannels() {
  for (int i = 0; i < plan_.step_count(); ++i) {
    const Step* step = plan_.step(i);
    if (step == nullptr || step->outputs.empty()) continue;
    if (const JoinableKernel* kernel = KernelOf(i)) {
      channels_[step->outputs[0]] =
          kernel->ChannelsFor(ChannelsOf(step->inputs[0]));
    } else if (const auto slots = JoinedSlots(plan_, step)) {
      int64_t sum = 0;
      bool are_known = true;
      for (int slot : *slots) {
        sum += ChannelsOf(slot);
        are_known = are_known && ChannelsOf(slot) > 0;
      }
      if (are_known) channels_[step->outputs[0]] = sum;
    }
  }
}

std::optional<std::vector<Branch>> Joiner::FindBranches(
    int join, const std::vector<int>& slots, std::vector<int>* members) {
  struct Place {
    int slot;
    int reader;
  };
  std::vector<Branch> branches;
  // The next one last.
  std::vector<Place> left;
  const auto push = [&](const std::vector<int>& all, int reader) {
    for (auto it = all.rbegin(); it != all.rend(); ++it) {
      left.push_back({*it, reader});
    }
  };
  push(slots, join);
  int64_t begin = 0;
  while (!left.empty()) {
    const Place place = left.back();
    left.pop_back();
    const int step = plan_.ProducerOf(place.slot);
    if (step == kNoStep || plan_.OnlyReaderOf(place.slot) != place.reader) {
      return std::nullopt;
    }
    members->push_back(step);
    if (const auto inner = JoinedSlots(plan_, plan_.step(step))) {
      push(*inner, step);
      continue;
    }
    Branch branch;
    branch.step = step;
    branch.slot = place.slot;
    branch.channels = ChannelsOf(place.slot);
    branch.kernel = KernelOf(step);
    if (branch.kernel == nullptr || branch.channels == 0) return std::nullopt;
    branch.part.begin = begin;
    begin += branch.channels;
    branches.push_back(branch);
  }
  for (Branch& branch : branches) branch.part.all = begin;
  return branches;
}

void Joiner::Join(int join, const std::vector<int>& slots) {
  const std::vector<int> outputs = plan_.step(join)->outputs;
  std::vector<int> members = {join};
  std::optional<std::vector<Branch>> branches =
      FindBranches(join, slots, &members);
  if (!branches || !AreAlike(*branches)) return;
  std::sort(members.begin(), members.end());
  if (!plan_.MayFuse(members, outputs)) return;
  std::sort(branches->begin(), branches->end(),
            [](const Branch& a, const Branch& b) { return a.step < b.step; });
  // The last to come takes the place of the joins.
  const Branch last = branches->back();
  int joined = kNoSlot;
  for (Branch& branch : *branches) {
    branch.part.comes_later = joined != kNoSlot;
    branch.kernel->SetPart(branch.part);
    std::erase(members, branch.step);
    if (joined != kNoSlot) plan_.AddInput(branch.step, joined);
    if (branch.step != last.step) plan_.NoteChange(branch.step);
    joined = branch.slot;
    plan_.HoldOther(branch.slot);
  }
  members.insert(std::lower_bound(members.begin(), members.end(), last.step),
                 last.step);
  FusedStep fused;
  fused.inputs = plan_.step(last.step)->inputs;
  fused.outputs = outputs;
  fused.kernel = plan_.TakeKernel(last.step);
  plan_.Fuse(members, std::move(fused));
}

void JoinInPlace(const CpuFeatures&, PlanEditor* plan) { Joiner(plan).Run(); }

}  // namespace

const Fusion kJoinFusion = {
    .name = "join",
    .pattern =
        "Concat, ConcatV2 or QuantizedConcat along channels, of "
        "convolutions and pools",
    .replacement =
        "steps that write their channels where the joined value has "
        "them; nothing is copied",
    .run = JoinInPlace,
};

}  // namespace optfarm::runtime
