// Makes optimized graphs: runs a recipe's chain with some layers spared, and
// puts in what the samples say: ranges, factors of channels, rounding, biases.

#ifndef OPTFARM_ENGINE_OPTIMIZE_ATTEMPT_MAKER_H_
#define OPTFARM_ENGINE_OPTIMIZE_ATTEMPT_MAKER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "engine/optimize/judging/attempt.h"
#include "engine/optimize/judging/optimizer_input.h"
#include "engine/transforms/machinery/transform_string.h"

namespace optfarm::optimize {

// OWNERSHIP: input and samples outlive it. THREADS: one at a time.
class AttemptMaker {
 public:
  // `samples`: those that may be learned from.
  AttemptMaker(const OptimizerInput& in, absl::Span<const int64_t> samples)
      : in_(in), samples_(samples) {}

  // Other samples that may be learned from, from now on.
  void LearnFrom(absl::Span<const int64_t> samples) { samples_ = samples; }

  // Runs the chain of `attempt->spared`. `floats` becomes what it quantizes,
  // where ranges may have to be observed.
  // ERRORS: those of the recipe's transforms.
  absl::Status Transform(Attempt* attempt, std::optional<graph::Graph>* floats);

  // Puts in what the samples say, and writes the files that the steps for it
  // read. `floats` may be nullptr. `report` is told of stages and what part of
  // all is done then.
  // ERRORS: those of running the graph and of reading samples.
  absl::Status Learn(
      const graph::Graph* floats, Attempt* attempt,
      absl::FunctionRef<void(absl::string_view stage, double part)> report);

  // What the chain makes before any of it is quantized.
  absl::StatusOr<graph::Graph> InFloat(const Spared& spared) const;

  // Makes the files on disk those of this attempt again.
  absl::Status RestoreFiles(const Attempt& attempt) const;

 private:
  absl::StatusOr<std::vector<transforms::TransformStep>> Chain(
      const Spared& spared) const;
  // Goes on with `attempt` and adds the steps to it.
  absl::Status RunMore(const std::vector<transforms::TransformStep>& steps,
                       Attempt* attempt);
  absl::Status Calibrate(const graph::Graph* floats, Attempt* attempt);
  absl::Status Equalize(Attempt* attempt);
  absl::Status AdaptRounding(const graph::Graph& floats, Attempt* attempt);
  absl::Status Correct(Attempt* attempt);
  // Makes the file as small as the recipe aims at, where it can.
  absl::Status MakeSmaller(Attempt* attempt) const;
  absl::Status WriteLogs(const Observation& observed) const;
  // Makes a file of the job's folder hold `text`; no file when that is empty.
  absl::Status RestoreFile(absl::string_view name,
                           absl::string_view text) const;

  const OptimizerInput& in_;
  absl::Span<const int64_t> samples_;
};

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_ATTEMPT_MAKER_H_
