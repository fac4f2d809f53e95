#include "engine/optimize/attempt_maker.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "engine/formats/tensorflow/graph_file.h"
#include "engine/optimize/recipes/recipe_steps.h"
#include "engine/optimize/rounding/adaptive_rounding.h"
#include "engine/optimize/rounding/bias_correction.h"
#include "engine/optimize/rounding/channel_equalization.h"
#include "engine/runtime/core/thread_pool.h"
#include "engine/transforms/quantizing/expanded_layers.h"
#include "engine/transforms/quantizing/idle_biases.h"

namespace optfarm::optimize {
namespace {

using runtime::Tensor;
using transforms::TransformStep;

// Means settle on few samples, and every layer costs a run of each.
constexpr size_t kCorrectionSamples = 32;

bool HasStep(absl::Span<const TransformStep> steps, absl::string_view name) {
  return std::any_of(
      steps.begin(), steps.end(),
      [&](const TransformStep& step) { return step.name == name; });
}

void AddSteps(const std::vector<TransformStep>& steps,
              const transforms::PipelineReport& report, Attempt* attempt) {
  attempt->steps.insert(attempt->steps.end(), steps.begin(), steps.end());
  attempt->pipeline.steps.insert(attempt->pipeline.steps.end(),
                                 report.steps.begin(), report.steps.end());
}

absl::StatusOr<int64_t> FileBytes(const graph::Graph& graph) {
  OPTFARM_ASSIGN_OR_RETURN(const std::string bytes,
                           formats::SerializeGraphDef(graph.ToDef()));
  return static_cast<int64_t>(bytes.size());
}

// What makes a file smaller, the dearest last.
std::vector<std::vector<TransformStep>> WaysToBeSmaller(
    const OptimizerInput& in) {
  std::vector<std::vector<TransformStep>> ways;
  for (const char* as_half : {"false", "true"}) {
    ways.push_back({{"pool_constants", {{"as_half", as_half}}},
                    {"sort_by_execution_order", {}}});
  }
  if (!in.recipe->file_size().shorten_names()) return ways;
  TransformStep names = {"obfuscate_names", {}};
  if (in.detector.has_value()) {
    // What goes into the selection of boxes is compared by its names.
    for (const graph::TensorName& raw : in.detector->raw) {
      names.parameters.push_back({"exclude_node", raw.node});
    }
  }
  ways.push_back(ways.back());
  ways.back().push_back(std::move(names));
  return ways;
}

}  // namespace

absl::StatusOr<std::vector<TransformStep>> AttemptMaker::Chain(
    const Spared& spared) const {
  if (spared.chain.empty()) {
    OPTFARM_ASSIGN_OR_RETURN(std::vector<TransformStep> own,
                             StepsOfRecipe(*in_.recipe));
    return WithSpared(std::move(own), spared);
  }
  OPTFARM_ASSIGN_OR_RETURN(std::vector<TransformStep> other,
                           transforms::ParseTransforms(spared.chain));
  return WithSpared(std::move(other), spared);
}

absl::Status AttemptMaker::RunMore(const std::vector<TransformStep>& steps,
                                   Attempt* attempt) {
  transforms::PipelineOptions options;
  options.base_folder = in_.out_folder;
  OPTFARM_ASSIGN_OR_RETURN(
      const transforms::PipelineReport report,
      transforms::RunTransforms(&attempt->graph, steps, in_.inputs, in_.outputs,
                                options));
  AddSteps(steps, report, attempt);
  return absl::OkStatus();
}

absl::Status AttemptMaker::Transform(Attempt* attempt,
                                     std::optional<graph::Graph>* floats) {
  attempt->graph = in_.original->Clone();
  OPTFARM_ASSIGN_OR_RETURN(std::vector<TransformStep> steps,
                           Chain(attempt->spared));
  const size_t before = StepsBeforeQuantizing(steps);
  if (in_.recipe->has_calibration() && before > 0) {
    const auto rest = steps.begin() + static_cast<ptrdiff_t>(before);
    OPTFARM_RETURN_IF_ERROR(RunMore({steps.begin(), rest}, attempt));
    *floats = attempt->graph.Clone();
    steps.erase(steps.begin(), rest);
  }
  return RunMore(steps, attempt);
}

absl::StatusOr<graph::Graph> AttemptMaker::InFloat(const Spared& spared) const {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<TransformStep> steps,
                           Chain(spared));
  graph::Graph floats = in_.original->Clone();
  const auto before = absl::MakeConstSpan(steps).first(FloatSteps(steps));
  if (before.empty()) return floats;
  transforms::PipelineOptions options;
  options.base_folder = in_.out_folder;
  OPTFARM_RETURN_IF_ERROR(transforms::RunTransforms(&floats, before, in_.inputs,
                                                    in_.outputs, options)
                              .status());
  return floats;
}

absl::Status AttemptMaker::RestoreFile(absl::string_view name,
                                       absl::string_view text) const {
  const std::string path = JoinPath(in_.out_folder, name);
  return text.empty() ? RemoveAll(path) : WriteFileAtomically(path, text);
}

absl::Status AttemptMaker::WriteLogs(const Observation& observed) const {
  OPTFARM_RETURN_IF_ERROR(
      RestoreFile(kRangeLogFile, transforms::PrintRangeLog(observed.log)));
  return RestoreFile(kInputLogFile,
                     transforms::PrintRangeLog(observed.input_log));
}

absl::Status AttemptMaker::Calibrate(const graph::Graph* floats,
                                     Attempt* attempt) {
  const v1::Calibration calibration =
      WithRanges(in_.recipe->calibration(), attempt->spared);
  OPTFARM_ASSIGN_OR_RETURN(
      attempt->observed,
      ObserveRanges(calibration, {&attempt->graph, floats}, in_.outputs,
                    {in_.inputs, samples_, in_.threads, in_.reader}));
  const std::vector<TransformStep> steps =
      FreezeSteps(calibration, attempt->observed);
  if (steps.empty()) return absl::OkStatus();
  attempt->calibration_samples = attempt->observed.samples;
  OPTFARM_RETURN_IF_ERROR(WriteLogs(attempt->observed));
  return RunMore(steps, attempt);
}

absl::Status AttemptMaker::Equalize(Attempt* attempt) {
  OPTFARM_ASSIGN_OR_RETURN(
      attempt->factors, FindChannelFactors(attempt->graph, in_.inputs, samples_,
                                           in_.threads, in_.reader));
  if (attempt->factors.empty()) return absl::OkStatus();
  OPTFARM_RETURN_IF_ERROR(
      WriteFileAtomically(JoinPath(in_.out_folder, kFactorFile),
                          transforms::PrintConstantShifts(attempt->factors)));
  return RunMore({{"scale_channels", {{"scale_file", kFactorFile}}}}, attempt);
}

absl::Status AttemptMaker::AdaptRounding(const graph::Graph& floats,
                                         Attempt* attempt) {
  OPTFARM_ASSIGN_OR_RETURN(
      attempt->rounding,
      FindRounding(floats, attempt->graph,
                   {in_.inputs, samples_, in_.threads, in_.reader}));
  if (attempt->spared.corrects_biases) {
    // The biases behind them are corrected later.
    for (const std::string& bias :
         transforms::FindIdleBiases(attempt->graph, in_.outputs)) {
      attempt->rounding.erase(bias);
    }
  }
  if (attempt->rounding.empty()) return absl::OkStatus();
  OPTFARM_RETURN_IF_ERROR(
      WriteFileAtomically(JoinPath(in_.out_folder, kRoundingFile),
                          transforms::PrintConstantShifts(attempt->rounding)));
  return RunMore({{"shift_constants", {{"shift_file", kRoundingFile}}}},
                 attempt);
}

absl::Status AttemptMaker::Correct(Attempt* attempt) {
  std::vector<std::vector<Tensor>> samples;
  runtime::ThreadPool pool(std::max(1, in_.threads));
  for (absl::Span<const int64_t> left = samples_;
       !left.empty() && samples.size() < kCorrectionSamples;) {
    const auto part = left.subspan(0, kCorrectionSamples - samples.size());
    for (auto& sample : in_.reader->ReadMany(part, &pool)) {
      if (sample.has_value()) samples.push_back(*std::move(sample));
    }
    left.remove_prefix(part.size());
  }
  OPTFARM_RETURN_IF_ERROR(in_.reader->CheckBad());
  graph::Graph corrected = attempt->graph.Clone();
  OPTFARM_RETURN_IF_ERROR(transforms::ExpandLayers(
      *in_.original, attempt->factors,
      transforms::FindIdleBiases(attempt->graph, in_.outputs), &corrected));
  OPTFARM_ASSIGN_OR_RETURN(transforms::ConstantShifts shifts,
                           CorrectBiases(*in_.original, in_.inputs, samples,
                                         in_.threads, &corrected));
  attempt->shifts = transforms::ShiftsOfScaled(
      std::move(shifts), attempt->factors, attempt->graph);
  if (attempt->shifts.empty()) return absl::OkStatus();
  attempt->calibration_samples = std::max(attempt->calibration_samples,
                                          static_cast<int64_t>(samples.size()));
  OPTFARM_RETURN_IF_ERROR(
      WriteFileAtomically(JoinPath(in_.out_folder, kShiftFile),
                          transforms::PrintConstantShifts(attempt->shifts)));
  // The graph is made by the step that the report names, so that the report
  // says how to make it.
  return RunMore({{"shift_constants", {{"shift_file", kShiftFile}}}}, attempt);
}

absl::Status AttemptMaker::MakeSmaller(Attempt* attempt) const {
  const v1::FileSize& wanted = in_.recipe->file_size();
  if (!wanted.has_aim_ratio() || in_.original_bytes < wanted.from_bytes()) {
    return absl::OkStatus();
  }
  const double most =
      wanted.aim_ratio() * static_cast<double>(in_.original_bytes);
  OPTFARM_ASSIGN_OR_RETURN(const int64_t bytes, FileBytes(attempt->graph));
  if (static_cast<double>(bytes) <= most) return absl::OkStatus();
  for (const std::vector<TransformStep>& steps : WaysToBeSmaller(in_)) {
    graph::Graph smaller = attempt->graph.Clone();
    OPTFARM_ASSIGN_OR_RETURN(
        const transforms::PipelineReport report,
        transforms::RunTransforms(&smaller, steps, in_.inputs, in_.outputs));
    OPTFARM_ASSIGN_OR_RETURN(const int64_t left, FileBytes(smaller));
    if (static_cast<double>(left) > most) continue;
    attempt->readable_steps = attempt->pipeline.steps.size();
    attempt->readable_bytes = bytes;
    attempt->readable = std::exchange(attempt->graph, std::move(smaller));
    AddSteps(steps, report, attempt);
    break;
  }
  return absl::OkStatus();
}

absl::Status AttemptMaker::Learn(
    const graph::Graph* floats, Attempt* attempt,
    absl::FunctionRef<void(absl::string_view stage, double part)> report) {
  const bool has_data = !in_.dataset->is_random();
  if (in_.recipe->has_calibration() && has_data &&
      HasRanges(attempt->graph,
                WithRanges(in_.recipe->calibration(), attempt->spared))) {
    report("calibrating", 0.1);
    OPTFARM_RETURN_IF_ERROR(Calibrate(floats, attempt));
  }
  if (HasStep(attempt->steps, "quantize_layers")) {
    OPTFARM_RETURN_IF_ERROR(RunMore({{"fuse_requantization", {}},
                                     {"strip_unused_nodes", {}},
                                     {"sort_by_execution_order", {}}},
                                    attempt));
    if (has_data) OPTFARM_RETURN_IF_ERROR(Equalize(attempt));
    if (attempt->spared.adapts_rounding && has_data && floats != nullptr) {
      report("adapting rounding", 0.15);
      OPTFARM_RETURN_IF_ERROR(AdaptRounding(*floats, attempt));
    }
  }
  if (attempt->spared.corrects_biases && has_data) {
    report("correcting biases", 0.2);
    OPTFARM_RETURN_IF_ERROR(Correct(attempt));
  }
  if (HasStep(attempt->steps, "quantize_layers")) {
    // Ends of ranges are alike in many layers. What became one op has another's
    // defaults.
    std::vector<TransformStep> last = {{"merge_duplicate_nodes", {}},
                                       {"sort_by_execution_order", {}}};
    if (HasStep(attempt->steps, "remove_default_attributes")) {
      last.insert(last.begin(), {"remove_default_attributes", {}});
    }
    OPTFARM_RETURN_IF_ERROR(RunMore(last, attempt));
  }
  return MakeSmaller(attempt);
}

absl::Status AttemptMaker::RestoreFiles(const Attempt& attempt) const {
  OPTFARM_RETURN_IF_ERROR(WriteLogs(attempt.observed));
  OPTFARM_RETURN_IF_ERROR(
      RestoreFile(kShiftFile, transforms::PrintConstantShifts(attempt.shifts)));
  OPTFARM_RETURN_IF_ERROR(RestoreFile(
      kRoundingFile, transforms::PrintConstantShifts(attempt.rounding)));
  return RestoreFile(kFactorFile,
                     transforms::PrintConstantShifts(attempt.factors));
}

}  // namespace optfarm::optimize
