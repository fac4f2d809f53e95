// The weights that the kernels of one plan pack: how many bytes they take, and
// which of them may stay in the model's file instead. Filled while the plan is
// made (PlanEditor::Pack), settled once when it is complete.

#ifndef OPTFARM_ENGINE_RUNTIME_PLAN_WEIGHT_LEDGER_H_
#define OPTFARM_ENGINE_RUNTIME_PLAN_WEIGHT_LEDGER_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "engine/runtime/core/packed_weights.h"

namespace optfarm::runtime {

class WeightLedger {
 public:
  WeightLedger() = default;
  WeightLedger(const WeightLedger&) = delete;
  WeightLedger& operator=(const WeightLedger&) = delete;

  // Enters a packed form. Returns its size, or 0 for a form entered before.
  // UNITS: bytes. ERRORS: ResourceExhausted beyond the memory budget of what
  // is loaded.
  absl::StatusOr<int64_t> Add(const PackedWeights& packed);

  // The kernel works with weights that each run packs anew.
  void MayStream(const PackedWeights& packed) {
    if (packed.is_mapped()) streamable_.push_back(packed);
  }
  // The kernel reads unpacked weights as well when there is one row to
  // multiply.
  void MayReadInPlace(const PackedWeights& packed) {
    if (packed.is_mapped()) readable_.push_back(packed);
  }

  // Leaves weights of a large model in its file where that costs next to
  // nothing. Weights that a run reads once are read in place, as long as they
  // are few compared with the others; weights that it multiplies with many rows
  // are streamed. Call it after all fusions. Returns the bytes read in place.
  int64_t LeaveInFile();
  // Streams weights, the smallest first, until those that stay packed and the
  // largest of the others take no more than `limit`, or none is left that may
  // be streamed. Call it after LeaveInFile. UNITS: bytes; returns those of the
  // streamed weights.
  int64_t LimitWeights(int64_t limit);

 private:
  // Forms by id.
  absl::flat_hash_set<const void*> counted_;
  int64_t packed_bytes_ = 0;
  std::vector<PackedWeights> streamable_;
  std::vector<PackedWeights> readable_;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_PLAN_WEIGHT_LEDGER_H_
