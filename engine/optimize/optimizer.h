// The work of a job between the model's parsing and its report: makes the
// optimized graph, tries again with more layers in float while the answers are
// too far off, and measures what came out. optimize_job.h is the entry.

#ifndef OPTFARM_ENGINE_OPTIMIZE_OPTIMIZER_H_
#define OPTFARM_ENGINE_OPTIMIZE_OPTIMIZER_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/optimize/attempt_maker.h"
#include "engine/optimize/judging/attempt.h"
#include "engine/optimize/judging/judgement.h"
#include "engine/optimize/judging/keep_float.h"
#include "engine/optimize/judging/measurement.h"
#include "engine/optimize/judging/optimizer_input.h"
#include "engine/optimize/samples/labels.h"
#include "optfarm/v1/report.pb.h"

namespace optfarm::optimize {

// THREADS: one at a time.
class Optimizer {
 public:
  explicit Optimizer(OptimizerInput input);
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Parts the samples into those that guide the search and those that judge
  // its result, and runs the original on both.
  // ERRORS: Judgement::MeasureOriginal's.
  absl::Status MeasureOriginal() { return judgement_.MeasureOriginal(); }

  // The first attempt whose answers pass, else the best of all, judged. No
  // label has any part in the choice. Where a few samples tell chains apart,
  // chains are tried on those, and the one found is made again from all samples
  // that may be learned from. If it does not hold there what it promised, all
  // chains are tried on all of them.
  // REQUIRES: MeasureOriginal.
  // ERRORS: those of the recipe's transforms, and of running the result when
  // no attempt can be run.
  absl::StatusOr<Attempt> FindBest();

  // The result against the original layer by layer, in the order of
  // computation.
  absl::StatusOr<std::vector<v1::TensorComparison>> CompareByLayer(
      const Attempt& attempt);

  // Each quantized layer alone; `layers` are CompareByLayer's.
  absl::StatusOr<std::vector<v1::LayerSensitivity>> MeasureLayersAlone(
      const Attempt& attempt, absl::Span<const v1::TensorComparison> layers);

  // The distributions that the recipe asks for.
  absl::StatusOr<std::vector<v1::LayerHistogram>> MeasureDistributions(
      const Attempt& attempt);

  // The steps that this machine's runtime makes of the result on one thread.
  absl::StatusOr<std::vector<v1::StepWork>> ListSteps(const Attempt& attempt);

  // Every chain that was tried, with its price. One is marked as taken.
  const std::vector<v1::SearchStep>& search() const { return search_; }

  const Labels& labels() const { return judgement_.labels(); }
  // One sentence for each attempt that was not good enough.
  const std::vector<std::string>& attempts() const { return attempts_; }
  const std::vector<std::string>& warnings() const {
    return judgement_.warnings();
  }
  // Why the original's answers should not be trusted, one sentence each.
  const std::vector<std::string>& distrust() const {
    return judgement_.distrust();
  }

 private:
  // The best attempt on the samples that are used now.
  absl::StatusOr<Attempt> Search();
  // The same on all samples, by way of a few where that does.
  absl::StatusOr<Attempt> SearchOnFewSamples();
  // Samples that attempts are compared on.
  const Reference& guide() const {
    return search_samples_.has_value() ? *search_samples_ : judgement_.guide();
  }
  // What an attempt is called.
  std::string Describe(const Attempt& attempt) const;
  // nullopt when the chain makes a graph that was made and measured before.
  absl::StatusOr<std::optional<Attempt>> Make(const Spared& spared);
  // Takes another attempt's place in `best` when the layers that read the
  // inputs are the worst by far.
  absl::Status SpareInputLayers(Attempt* best);
  // Puts in what the samples say, and compares. `floats` may be nullptr.
  absl::Status Finish(double start, double left, const graph::Graph* floats,
                      Attempt* attempt);
  void AddSearchStep(const Attempt& attempt);
  // The layers that lose most in `attempt` and are not in `spared` yet.
  absl::StatusOr<std::vector<std::string>> LayersToSpare(const Attempt& attempt,
                                                         const Spared& spared);
  absl::StatusOr<std::vector<v1::TensorComparison>> CompareLayersOn(
      const Reference& reference, const Attempt& attempt);
  void Remember(const Attempt& attempt);

  OptimizerInput in_;
  Judgement judgement_;
  // Set while chains are tried on a few samples, which `maker_` then has too.
  std::optional<Reference> search_samples_;
  AttemptMaker maker_;
  std::vector<std::string> attempts_;
  std::vector<v1::SearchStep> search_;
  // SHA-256 of the graphs made, before ranges were frozen and biases corrected,
  // and whether the latter was to come.
  std::set<std::string> made_;
};

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_OPTIMIZER_H_
