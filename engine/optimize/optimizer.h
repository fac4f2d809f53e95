// The work of a job between the model's parsing and its report: makes the
// optimized graph, tries again with more layers in float while the answers are
// too far off, and measures what came out. optimize_job.h is the entry.

#ifndef OPTFARM_ENGINE_OPTIMIZE_OPTIMIZER_H_
#define OPTFARM_ENGINE_OPTIMIZE_OPTIMIZER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/graph/graph.h"
#include "engine/optimize/dataset.h"
#include "engine/optimize/gates.h"
#include "engine/optimize/keep_float.h"
#include "engine/optimize/labels.h"
#include "engine/optimize/sample_reader.h"
#include "engine/runtime/tensor.h"
#include "engine/transforms/pipeline.h"
#include "engine/transforms/range_log.h"
#include "engine/transforms/shift_constants.h"
#include "engine/transforms/transform_string.h"
#include "optfarm/v1/recipes.pb.h"
#include "optfarm/v1/report.pb.h"

namespace optfarm::optimize {

// Name of the log file that the freezing step reads, in the job's folder.
inline constexpr char kRangeLogFile[] = "calibration.log";

// Name of the file that the correction of biases reads, there too.
inline constexpr char kShiftFile[] = "bias_shifts.txt";

// One optimized graph with what was measured of it.
struct Attempt {
  Spared spared;
  graph::Graph graph;
  // All steps, freezing included.
  std::vector<transforms::TransformStep> steps;
  transforms::PipelineReport pipeline;
  // Empty when nothing was calibrated.
  transforms::RangeLog log;
  // Empty when no bias was corrected.
  transforms::ConstantShifts shifts;
  int64_t calibration_samples = 0;
  GateFacts facts;
  std::vector<v1::GateResult> gates;
};

// Everything a job works on. OWNERSHIP: pointers are the caller's.
struct OptimizerInput {
  const graph::Graph* original = nullptr;
  // UNITS: bytes of the original's file.
  int64_t original_bytes = 0;
  std::vector<graph::TensorName> inputs;
  std::vector<graph::TensorName> outputs;
  const v1::Recipe* recipe = nullptr;
  const Dataset* dataset = nullptr;
  SampleReader* reader = nullptr;
  // Empty: none. The classes may be empty too.
  std::string labels_path;
  // Folder that the range log is written to.
  std::string out_folder;
  int threads = 1;
  // Stage, and fraction of the whole job.
  std::function<void(absl::string_view, double)> progress;
};

// THREADS: one at a time.
class Optimizer {
 public:
  explicit Optimizer(OptimizerInput input) : in_(std::move(input)) {}

  // Runs the original on the samples that decide.
  // ERRORS: Unimplemented naming op and node when it cannot be run; those of
  // running it and of reading samples and labels.
  absl::Status MeasureOriginal();

  // The first attempt whose answers pass, else the best of all.
  // REQUIRES: MeasureOriginal.
  // ERRORS: those of the recipe's transforms and of running the result.
  absl::StatusOr<Attempt> FindBest();

  // The result against the original layer by layer, worst first.
  absl::StatusOr<std::vector<v1::TensorComparison>> CompareByLayer(
      const Attempt& attempt);

  const std::optional<v1::Accuracy>& float_accuracy() const {
    return float_accuracy_;
  }
  const Labels& labels() const { return labels_; }
  // One sentence for each attempt that was not good enough.
  const std::vector<std::string>& attempts() const { return attempts_; }
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  // nullopt when the chain makes a graph that was made and measured before.
  absl::StatusOr<std::optional<Attempt>> Make(const Spared& spared);
  absl::StatusOr<std::vector<transforms::TransformStep>> Chain(
      const Spared& spared) const;
  absl::Status Calibrate(Attempt* attempt);
  absl::Status Correct(Attempt* attempt);
  // Goes on with `attempt` and adds the steps to it.
  absl::Status RunMore(const std::vector<transforms::TransformStep>& steps,
                       Attempt* attempt);
  absl::Status Measure(Attempt* attempt);
  absl::Status MeasureAccuracy(Attempt* attempt);
  absl::Status LabelSamples(const runtime::Tensor& scores);
  // The layers that lose most in `attempt` and are not in `spared` yet.
  absl::StatusOr<std::vector<std::string>> LayersToSpare(const Attempt& attempt,
                                                         const Spared& spared);
  std::vector<int64_t> CalibrationSamples() const;
  // Makes a file of the job's folder hold `text`; no file when that is empty.
  absl::Status RestoreFile(absl::string_view name,
                           absl::string_view text) const;
  void Remember(const Attempt& attempt);
  void Report(absl::string_view stage, double fraction) const;

  OptimizerInput in_;
  // Samples compared, and the original's outputs for them.
  std::vector<int64_t> compared_;
  std::vector<std::vector<runtime::Tensor>> expected_;
  Labels labels_;
  // Samples that have a label.
  std::vector<int64_t> labelled_;
  std::optional<v1::Accuracy> float_accuracy_;
  std::vector<std::string> attempts_;
  std::vector<std::string> warnings_;
  // SHA-256 of the graphs made, before their ranges were frozen.
  std::set<std::string> made_;
};

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_OPTIMIZER_H_
