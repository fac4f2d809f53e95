// A kernel that makes rows and the one kernel that reads them, both as the
// fusions before made them, become one step that goes a band of rows at a time
// (row_bands.h): a depthwise convolution and the 1x1 convolution behind it, a
// convolution and its pool, QuantizeV2 and the first layer.

#include <optional>
#include <utility>

#include "engine/runtime/fusion/families.h"
#include "engine/runtime/fusion/kernel_role.h"
#include "engine/runtime/fusion/row_bands.h"

namespace optfarm::runtime {
namespace {

bool ReadsWeights(Kernel* kernel) {
  const auto* const reader = RoleOf<WeightReader>(kernel);
  return reader != nullptr && reader->First().is_worth_fetching();
}

// Whether the two kernels can share bands. Two kernels with packed weights
// stay apart: band by band, each would put the other's out of the cache.
bool MayShareBands(Kernel* first, Kernel* second) {
  const auto* const producer = RoleOf<RowProducer>(first);
  const auto* const consumer = RoleOf<RowConsumer>(second);
  if (producer == nullptr || consumer == nullptr ||
      (ReadsWeights(first) && ReadsWeights(second))) {
    return false;
  }
  const std::optional<RowElements> elements = producer->Elements();
  return elements && consumer->Reads(*elements);
}

void FuseBands(int number, PlanEditor* plan) {
  const Step& first = *plan->step(number);
  // A part of a joined value has more inputs.
  if (first.inputs.size() != 1 || first.outputs.empty()) return;
  const int reader = plan->OnlyReaderOf(first.outputs[0]);
  if (reader == kNoStep) return;
  const Step& second = *plan->step(reader);
  if (second.inputs != first.outputs ||
      !MayShareBands(first.kernel.get(), second.kernel.get()) ||
      !plan->MayFuse({number, reader}, second.outputs)) {
    return;
  }
  FusedStep fused;
  fused.inputs = first.inputs;
  fused.outputs = second.outputs;
  const size_t between = first.outputs.size();
  auto producer = plan->TakeKernel(number);
  fused.kernel =
      MakeRowBandKernel(std::move(producer), plan->TakeKernel(reader), between);
  plan->Fuse({number, reader}, std::move(fused));
}

void FuseRowBands(const CpuFeatures&, PlanEditor* plan) {
  for (int i = 0; i < plan->step_count(); ++i) {
    if (plan->step(i) != nullptr) FuseBands(i, plan);
  }
}

}  // namespace

const Fusion kRowBandFusion = {
    .name = "bands",
    .pattern = "a step that makes rows, and the one step that reads them",
    .replacement =
        "one step that goes a band of rows at a time, so that the "
        "value between the two stays in the cache",
    .run = FuseRowBands,
};

}  // namespace optfarm::runtime
