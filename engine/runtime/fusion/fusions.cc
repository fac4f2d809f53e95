#include "engine/runtime/fusion/fusions.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_split.h"
#include "engine/runtime/core/memory_budget.h"
#include "engine/runtime/fusion/families.h"
#include "engine/runtime/fusion/int8_fusion.h"

namespace optfarm::runtime {
namespace {

std::vector<std::string> FromEnvironment() {
  const char* names = std::getenv("OPTFARM_WITHOUT");
  if (names == nullptr) return {};
  return absl::StrSplit(names, ',');
}

constexpr int kNoLimit = -1;

// The number of the fusion that is left out.
std::atomic<int>& Limit() {
  static std::atomic<int> limit{kNoLimit};
  return limit;
}

// Handles of one form side by side: what is done, all of them do.
void SortBySize(std::vector<PackedWeights>* list) {
  std::sort(list->begin(), list->end(),
            [](const PackedWeights& a, const PackedWeights& b) {
              return a.packed_bytes() != b.packed_bytes()
                         ? a.packed_bytes() < b.packed_bytes()
                         : a.id() < b.id();
            });
}

}  // namespace

absl::StatusOr<PackedWeights> FusionContext::Pack(const Tensor& weights,
                                                  WeightLayout layout,
                                                  PlanEditor* plan,
                                                  int64_t* bytes) const {
  const PackedWeights packed(plan->WeightsOf(weights), std::move(layout));
  const bool is_new = counted_.insert(packed.id()).second;
  *bytes = is_new ? packed.packed_bytes() : 0;
  const std::shared_ptr<MemoryBudget>* budget = BudgetScope::Current();
  if (budget != nullptr && !(*budget)->Take(*bytes)) {
    counted_.erase(packed.id());
    return absl::ResourceExhaustedError("no memory to pack weights");
  }
  packed_bytes_ += *bytes;
  return packed;
}

int64_t FusionContext::LeaveInFile() const {
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

int64_t FusionContext::LimitWeights(int64_t limit) const {
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

void FusionContext::LinkReaders(const ExecutionPlan& plan) const {
  WeightReader* last = nullptr;
  for (const Step& step : plan.steps) {
    WeightReader* reader = TraitsOf(step.kernel.get()).reader;
    if (reader == nullptr) continue;
    if (last != nullptr) last->SetNext(reader->First());
    last = reader;
  }
}

absl::Span<const NamedFusion> AllFusions() {
  static constexpr NamedFusion kFusions[] = {
      {"int8", FuseInt8Layers},
      {"convolution", FuseFloatConvolutions},
      {"depthwise", FuseFloatDepthwise},
      {"recurrent", FuseRecurrentLayers},
      {"matmul", FuseFloatMatMuls},
      {"pool", ReplaceFloatPools},
      {"join", JoinInPlace},
      {"image", FuseInt8Images},
      {"separable", FuseSeparables},
      {"winograd", UseWinograd},
      {"pooled", FusePooledConvolutions},
      {"audio", ReplaceAudio},
      {"softmax", FuseSoftmaxes},
      {"elements", FuseElements},
  };
  return kFusions;
}

std::vector<Fusion> UsedFusions() {
  static const std::vector<std::string> without = FromEnvironment();
  const int limit = Limit().load();
  std::vector<Fusion> used;
  int number = 0;
  for (const NamedFusion& fusion : AllFusions()) {
    const bool is_out =
        number++ == limit ||
        std::find(without.begin(), without.end(), fusion.name) != without.end();
    if (!is_out) used.push_back(fusion.run);
  }
  return used;
}

FusionLimit::FusionLimit(absl::string_view without) {
  int number = 0;
  for (const NamedFusion& fusion : AllFusions()) {
    if (fusion.name == without) Limit().store(number);
    ++number;
  }
}

FusionLimit::~FusionLimit() { Limit().store(kNoLimit); }

void RunFusions(absl::Span<const Fusion> fusions, const FusionContext& context,
                ExecutionPlan* plan) {
  for (const Fusion fusion : fusions) {
    PlanEditor editor(plan);
    fusion(context, &editor);
    editor.Finish();
  }
  context.LinkReaders(*plan);
}

}  // namespace optfarm::runtime
