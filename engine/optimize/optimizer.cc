#include "engine/optimize/optimizer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "base/digest.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "engine/formats/graph_file.h"
#include "engine/optimize/adaptive_rounding.h"
#include "engine/optimize/bias_correction.h"
#include "engine/optimize/channel_equalization.h"
#include "engine/optimize/comparison.h"
#include "engine/optimize/layer_histogram.h"
#include "engine/optimize/layers.h"
#include "engine/optimize/recipe_steps.h"
#include "engine/optimize/sample_choice.h"
#include "engine/transforms/expanded_layers.h"

namespace optfarm::optimize {
namespace {

using runtime::Tensor;
using transforms::TransformStep;

constexpr int64_t kDefaultCompared = 32;
constexpr int kMostWorstSamples = 10;
constexpr int64_t kDefaultCalibration = 100;
// Means settle on few samples, and every layer costs a run of each.
constexpr size_t kCorrectionSamples = 32;
// Layers are compared on few samples, and not all of a very deep network's,
// because every tensor of both graphs is held at once.
constexpr int64_t kLayerSamples = 8;
constexpr size_t kMaxLayers = 400;
// Every layer alone costs runs of both graphs.
constexpr size_t kAloneSamples = 4;
// UNITS: decibel. Noise a thousandth of the signal's power is no reason to pay
// for layers of inputs in float, unless the recipe aims higher.
constexpr double kQuiet = 30;
// What one search step puts back to float: a part of the 8-bit layers.
constexpr int kLayersPerStep = 8;

int CountEightBit(const graph::Graph& graph) {
  int count = 0;
  for (const graph::NodeId id : graph.Ids()) {
    const absl::string_view name = graph.node(id).name();
    count += absl::EndsWith(absl::StripSuffix(name, transforms::kScaledSuffix),
                            "/eightbit");
  }
  return count;
}

bool HasStep(absl::Span<const TransformStep> steps, absl::string_view name) {
  return std::any_of(
      steps.begin(), steps.end(),
      [&](const TransformStep& step) { return step.name == name; });
}

// What is done to a graph after it was made, in words that differ where it
// does.
std::string WhatSamplesDo(const Spared& spared) {
  Spared done;
  done.corrects_biases = spared.corrects_biases;
  done.adapts_rounding = spared.adapts_rounding;
  done.ranges = spared.ranges;
  return DescribeSpared(done);
}

bool ReachesAims(const Attempt& attempt) {
  return attempt.broken.ok() && !MayBeMended(attempt.aim_gates);
}

bool IsBetter(const Attempt& a, const Attempt& b) {
  if (a.broken.ok() != b.broken.ok()) return a.broken.ok();
  return Badness(a.aim_gates, a.guide) < Badness(b.aim_gates, b.guide);
}

}  // namespace

void Optimizer::Report(absl::string_view stage, double fraction) const {
  if (in_.progress) in_.progress(stage, fraction);
}

absl::Status Optimizer::LabelSamples(const Tensor& scores,
                                     absl::Span<const int64_t> candidates) {
  const int64_t classes = ClassesOf(scores);
  if (!in_.labels_path.empty()) {
    OPTFARM_ASSIGN_OR_RETURN(labels_, LoadLabels(in_.labels_path, *in_.dataset,
                                                 classes, in_.labels_offset));
  } else {
    OPTFARM_ASSIGN_OR_RETURN(
        labels_, LabelsFromRecords(*in_.dataset, classes, in_.labels_offset));
    if (labels_.classes.empty()) labels_ = GuessLabels(*in_.dataset, classes);
  }
  if (labels_.classes.empty()) return absl::OkStatus();
  for (const int64_t i : candidates) {
    if (labels_.classes[i] >= 0) labelled_.push_back(i);
  }
  const int64_t most = in_.recipe->verification().max_labelled_samples();
  if (most > 0 && most < static_cast<int64_t>(labelled_.size())) {
    labelled_.resize(most);
  }
  return absl::OkStatus();
}

absl::Status Optimizer::MeasureOriginal() {
  Report("running the original", 0.1);
  in_.detector = FindDetector(*in_.original, in_.outputs);
  const v1::Calibration& calibration = in_.recipe->calibration();
  calibration_ = in_.dataset->Choose(calibration.max_samples() > 0
                                         ? calibration.max_samples()
                                         : kDefaultCalibration,
                                     calibration.seed());
  OPTFARM_ASSIGN_OR_RETURN(guide_, MakeReference(in_, calibration_));
  // Where nothing is taken from the samples, all of them may judge.
  const bool learns =
      in_.recipe->has_calibration() || in_.recipe->has_keep_float();
  std::vector<int64_t> others = OtherSamples(
      learns ? calibration_ : std::vector<int64_t>(), in_.dataset->size());
  if (others.empty()) {
    judge_ = guide_;
    others = calibration_;
    if (!in_.dataset->is_random()) {
      warnings_.push_back(absl::StrCat(
          "The result was measured on the ", others.size(),
          " samples that it was calibrated on, because there are no others; "
          "give more data, or a smaller calibration.max_samples, for a "
          "judgement on samples it has not seen."));
    }
  } else {
    Report("running the original", 0.13);
    const int64_t wanted = in_.recipe->verification().samples();
    OPTFARM_ASSIGN_OR_RETURN(
        judge_,
        MakeReference(in_,
                      ChooseSome(others, wanted > 0 ? wanted : kDefaultCompared,
                                 calibration.seed() + 1)));
  }
  scores_output_ =
      judge_.outputs.empty() ? -1 : ScoresOutput(in_, judge_.outputs[0]);
  if (scores_output_ < 0) {
    if (in_.labels_path.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "Labels are given, but no output of the model is a row of class "
        "scores; leave the labels out or choose another output");
  }
  OPTFARM_RETURN_IF_ERROR(
      LabelSamples(judge_.outputs[0][scores_output_], others));
  return MeasureLabelled();
}

absl::Status Optimizer::MeasureLabelled() {
  if (labelled_.empty()) return absl::OkStatus();
  Report("running the original", 0.15);
  OPTFARM_ASSIGN_OR_RETURN(Answers answers,
                           AnswerLabelled(*in_.original, in_, scores_output_,
                                          labelled_, labels_.classes));
  const double top1 = ToAccuracy(answers).top1();
  const auto classes =
      static_cast<double>(ClassesOf(judge_.outputs[0][scores_output_]));
  if (labels_.guessed && top1 < 2 * 100 / classes) {
    warnings_.push_back(absl::StrCat(
        "Labels were tried that come from ", labels_.source,
        ", but the original is right for only ", absl::StrFormat("%.1f", top1),
        " % of them, so they seem to be about other classes and are not used; "
        "give --labels, or --labels_offset."));
    labels_ = {};
    labelled_.clear();
  } else {
    float_answers_ = std::move(answers);
  }
  return absl::OkStatus();
}

absl::Status Optimizer::Calibrate(const graph::Graph* floats,
                                  Attempt* attempt) {
  const v1::Calibration calibration =
      WithRanges(in_.recipe->calibration(), attempt->spared);
  OPTFARM_ASSIGN_OR_RETURN(
      attempt->observed,
      ObserveRanges(calibration, {&attempt->graph, floats}, in_.outputs,
                    {in_.inputs, calibration_, in_.threads, in_.reader}));
  const std::vector<TransformStep> steps =
      FreezeSteps(calibration, attempt->observed);
  if (steps.empty()) return absl::OkStatus();
  attempt->calibration_samples = attempt->observed.samples;
  OPTFARM_RETURN_IF_ERROR(WriteLogs(attempt->observed));
  return RunMore(steps, attempt);
}

absl::Status Optimizer::WriteLogs(const Observation& observed) const {
  OPTFARM_RETURN_IF_ERROR(
      RestoreFile(kRangeLogFile, transforms::PrintRangeLog(observed.log)));
  return RestoreFile(kInputLogFile,
                     transforms::PrintRangeLog(observed.input_log));
}

absl::Status Optimizer::RunMore(const std::vector<TransformStep>& steps,
                                Attempt* attempt) {
  transforms::PipelineOptions options;
  options.base_folder = in_.out_folder;
  OPTFARM_ASSIGN_OR_RETURN(
      const transforms::PipelineReport report,
      transforms::RunTransforms(&attempt->graph, steps, in_.inputs, in_.outputs,
                                options));
  attempt->steps.insert(attempt->steps.end(), steps.begin(), steps.end());
  attempt->pipeline.steps.insert(attempt->pipeline.steps.end(),
                                 report.steps.begin(), report.steps.end());
  return absl::OkStatus();
}

absl::Status Optimizer::Correct(Attempt* attempt) {
  std::vector<std::vector<Tensor>> samples;
  for (const int64_t index : calibration_) {
    if (samples.size() == kCorrectionSamples) break;
    auto sample = in_.reader->Read(index);
    if (sample.has_value()) samples.push_back(*std::move(sample));
  }
  OPTFARM_RETURN_IF_ERROR(in_.reader->CheckBad());
  graph::Graph corrected = attempt->graph.Clone();
  OPTFARM_RETURN_IF_ERROR(
      transforms::ExpandLayers(*in_.original, attempt->factors, &corrected));
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

absl::Status Optimizer::Equalize(Attempt* attempt) {
  OPTFARM_ASSIGN_OR_RETURN(
      attempt->factors,
      FindChannelFactors(attempt->graph, in_.inputs, calibration_, in_.threads,
                         in_.reader));
  if (attempt->factors.empty()) return absl::OkStatus();
  OPTFARM_RETURN_IF_ERROR(
      WriteFileAtomically(JoinPath(in_.out_folder, kFactorFile),
                          transforms::PrintConstantShifts(attempt->factors)));
  return RunMore({{"scale_channels", {{"scale_file", kFactorFile}}}}, attempt);
}

absl::Status Optimizer::AdaptRounding(const graph::Graph& floats,
                                      Attempt* attempt) {
  OPTFARM_ASSIGN_OR_RETURN(
      attempt->rounding,
      FindRounding(floats, attempt->graph,
                   {in_.inputs, calibration_, in_.threads, in_.reader}));
  if (attempt->rounding.empty()) return absl::OkStatus();
  OPTFARM_RETURN_IF_ERROR(
      WriteFileAtomically(JoinPath(in_.out_folder, kRoundingFile),
                          transforms::PrintConstantShifts(attempt->rounding)));
  return RunMore({{"shift_constants", {{"shift_file", kRoundingFile}}}},
                 attempt);
}

absl::Status Optimizer::Judge(Attempt* attempt) {
  Report("comparing", 0.82);
  OPTFARM_ASSIGN_OR_RETURN(OutputComparison compared,
                           CompareWithReference(attempt->graph, in_, judge_));
  attempt->facts = attempt->guide;
  attempt->facts.outputs = std::move(compared.outputs);
  attempt->facts.detections = compared.detections;
  for (size_t i = 0; i < compared.samples.size(); ++i) {
    if (!labels_.classes.empty()) {
      compared.samples[i].set_label(labels_.classes[judge_.samples[i]]);
    }
  }
  std::stable_sort(
      compared.samples.begin(), compared.samples.end(),
      [](const auto& a, const auto& b) { return a.snr_db() < b.snr_db(); });
  for (v1::SampleComparison& sample : compared.samples) {
    if (attempt->worst_samples.size() == kMostWorstSamples) break;
    attempt->worst_samples.push_back(std::move(sample));
  }
  if (float_answers_.has_value()) {
    OPTFARM_ASSIGN_OR_RETURN(const Answers answers,
                             AnswerLabelled(attempt->graph, in_, scores_output_,
                                            labelled_, labels_.classes));
    attempt->facts.float_accuracy = ToAccuracy(*float_answers_);
    attempt->facts.optimized_accuracy = ToAccuracy(answers);
    attempt->paired = ComparePaired(float_answers_->is_top1, answers.is_top1);
    attempt->paired_top5 =
        ComparePaired(float_answers_->is_top5, answers.is_top5);
  }
  attempt->gates = CheckGates(in_.recipe->bounds(), attempt->facts);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<TransformStep>> Optimizer::Chain(
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

absl::Status Optimizer::RunChain(Attempt* attempt,
                                 std::optional<graph::Graph>* floats) {
  attempt->graph = in_.original->Clone();
  std::vector<TransformStep> steps = std::move(attempt->steps);
  attempt->steps.clear();
  const size_t before = StepsBeforeQuantizing(steps);
  if (in_.recipe->has_calibration() && before > 0) {
    const auto rest = steps.begin() + static_cast<ptrdiff_t>(before);
    OPTFARM_RETURN_IF_ERROR(RunMore({steps.begin(), rest}, attempt));
    *floats = attempt->graph.Clone();
    steps.erase(steps.begin(), rest);
  }
  return RunMore(steps, attempt);
}

absl::StatusOr<std::optional<Attempt>> Optimizer::Make(const Spared& spared) {
  // Each attempt gets half of what is left of 0.2..0.8.
  double left = 0.6;
  for (size_t i = 0; i < attempts_.size(); ++i) left /= 2;
  const double start = 0.8 - left;
  Attempt attempt;
  attempt.spared = spared;
  OPTFARM_ASSIGN_OR_RETURN(attempt.steps, Chain(spared));
  Report("transforming", start);
  std::optional<graph::Graph> floats;
  OPTFARM_RETURN_IF_ERROR(RunChain(&attempt, &floats));
  OPTFARM_ASSIGN_OR_RETURN(const std::string unfrozen,
                           formats::SerializeGraphDef(attempt.graph.ToDef()));
  if (!made_.insert(absl::StrCat(Sha256Hex(unfrozen), WhatSamplesDo(spared)))
           .second) {
    return std::optional<Attempt>();
  }
  if (const absl::Status status = Finish(
          start, left, floats.has_value() ? &*floats : nullptr, &attempt);
      status.code() == absl::StatusCode::kInvalidArgument ||
      status.code() == absl::StatusCode::kUnimplemented) {
    // Another chain may be better off: a value that cannot be quantized, for
    // one, does no harm in a layer that stays in float.
    attempt.broken = status;
  } else if (!status.ok()) {
    return status;
  }
  attempt.search_step = search_.size();
  AddSearchStep(attempt);
  return std::optional<Attempt>(std::move(attempt));
}

void Optimizer::AddSearchStep(const Attempt& attempt) {
  v1::SearchStep& step = search_.emplace_back();
  step.set_description(DescribeSpared(attempt.spared));
  if (!attempt.broken.ok()) {
    step.set_broken(std::string(attempt.broken.message()));
    return;
  }
  step.set_bytes(attempt.guide.bytes_after);
  step.set_milliseconds(attempt.milliseconds);
  step.set_agreement(-1);
  step.set_snr_db(std::numeric_limits<double>::infinity());
  for (const v1::TensorComparison& output : attempt.guide.outputs) {
    step.set_snr_db(std::min(step.snr_db(), output.snr_db()));
    if (output.top1_agreement() < 0) continue;
    step.set_agreement(
        step.agreement() < 0
            ? output.top1_agreement()
            : std::min(step.agreement(), output.top1_agreement()));
  }
  step.set_within_bounds(!MayBeMended(attempt.guide_gates));
}

absl::Status Optimizer::Finish(double start, double left,
                               const graph::Graph* floats, Attempt* attempt) {
  const bool has_data = !in_.dataset->is_random();
  if (in_.recipe->has_calibration() && has_data &&
      HasRanges(attempt->graph,
                WithRanges(in_.recipe->calibration(), attempt->spared))) {
    Report("calibrating", start + 0.1 * left);
    OPTFARM_RETURN_IF_ERROR(Calibrate(floats, attempt));
  }
  if (HasStep(attempt->steps, "quantize_layers")) {
    OPTFARM_RETURN_IF_ERROR(RunMore({{"fuse_requantization", {}},
                                     {"strip_unused_nodes", {}},
                                     {"sort_by_execution_order", {}}},
                                    attempt));
    if (has_data) OPTFARM_RETURN_IF_ERROR(Equalize(attempt));
    if (attempt->spared.adapts_rounding && has_data && floats != nullptr) {
      Report("adapting rounding", start + 0.15 * left);
      OPTFARM_RETURN_IF_ERROR(AdaptRounding(*floats, attempt));
    }
  }
  if (attempt->spared.corrects_biases && has_data) {
    Report("correcting biases", start + 0.2 * left);
    OPTFARM_RETURN_IF_ERROR(Correct(attempt));
  }
  if (HasStep(attempt->steps, "quantize_layers")) {
    // Ends of ranges are alike in many layers.
    OPTFARM_RETURN_IF_ERROR(RunMore(
        {{"merge_duplicate_nodes", {}}, {"sort_by_execution_order", {}}},
        attempt));
  }
  Report("comparing", start + 0.3 * left);
  OPTFARM_ASSIGN_OR_RETURN(OutputComparison compared,
                           CompareWithReference(attempt->graph, in_, guide_));
  OPTFARM_ASSIGN_OR_RETURN(const std::string bytes,
                           formats::SerializeGraphDef(attempt->graph.ToDef()));
  attempt->guide.outputs = std::move(compared.outputs);
  attempt->guide.bytes_before = in_.original_bytes;
  attempt->guide.bytes_after = static_cast<int64_t>(bytes.size());
  const auto sample = guide_.samples.empty()
                          ? std::nullopt
                          : in_.reader->Read(guide_.samples[0]);
  if (sample.has_value()) {
    OPTFARM_ASSIGN_OR_RETURN(
        attempt->milliseconds,
        MillisecondsOf(attempt->graph, in_.inputs, in_.outputs, *sample));
  }
  const v1::Bounds bounds = BoundsWithoutLabels(in_.recipe->bounds());
  attempt->guide_gates = CheckGates(bounds, attempt->guide);
  attempt->aim_gates =
      CheckGates(WithAims(bounds, in_.recipe->keep_float()), attempt->guide);
  return absl::OkStatus();
}

void Optimizer::Remember(const Attempt& attempt) {
  if (!attempt.broken.ok()) {
    attempts_.push_back(absl::StrCat(DescribeSpared(attempt.spared),
                                     ": cannot be run; ",
                                     attempt.broken.message()));
    return;
  }
  std::string text = absl::StrCat(DescribeSpared(attempt.spared), ": ",
                                  attempt.guide.bytes_after, " bytes");
  for (const v1::GateResult& gate : attempt.aim_gates) {
    if (gate.passed()) continue;
    absl::StrAppend(&text,
                    absl::StrFormat(", %s is %.4g and not %.4g", gate.name(),
                                    gate.value(), gate.bound()));
  }
  attempts_.push_back(std::move(text));
}

absl::StatusOr<std::vector<v1::TensorComparison>> Optimizer::CompareByLayer(
    const Attempt& attempt) {
  Report("comparing layers", 0.85);
  return CompareLayersOn(judge_, attempt);
}

absl::StatusOr<TransformedGraph> Optimizer::Transform(
    const Spared& spared, const Observation& observed) const {
  TransformedGraph made;
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<TransformStep> steps,
                           Chain(spared));
  made.graph = in_.original->Clone();
  transforms::PipelineOptions options;
  options.base_folder = in_.out_folder;
  OPTFARM_ASSIGN_OR_RETURN(
      const transforms::PipelineReport report,
      transforms::RunTransforms(&made.graph, steps, in_.inputs, in_.outputs,
                                options));
  made.name_map = transforms::MakeNameMap(report.steps, made.graph);
  OPTFARM_RETURN_IF_ERROR(FreezeKnown(
      WithRanges(in_.recipe->calibration(), spared), observed, &made.graph));
  return made;
}

absl::StatusOr<std::vector<v1::LayerSensitivity>> Optimizer::MeasureLayersAlone(
    const Attempt& attempt, absl::Span<const v1::TensorComparison> layers) {
  Report("measuring layers alone", 0.87);
  std::vector<std::vector<Tensor>> samples;
  for (const int64_t index : judge_.samples) {
    if (samples.size() == kAloneSamples) break;
    auto sample = in_.reader->Read(index);
    if (sample.has_value()) samples.push_back(*std::move(sample));
  }
  SensitivityJob job;
  job.original = in_.original;
  job.result = &attempt.graph;
  job.spared = attempt.spared;
  job.transform = [&](const Spared& spared) {
    return Transform(spared, attempt.observed);
  };
  job.inputs = in_.inputs;
  job.outputs = in_.outputs;
  job.samples = samples;
  job.cumulative = layers;
  job.threads = in_.threads;
  return MeasureSensitivity(job);
}

absl::StatusOr<std::vector<v1::LayerHistogram>> Optimizer::MeasureDistributions(
    const Attempt& attempt) {
  const auto& wanted = in_.recipe->verification().histograms();
  const std::vector<std::string> names(wanted.begin(), wanted.end());
  std::vector<int64_t> samples = judge_.samples;
  samples.resize(std::min<size_t>(samples.size(), kLayerSamples));
  return MeasureHistograms(
      *in_.original, attempt.graph,
      transforms::MakeNameMap(attempt.pipeline.steps, attempt.graph), names,
      in_.inputs, samples, in_.threads, in_.reader);
}

absl::StatusOr<std::vector<v1::TensorComparison>> Optimizer::CompareLayersOn(
    const Reference& reference, const Attempt& attempt) {
  OPTFARM_ASSIGN_OR_RETURN(
      const std::vector<Layer> layers,
      FindLayers(*in_.original, attempt.graph,
                 transforms::MakeNameMap(attempt.pipeline.steps, attempt.graph),
                 in_.inputs, kMaxLayers));
  std::vector<int64_t> samples = reference.samples;
  samples.resize(std::min<size_t>(samples.size(), kLayerSamples));
  auto compared = CompareLayers(*in_.original, attempt.graph, layers,
                                in_.inputs, samples, in_.threads, in_.reader);
  if (compared.status().code() != absl::StatusCode::kFailedPrecondition) {
    return compared;
  }
  // A Switch cut a tensor off.
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<Layer> sure,
                           LayersOfEveryRun(*in_.original, layers));
  return CompareLayers(*in_.original, attempt.graph, sure, in_.inputs, samples,
                       in_.threads, in_.reader);
}

absl::StatusOr<std::vector<std::string>> Optimizer::LayersToSpare(
    const Attempt& attempt, const Spared& spared) {
  const int eight_bit = CountEightBit(attempt.graph);
  if (eight_bit == 0) return std::vector<std::string>();
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<v1::TensorComparison> layers,
                           CompareLayersOn(guide_, attempt));
  const size_t step = (eight_bit + kLayersPerStep - 1) / kLayersPerStep;
  std::vector<std::string> worst = WorstLayers(
      *in_.original, attempt.graph, layers, layers.size(),
      transforms::MakeNameMap(attempt.pipeline.steps, attempt.graph));
  // `attempt` is the best so far; later ones may have spared some already.
  std::erase_if(worst, [&](const std::string& node) {
    return spared.nodes.count(node) > 0;
  });
  worst.resize(std::min(worst.size(), step));
  return worst;
}

absl::Status Optimizer::RestoreFile(absl::string_view name,
                                    absl::string_view text) const {
  const std::string path = JoinPath(in_.out_folder, name);
  return text.empty() ? RemoveAll(path) : WriteFileAtomically(path, text);
}

absl::Status Optimizer::SpareInputLayers(Attempt* best) {
  const v1::KeepFloat& keep_float = in_.recipe->keep_float();
  if (!keep_float.has_input_layers_gain_db() || !best->broken.ok() ||
      search_[best->search_step].snr_db() >=
          std::max(kQuiet, keep_float.aim_snr_db())) {
    return absl::OkStatus();
  }
  const std::vector<std::string> layers = InputLayers(
      best->graph, transforms::MakeNameMap(best->pipeline.steps, best->graph));
  if (layers.empty()) return absl::OkStatus();
  Spared spared = best->spared;
  spared.nodes.insert(layers.begin(), layers.end());
  OPTFARM_ASSIGN_OR_RETURN(std::optional<Attempt> next, Make(spared));
  if (!next.has_value() || !next->broken.ok()) return absl::OkStatus();
  if (search_[next->search_step].snr_db() -
          search_[best->search_step].snr_db() >=
      keep_float.input_layers_gain_db()) {
    *best = *std::move(next);
  }
  return absl::OkStatus();
}

absl::StatusOr<Attempt> Optimizer::FindBest() {
  const v1::KeepFloat& keep_float = in_.recipe->keep_float();
  OPTFARM_ASSIGN_OR_RETURN(std::optional<Attempt> first,
                           Make(SparedByRecipe(keep_float)));
  Attempt best = *std::move(first);
  // Tries one more chain and keeps what it makes when that is better.
  const auto try_next = [&](const Spared& spared) -> absl::Status {
    OPTFARM_ASSIGN_OR_RETURN(std::optional<Attempt> next, Make(spared));
    if (!next.has_value()) return absl::OkStatus();
    if (!ReachesAims(*next)) Remember(*next);
    if (IsBetter(*next, best)) best = *std::move(next);
    return absl::OkStatus();
  };
  if (!in_.dataset->is_random()) {
    OPTFARM_RETURN_IF_ERROR(SpareInputLayers(&best));
  }
  const std::set<std::string> inputs = best.spared.nodes;
  if (!ReachesAims(best)) Remember(best);
  for (int i = 0; i < keep_float.attempts_size() && !ReachesAims(best); ++i) {
    Spared gentler = SparedByAttempt(keep_float, keep_float.attempts(i));
    gentler.nodes.insert(inputs.begin(), inputs.end());
    OPTFARM_RETURN_IF_ERROR(try_next(gentler));
  }
  Spared spared = best.spared;
  for (int i = 0; i < keep_float.layer_attempts() && best.broken.ok() &&
                  MayBeMended(best.guide_gates);
       ++i) {
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<std::string> layers,
                             LayersToSpare(best, spared));
    if (layers.empty()) break;
    spared.nodes.insert(layers.begin(), layers.end());
    OPTFARM_RETURN_IF_ERROR(try_next(spared));
  }
  OPTFARM_RETURN_IF_ERROR(best.broken);
  search_[best.search_step].set_taken(true);
  OPTFARM_RETURN_IF_ERROR(Judge(&best));
  // The files on disk are the last attempt's.
  OPTFARM_RETURN_IF_ERROR(WriteLogs(best.observed));
  OPTFARM_RETURN_IF_ERROR(
      RestoreFile(kShiftFile, transforms::PrintConstantShifts(best.shifts)));
  OPTFARM_RETURN_IF_ERROR(RestoreFile(
      kRoundingFile, transforms::PrintConstantShifts(best.rounding)));
  OPTFARM_RETURN_IF_ERROR(
      RestoreFile(kFactorFile, transforms::PrintConstantShifts(best.factors)));
  return best;
}

}  // namespace optfarm::optimize
