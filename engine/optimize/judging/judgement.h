// The samples of a job and what the original answers for them: some guide the
// search, others judge its result.

#ifndef OPTFARM_ENGINE_OPTIMIZE_JUDGING_JUDGEMENT_H_
#define OPTFARM_ENGINE_OPTIMIZE_JUDGING_JUDGEMENT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/optimize/judging/attempt.h"
#include "engine/optimize/judging/measurement.h"
#include "engine/optimize/judging/optimizer_input.h"
#include "engine/optimize/samples/labels.h"
#include "engine/runtime/core/tensor.h"

namespace optfarm::optimize {

// OWNERSHIP: the input outlives it. THREADS: one at a time.
class Judgement {
 public:
  explicit Judgement(const OptimizerInput& in);

  // Runs the original on the samples that guide the search and on those that
  // judge its result.
  // ERRORS: Unimplemented naming op and node when it cannot be run; those of
  // running it and of reading samples and labels; FailedPrecondition when it is
  // no better than chance on the labels, saying what it was fed, what was tried
  // and what to give, unless the recipe allows that.
  absl::Status MeasureOriginal();

  // Adds to an attempt what is reported of it.
  // ERRORS: those of running its graph.
  absl::Status Judge(Attempt* attempt) const;

  // Those that may be learned from.
  absl::Span<const int64_t> calibration() const { return calibration_; }
  const Reference& guide() const { return guide_; }
  const Reference& judge() const { return judge_; }
  const Labels& labels() const { return labels_; }
  const std::vector<std::string>& warnings() const { return warnings_; }
  // Why the original's answers should not be trusted, one sentence each.
  const std::vector<std::string>& distrust() const { return distrust_; }

 private:
  // What verification.part says of the samples that nothing is learned from.
  // ERRORS: FailedPrecondition when that is none.
  absl::StatusOr<std::vector<int64_t>> PartToJudge(
      std::vector<int64_t> others) const;
  // REQUIRES: guide_.
  int64_t SamplesToCompare() const;
  absl::Status LabelSamples(const runtime::Tensor& scores,
                            absl::Span<const int64_t> candidates);
  absl::Status MeasureLabelled();
  // Leaves out labels that were guessed and are not the model's.
  // ERRORS: FailedPrecondition, see MeasureOriginal.
  absl::Status CheckAnswers(Answers answers);
  // What the labels call the class, else the model's file; "" for neither.
  std::string NameOf(int64_t label) const;

  const OptimizerInput& in_;
  const std::vector<int64_t> calibration_;
  Reference guide_;
  Reference judge_;
  Labels labels_;
  // Samples that have a label, none of them in `calibration_` where there are
  // others.
  std::vector<int64_t> labelled_;
  int scores_output_ = -1;
  std::optional<Answers> float_answers_;
  std::vector<std::string> warnings_;
  std::vector<std::string> distrust_;
};

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_JUDGING_JUDGEMENT_H_
