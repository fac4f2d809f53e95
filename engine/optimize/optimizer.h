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
#include "absl/strings/string_view.h"
#include "engine/graph/graph.h"
#include "engine/optimize/calibration.h"
#include "engine/optimize/gates.h"
#include "engine/optimize/keep_float.h"
#include "engine/optimize/labels.h"
#include "engine/optimize/measurement.h"
#include "engine/optimize/optimizer_input.h"
#include "engine/optimize/sensitivity.h"
#include "engine/runtime/tensor.h"
#include "engine/transforms/pipeline.h"
#include "engine/transforms/scale_channels.h"
#include "engine/transforms/shift_constants.h"
#include "engine/transforms/transform_string.h"
#include "optfarm/v1/recipes.pb.h"
#include "optfarm/v1/report.pb.h"

namespace optfarm::optimize {

// Name of the file that the correction of biases reads, in the job's folder.
inline constexpr char kShiftFile[] = "bias_shifts.txt";

// Name of the file that adapted rounding is kept in, there too.
inline constexpr char kRoundingFile[] = "rounding_shifts.txt";

// Name of the file that the scaling of channels reads, there too.
inline constexpr char kFactorFile[] = "channel_factors.txt";

// One optimized graph with what was measured of it.
struct Attempt {
  Spared spared;
  graph::Graph graph;
  // All steps, freezing included.
  std::vector<transforms::TransformStep> steps;
  transforms::PipelineReport pipeline;
  // Empty logs when nothing was calibrated.
  Observation observed;
  // Empty when no weight was rounded anew.
  transforms::ConstantShifts rounding;
  // Empty when no bias was corrected.
  transforms::ConstantShifts shifts;
  // Empty when no channel was scaled.
  transforms::ChannelFactors factors;
  int64_t calibration_samples = 0;
  // What guided the search: on calibration samples, without labels. The gates
  // are the bounds and what the recipe aims at.
  GateFacts guide;
  std::vector<v1::GateResult> guide_gates;
  std::vector<v1::GateResult> aim_gates;
  // Why the graph cannot be run; no numbers then.
  absl::Status broken;
  // UNITS: milliseconds a sample on one thread.
  double milliseconds = 0;
  // Place among the chains tried.
  size_t search_step = 0;
  // What is reported: on other samples where there are any, with their labels.
  GateFacts facts;
  std::vector<v1::GateResult> gates;
  std::optional<v1::PairedAccuracy> paired;
  std::optional<v1::PairedAccuracy> paired_top5;
  std::vector<v1::SampleComparison> worst_samples;
};

// THREADS: one at a time.
class Optimizer {
 public:
  explicit Optimizer(OptimizerInput input) : in_(std::move(input)) {}

  // Parts the samples into those that guide the search and those that judge
  // its result, and runs the original on both.
  // ERRORS: Unimplemented naming op and node when it cannot be run; those of
  // running it and of reading samples and labels.
  absl::Status MeasureOriginal();

  // The first attempt whose answers pass, else the best of all, judged. No
  // label has any part in the choice.
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

  // Every chain that was tried, with its price. One is marked as taken.
  const std::vector<v1::SearchStep>& search() const { return search_; }

  const Labels& labels() const { return labels_; }
  // One sentence for each attempt that was not good enough.
  const std::vector<std::string>& attempts() const { return attempts_; }
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  // nullopt when the chain makes a graph that was made and measured before.
  absl::StatusOr<std::optional<Attempt>> Make(const Spared& spared);
  absl::StatusOr<std::vector<transforms::TransformStep>> Chain(
      const Spared& spared) const;
  // Runs the chain. `floats` becomes what it quantizes, where ranges may have
  // to be observed.
  absl::Status RunChain(Attempt* attempt, std::optional<graph::Graph>* floats);
  // `floats` may be nullptr.
  absl::Status Calibrate(const graph::Graph* floats, Attempt* attempt);
  absl::Status Correct(Attempt* attempt);
  absl::Status Equalize(Attempt* attempt);
  absl::Status AdaptRounding(const graph::Graph& floats, Attempt* attempt);
  // Takes another attempt's place in `best` when the layers that read the
  // inputs are the worst by far.
  absl::Status SpareInputLayers(Attempt* best);
  // Goes on with `attempt` and adds the steps to it.
  absl::Status RunMore(const std::vector<transforms::TransformStep>& steps,
                       Attempt* attempt);
  // Calibrates, corrects and compares.
  absl::Status Finish(double start, double left, const graph::Graph* floats,
                      Attempt* attempt);
  void AddSearchStep(const Attempt& attempt);
  absl::StatusOr<TransformedGraph> Transform(const Spared& spared,
                                             const Observation& observed) const;
  absl::Status Judge(Attempt* attempt);
  absl::Status MeasureLabelled();
  absl::Status LabelSamples(const runtime::Tensor& scores,
                            absl::Span<const int64_t> candidates);
  // The layers that lose most in `attempt` and are not in `spared` yet.
  absl::StatusOr<std::vector<std::string>> LayersToSpare(const Attempt& attempt,
                                                         const Spared& spared);
  absl::StatusOr<std::vector<v1::TensorComparison>> CompareLayersOn(
      const Reference& reference, const Attempt& attempt);
  absl::Status WriteLogs(const Observation& observed) const;
  // Makes a file of the job's folder hold `text`; no file when that is empty.
  absl::Status RestoreFile(absl::string_view name,
                           absl::string_view text) const;
  void Remember(const Attempt& attempt);
  void Report(absl::string_view stage, double fraction) const;

  OptimizerInput in_;
  std::vector<int64_t> calibration_;
  Reference guide_;
  Reference judge_;
  Labels labels_;
  // Samples that have a label, none of them in `calibration_` where there are
  // others.
  std::vector<int64_t> labelled_;
  int scores_output_ = -1;
  std::optional<Answers> float_answers_;
  std::vector<std::string> attempts_;
  std::vector<v1::SearchStep> search_;
  std::vector<std::string> warnings_;
  // SHA-256 of the graphs made, before ranges were frozen and biases corrected,
  // and whether the latter was to come.
  std::set<std::string> made_;
};

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_OPTIMIZER_H_
