#include "engine/runtime/plan/weight_ledger.h"

#include <algorithm>
#include <memory>

#include "engine/runtime/core/memory_budget.h"

namespace optfarm::runtime {
namespace {

// Handles of the same packed weights become neighbours, to be kept or released
// together.
void SortBySize(std::vector<PackedWeights>* list) {
  std::sort(list->begin(), list->end(),
            [](const PackedWeights& a, const PackedWeights& b) {
              return a.packed_bytes() != b.packed_bytes()
                         ? a.packed_bytes() < b.packed_bytes()
                         : a.id() < b.id();
            });
}

}  // namespace

absl::StatusOr<int64_t> WeightLedger::Add(const PackedWeights& packed) {
  if (!counted_.insert(packed.id()).second) return 0;
  const int64_t bytes = packed.packed_bytes();
  const std::shared_ptr<MemoryBudget>* budget = BudgetScope::Current();
  if (budget != nullptr && !(*budget)->Take(bytes)) {
    counted_.erase(packed.id());
    return absl::ResourceExhaustedError("no memory to pack weights");
  }
  packed_bytes_ += bytes;
  return bytes;
}

int64_t WeightLedger::LeaveInFile() {
  // UNITS: bytes. Smaller models stay near the processor from run to run.
  constexpr int64_t kLargeModel = 32 << 20;
  if (packed_bytes_ < kLargeModel) return 0;
  // UNITS: bytes. Less is not worth looking for its pages anew.
  constexpr int64_t kLeastStreamed = 128 * 1024, kMostStreamed = 2 << 20;
  for (const PackedWeights& packed : streamable_) {
    if (packed.packed_bytes() >= kLeastStreamed &&
        packed.packed_bytes() <= kMostStreamed) {
      packed.SetUse(WeightUse::kStreamedForMany);
    }
  }
  // Looking for pages anew takes an eighth of the time of reading them, and
  // most weights are not only read.
  constexpr int64_t kLeastRead = 2 << 20;
  const int64_t most = packed_bytes_ / 8;
  SortBySize(&readable_);
  int64_t bytes = 0;
  const void* last = nullptr;
  for (const PackedWeights& packed : readable_) {
    if (packed.id() != last) {
      if (packed.packed_bytes() < kLeastRead) continue;
      if (bytes + packed.packed_bytes() > most) break;
      bytes += packed.packed_bytes();
      last = packed.id();
    }
    packed.SetUse(WeightUse::kInPlace);
  }
  packed_bytes_ -= bytes;
  return bytes;
}

int64_t WeightLedger::LimitWeights(int64_t limit) {
  SortBySize(&streamable_);
  int64_t streamed = 0;
  int64_t largest = 0;
  const void* last = nullptr;
  for (const PackedWeights& packed : streamable_) {
    if (packed.use() == WeightUse::kInPlace) continue;
    if (packed.id() != last) {
      if (packed_bytes_ - streamed + largest <= limit) break;
      streamed += packed.packed_bytes();
      largest = packed.packed_bytes();
      last = packed.id();
    }
    packed.SetUse(WeightUse::kStreamed);
  }
  return streamed;
}

}  // namespace optfarm::runtime
