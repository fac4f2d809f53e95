#include "engine/runtime/fusion/fusions.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string>

#include "absl/strings/str_split.h"
#include "engine/runtime/fusion/families.h"
#include "engine/runtime/fusion/kernel_role.h"
#include "engine/runtime/operators/next_weights.h"

namespace optfarm::runtime {
namespace {

// A fusion that takes what another one made comes after it.
// clang-format off
constexpr const Fusion* kFusions[] = {
    &kQdqFusion,
    &kInt4MatMulFusion,
    &kInt8Fusion,
    &kFloatConvolutionFusion,
    &kFloatDepthwiseFusion,
    &kRecurrentFusion,
    &kSequenceFusion,
    &kFloatMatMulFusion,
    &kAttentionFusion,
    &kFloatPoolFusion,
    &kJoinFusion,
    &kWinogradFusion,
    &kRowBandFusion,
    &kAudioFusion,
    &kSoftmaxFusion,
    &kReshapeFusion,
    &kRowsFusion,
    &kElementFusion,
};
// clang-format on

std::vector<std::string> FromEnvironment() {
  const char* names = std::getenv("OPTFARM_WITHOUT");
  if (names == nullptr) return {};
  return absl::StrSplit(names, ',');
}

// The fusion that a FusionLimit leaves out.
std::atomic<const Fusion*>& Limit() {
  static std::atomic<const Fusion*> limit{nullptr};
  return limit;
}

// Tells each reader of weights in the plan what the next one reads.
void LinkReaders(const ExecutionPlan& plan) {
  WeightReader* last = nullptr;
  for (const Step& step : plan.steps) {
    auto* const reader = RoleOf<WeightReader>(step.kernel.get());
    if (reader == nullptr || !reader->First().is_worth_fetching()) continue;
    if (last != nullptr) last->SetNext(reader->First());
    last = reader;
  }
}

}  // namespace

absl::Span<const Fusion* const> AllFusions() { return kFusions; }

std::vector<const Fusion*> UsedFusions() {
  static const std::vector<std::string> without = FromEnvironment();
  const Fusion* const limit = Limit().load();
  std::vector<const Fusion*> used;
  for (const Fusion* fusion : AllFusions()) {
    if (fusion != limit && std::find(without.begin(), without.end(),
                                     fusion->name) == without.end()) {
      used.push_back(fusion);
    }
  }
  return used;
}

FusionLimit::FusionLimit(absl::string_view without) {
  for (const Fusion* fusion : AllFusions()) {
    if (fusion->name == without) Limit().store(fusion);
  }
}

FusionLimit::~FusionLimit() { Limit().store(nullptr); }

void RunFusions(absl::Span<const Fusion* const> fusions, const CpuFeatures& cpu,
                ExecutionPlan* plan, WeightLedger* weights,
                std::vector<FusedNodes>* taken) {
  for (const Fusion* fusion : fusions) {
    const size_t known = taken == nullptr ? 0 : taken->size();
    PlanEditor editor(plan, weights, taken);
    fusion->run(cpu, &editor);
    editor.Finish();
    for (size_t i = known; taken != nullptr && i < taken->size(); ++i) {
      (*taken)[i].fusion = std::string(fusion->name);
      (*taken)[i].replacement = std::string(fusion->replacement);
    }
  }
  LinkReaders(*plan);
}

}  // namespace optfarm::runtime
