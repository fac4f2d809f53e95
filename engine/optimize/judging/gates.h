// A recipe's bounds against what was measured.

#ifndef OPTFARM_ENGINE_OPTIMIZE_JUDGING_GATES_H_
#define OPTFARM_ENGINE_OPTIMIZE_JUDGING_GATES_H_

#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "optfarm/v1/recipes.pb.h"
#include "optfarm/v1/report.pb.h"

namespace optfarm::optimize {

// What gates are decided from.
struct GateFacts {
  std::vector<v1::TensorComparison> outputs;
  // Absent without labels.
  std::optional<v1::Accuracy> float_accuracy;
  std::optional<v1::Accuracy> optimized_accuracy;
  // Of a detector; no gate looks at it.
  std::optional<v1::DetectionComparison> detections;
  int64_t bytes_before = 0;
  int64_t bytes_after = 0;
};

// One result for each bound that is set and concerns this program (min_speedup
// is checked where devices measure). NaN stands for a value that could not be
// measured.
std::vector<v1::GateResult> CheckGates(const v1::Bounds& bounds,
                                       const GateFacts& facts);

// The bounds as a search may use them that must not see labels: those on
// accuracy are left out, and where nothing else limits the changed answers, so
// many must agree that the accuracy cannot fall further than it may (an answer
// that stays the same is not lost: formula 20 of docs/quantization.md).
v1::Bounds BoundsWithoutLabels(const v1::Bounds& bounds);

// The bounds raised to what the recipe's attempts aim at.
v1::Bounds WithAims(const v1::Bounds& bounds, const v1::KeepFloat& aims);

bool AllPassed(absl::Span<const v1::GateResult> gates);

// Whether a failed gate could be measured, so that a gentler chain may mend it.
bool MayBeMended(absl::Span<const v1::GateResult> gates);

// How far a result is from its bounds, for choosing among results that all
// fail: smaller is better. UNITS: percentage points (of accuracy, of agreement,
// of size) and decibel, added up; the worst output's SNR decides between
// equals.
double Badness(absl::Span<const v1::GateResult> gates, const GateFacts& facts);

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_JUDGING_GATES_H_
