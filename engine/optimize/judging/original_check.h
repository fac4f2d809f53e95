// Whether the original's answers are worth comparing with. A model that is fed
// values on the wrong scale answers nonsense, and so does its optimized graph,
// in perfect agreement: every bound would hold, and the report would be of no
// use.

#ifndef OPTFARM_ENGINE_OPTIMIZE_JUDGING_ORIGINAL_CHECK_H_
#define OPTFARM_ENGINE_OPTIMIZE_JUDGING_ORIGINAL_CHECK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/optimize/judging/measurement.h"
#include "engine/optimize/judging/optimizer_input.h"

namespace optfarm::optimize {

// Whether `right` of `samples` labelled samples, equally often of each of
// `classes`, is no more than a model reaches that guesses. False where there
// are too few samples to tell: 20, or 50 for fewer than ten classes.
bool IsNoBetterThanChance(int64_t right, int64_t samples, int64_t classes);

// The original on labelled samples.
struct LabelledOriginal {
  // Number of the output that is a row of class scores, and its length.
  int scores = 0;
  int64_t classes = 0;
  absl::Span<const int64_t> samples;
  // The class of every sample of the dataset.
  absl::Span<const int64_t> labels;
  const Answers* answers = nullptr;
};

// What to do about an original that is no better than chance on its labels: it
// is tried again on some of the samples with the usual scales of pixels and
// with labels shifted by one.
struct OriginalDiagnosis {
  // The whole story: what was found, what was tried, what to do.
  std::string text;
  // One of the other scales, or the shift, makes the original better than
  // chance.
  bool is_remedied = false;
};

// nullopt when the original is better than chance, or too few samples tell.
// ERRORS: those of running the original.
absl::StatusOr<std::optional<OriginalDiagnosis>> DiagnoseLabelled(
    const OptimizerInput& in, const LabelledOriginal& labelled);

// One sentence for each reason not to trust answers without labels: the same
// class, or the very same numbers, for nearly all samples. `scores` is as
// ScoresOutput gives it.
std::vector<std::string> SuspectAnswers(const Reference& reference, int scores);

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_JUDGING_ORIGINAL_CHECK_H_
