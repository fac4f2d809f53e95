#include "engine/optimize/optimizer.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/digest.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "engine/formats/graph_file.h"
#include "engine/optimize/bias_correction.h"
#include "engine/optimize/calibration.h"
#include "engine/optimize/comparison.h"
#include "engine/optimize/layers.h"
#include "engine/optimize/recipe_steps.h"
#include "engine/runtime/session.h"

namespace optfarm::optimize {
namespace {

using runtime::Session;
using runtime::Tensor;
using transforms::TransformStep;

constexpr int64_t kDefaultCompared = 32;
constexpr int64_t kDefaultCalibration = 100;
// Means settle on few samples, and every layer costs a run of each.
constexpr size_t kCorrectionSamples = 32;
// Layers are compared on few samples, and not all of a very deep network's,
// because every tensor of both graphs is held at once.
constexpr int64_t kLayerSamples = 8;
constexpr size_t kMaxLayers = 400;
// What one search step puts back to float: a part of the 8-bit layers.
constexpr int kLayersPerStep = 8;

absl::StatusOr<std::unique_ptr<Session>> MakeSession(const graph::Graph& graph,
                                                     const OptimizerInput& in) {
  runtime::SessionOptions options;
  options.threads = in.threads;
  // What a model prints is its own affair.
  options.print = [](absl::string_view) {};
  return Session::Create(graph, in.inputs, in.outputs, options);
}

int CountEightBit(const graph::Graph& graph) {
  int count = 0;
  for (const graph::NodeId id : graph.Ids()) {
    count += graph.node(id).name().ends_with("/eightbit");
  }
  return count;
}

// The output whose rows are scores of classes, one row a sample; -1 for none.
int ScoresOutput(absl::Span<const Tensor> outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].dtype() == tensorflow::DT_FLOAT &&
        ClassesOf(outputs[i]) == outputs[i].num_elements()) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

std::string Describe(const Spared& spared) {
  if (spared.empty()) return "everything quantized";
  std::string text;
  if (!spared.ops.empty()) {
    absl::StrAppend(&text, absl::StrJoin(spared.ops, ", "));
  }
  if (!spared.nodes.empty()) {
    absl::StrAppend(&text, text.empty() ? "" : " and ", spared.nodes.size(),
                    " layers");
  }
  if (!text.empty()) absl::StrAppend(&text, " in float");
  if (!spared.left_out.empty()) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", "without ",
                    absl::StrJoin(spared.left_out, ", "));
  }
  if (!spared.chain.empty()) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", "another chain");
  }
  if (spared.corrects_biases) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", "biases corrected");
  }
  return text;
}

}  // namespace

void Optimizer::Report(absl::string_view stage, double fraction) const {
  if (in_.progress) in_.progress(stage, fraction);
}

std::vector<int64_t> Optimizer::CalibrationSamples() const {
  const v1::Calibration& calibration = in_.recipe->calibration();
  return in_.dataset->Choose(calibration.max_samples() > 0
                                 ? calibration.max_samples()
                                 : kDefaultCalibration,
                             calibration.seed());
}

absl::Status Optimizer::LabelSamples(const Tensor& scores) {
  const int64_t classes = ClassesOf(scores);
  if (!in_.labels_path.empty()) {
    OPTFARM_ASSIGN_OR_RETURN(
        labels_, LoadLabels(in_.labels_path, *in_.dataset, classes));
  } else {
    labels_ = GuessLabels(*in_.dataset, classes);
  }
  for (size_t i = 0; i < labels_.classes.size(); ++i) {
    if (labels_.classes[i] >= 0) labelled_.push_back(static_cast<int64_t>(i));
  }
  const int64_t most = in_.recipe->verification().max_labelled_samples();
  if (most > 0 && most < static_cast<int64_t>(labelled_.size())) {
    labelled_.resize(most);
  }
  return absl::OkStatus();
}

absl::Status Optimizer::MeasureOriginal() {
  Report("running the original", 0.1);
  OPTFARM_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                           MakeSession(*in_.original, in_));
  const int64_t wanted = in_.recipe->verification().samples();
  // Not the calibration's seed: other samples than those ranges come from,
  // where there are enough.
  const std::vector<int64_t> chosen =
      in_.dataset->Choose(wanted > 0 ? wanted : kDefaultCompared,
                          in_.recipe->calibration().seed() + 1);
  for (const int64_t index : chosen) {
    const auto sample = in_.reader->Read(index);
    if (!sample.has_value()) continue;
    absl::StatusOr<std::vector<Tensor>> outputs = session->Run(*sample);
    if (!outputs.ok()) {
      return Annotate(outputs.status(), "While running the original model");
    }
    compared_.push_back(index);
    expected_.push_back(*std::move(outputs));
  }
  OPTFARM_RETURN_IF_ERROR(in_.reader->CheckBad());
  const int scores = expected_.empty() ? -1 : ScoresOutput(expected_[0]);
  if (scores < 0) {
    if (in_.labels_path.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "Labels are given, but no output of the model is a row of class "
        "scores; leave the labels out or choose another output");
  }
  OPTFARM_RETURN_IF_ERROR(LabelSamples(expected_[0][scores]));
  AccuracyCounter counter;
  for (size_t i = 0; i < labelled_.size(); ++i) {
    if (i % 16 == 0) {
      Report("running the original",
             0.1 + 0.1 * static_cast<double>(i) /
                       static_cast<double>(labelled_.size()));
    }
    const auto sample = in_.reader->Read(labelled_[i]);
    if (!sample.has_value()) continue;
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs,
                             session->Run(*sample));
    counter.Add(outputs[scores], labels_.classes[labelled_[i]]);
  }
  OPTFARM_RETURN_IF_ERROR(in_.reader->CheckBad());
  const v1::Accuracy accuracy = counter.Result();
  const auto classes = static_cast<double>(ClassesOf(expected_[0][scores]));
  if (labels_.guessed && accuracy.top1() < 2 * 100 / classes) {
    warnings_.push_back(absl::StrCat(
        "The folders' names were tried as labels, but the original is right "
        "for only ",
        absl::StrFormat("%.1f", accuracy.top1()),
        " % of them, so they seem to be about other classes and are not used; "
        "give --labels."));
    labels_ = {};
    labelled_.clear();
  } else if (!labelled_.empty()) {
    float_accuracy_ = accuracy;
  }
  return absl::OkStatus();
}

absl::Status Optimizer::Calibrate(Attempt* attempt) {
  OPTFARM_ASSIGN_OR_RETURN(
      Observation observed,
      ObserveRanges(attempt->graph, in_.inputs, in_.outputs,
                    CalibrationSamples(), in_.threads, in_.reader,
                    [](int64_t) {}));
  if (observed.log.empty()) return absl::OkStatus();
  const v1::Calibration& calibration = in_.recipe->calibration();
  attempt->calibration_samples = observed.samples;
  attempt->log = LogToFreeze(calibration, observed.log);
  OPTFARM_RETURN_IF_ERROR(
      WriteFileAtomically(JoinPath(in_.out_folder, kRangeLogFile),
                          transforms::PrintRangeLog(attempt->log)));
  return RunMore(
      {FreezeStep(calibration, kRangeLogFile), {"sort_by_execution_order", {}}},
      attempt);
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
  for (const int64_t index : CalibrationSamples()) {
    if (samples.size() == kCorrectionSamples) break;
    auto sample = in_.reader->Read(index);
    if (sample.has_value()) samples.push_back(*std::move(sample));
  }
  OPTFARM_RETURN_IF_ERROR(in_.reader->CheckBad());
  graph::Graph corrected = attempt->graph.Clone();
  OPTFARM_ASSIGN_OR_RETURN(attempt->shifts,
                           CorrectBiases(*in_.original, in_.inputs, samples,
                                         in_.threads, &corrected));
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

absl::Status Optimizer::MeasureAccuracy(Attempt* attempt) {
  OPTFARM_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                           MakeSession(attempt->graph, in_));
  const int scores = ScoresOutput(expected_[0]);
  AccuracyCounter counter;
  for (const int64_t index : labelled_) {
    const auto sample = in_.reader->Read(index);
    if (!sample.has_value()) continue;
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs,
                             session->Run(*sample));
    counter.Add(outputs[scores], labels_.classes[index]);
  }
  attempt->facts.float_accuracy = float_accuracy_;
  attempt->facts.optimized_accuracy = counter.Result();
  return absl::OkStatus();
}

absl::Status Optimizer::Measure(Attempt* attempt) {
  OPTFARM_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                           MakeSession(attempt->graph, in_));
  std::vector<TensorComparer> comparers(in_.outputs.size());
  for (size_t i = 0; i < compared_.size(); ++i) {
    const auto sample = in_.reader->Read(compared_[i]);
    if (!sample.has_value()) continue;
    absl::StatusOr<std::vector<Tensor>> outputs = session->Run(*sample);
    if (!outputs.ok()) {
      return Annotate(outputs.status(), "While running the optimized model");
    }
    for (size_t k = 0; k < outputs->size(); ++k) {
      if (const absl::Status status =
              comparers[k].Add(expected_[i][k], (*outputs)[k]);
          !status.ok()) {
        return Annotate(status, absl::StrCat("While comparing output '",
                                             ToString(in_.outputs[k]), "'"));
      }
    }
  }
  for (size_t k = 0; k < comparers.size(); ++k) {
    v1::TensorComparison comparison = comparers[k].Result();
    comparison.set_name(ToString(in_.outputs[k]));
    const graph::NodeId id = in_.original->Find(in_.outputs[k].node);
    if (id != graph::kNoNode) {
      comparison.set_op(in_.original->node(id).op());
    }
    attempt->facts.outputs.push_back(std::move(comparison));
  }
  if (float_accuracy_.has_value()) {
    OPTFARM_RETURN_IF_ERROR(MeasureAccuracy(attempt));
  }
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

absl::StatusOr<std::optional<Attempt>> Optimizer::Make(const Spared& spared) {
  // Each attempt gets half of what is left of 0.2..0.8.
  double left = 0.6;
  for (size_t i = 0; i < attempts_.size(); ++i) left /= 2;
  const double start = 0.8 - left;
  Attempt attempt;
  attempt.spared = spared;
  OPTFARM_ASSIGN_OR_RETURN(attempt.steps, Chain(spared));
  Report("transforming", start);
  attempt.graph = in_.original->Clone();
  transforms::PipelineOptions options;
  options.base_folder = in_.out_folder;
  OPTFARM_ASSIGN_OR_RETURN(
      attempt.pipeline,
      transforms::RunTransforms(&attempt.graph, attempt.steps, in_.inputs,
                                in_.outputs, options));
  OPTFARM_ASSIGN_OR_RETURN(const std::string unfrozen,
                           formats::SerializeGraphDef(attempt.graph.ToDef()));
  if (!made_.insert(Sha256Hex(unfrozen)).second) {
    return std::optional<Attempt>();
  }
  if (HasRanges(attempt.graph) && in_.recipe->has_calibration() &&
      !in_.dataset->is_random()) {
    Report("calibrating", start + 0.1 * left);
    OPTFARM_RETURN_IF_ERROR(Calibrate(&attempt));
  }
  if (spared.corrects_biases && !in_.dataset->is_random()) {
    Report("correcting biases", start + 0.2 * left);
    OPTFARM_RETURN_IF_ERROR(Correct(&attempt));
  }
  Report("comparing", start + 0.3 * left);
  OPTFARM_RETURN_IF_ERROR(Measure(&attempt));
  OPTFARM_ASSIGN_OR_RETURN(const std::string bytes,
                           formats::SerializeGraphDef(attempt.graph.ToDef()));
  attempt.facts.bytes_before = in_.original_bytes;
  attempt.facts.bytes_after = static_cast<int64_t>(bytes.size());
  attempt.gates = CheckGates(in_.recipe->bounds(), attempt.facts);
  return std::optional<Attempt>(std::move(attempt));
}

void Optimizer::Remember(const Attempt& attempt) {
  std::string text = absl::StrCat(Describe(attempt.spared), ": ",
                                  attempt.facts.bytes_after, " bytes");
  for (const v1::GateResult& gate : attempt.gates) {
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
  OPTFARM_ASSIGN_OR_RETURN(
      const std::vector<Layer> layers,
      FindLayers(*in_.original, attempt.graph,
                 transforms::MakeNameMap(attempt.pipeline.steps, attempt.graph),
                 in_.inputs, kMaxLayers));
  std::vector<int64_t> samples = compared_;
  samples.resize(std::min<size_t>(samples.size(), kLayerSamples));
  return CompareLayers(*in_.original, attempt.graph, layers, in_.inputs,
                       samples, in_.threads, in_.reader);
}

absl::StatusOr<std::vector<std::string>> Optimizer::LayersToSpare(
    const Attempt& attempt, const Spared& spared) {
  const int eight_bit = CountEightBit(attempt.graph);
  if (eight_bit == 0) return std::vector<std::string>();
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<v1::TensorComparison> layers,
                           CompareByLayer(attempt));
  const size_t step = (eight_bit + kLayersPerStep - 1) / kLayersPerStep;
  std::vector<std::string> worst =
      WorstLayers(*in_.original, attempt.graph, layers, layers.size());
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

absl::StatusOr<Attempt> Optimizer::FindBest() {
  const v1::KeepFloat& keep_float = in_.recipe->keep_float();
  OPTFARM_ASSIGN_OR_RETURN(std::optional<Attempt> first,
                           Make(SparedByRecipe(keep_float)));
  Attempt best = *std::move(first);
  bool done = !MayBeMended(best.gates);
  if (!done) Remember(best);
  // Makes one more attempt and keeps it when it is better.
  const auto try_next = [&](const Spared& spared) -> absl::StatusOr<bool> {
    OPTFARM_ASSIGN_OR_RETURN(std::optional<Attempt> next, Make(spared));
    if (!next.has_value()) return false;
    const bool good = !MayBeMended(next->gates);
    if (!good) Remember(*next);
    if (good ||
        Badness(next->gates, next->facts) < Badness(best.gates, best.facts)) {
      best = *std::move(next);
    }
    return good;
  };
  for (int i = 0; i < keep_float.attempts_size() && !done; ++i) {
    OPTFARM_ASSIGN_OR_RETURN(
        done, try_next(SparedByAttempt(keep_float, keep_float.attempts(i))));
  }
  Spared spared = best.spared;
  for (int i = 0; i < keep_float.layer_attempts() && !done; ++i) {
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<std::string> layers,
                             LayersToSpare(best, spared));
    if (layers.empty()) break;
    spared.nodes.insert(layers.begin(), layers.end());
    OPTFARM_ASSIGN_OR_RETURN(done, try_next(spared));
  }
  // The files on disk are the last attempt's.
  OPTFARM_RETURN_IF_ERROR(
      RestoreFile(kRangeLogFile, transforms::PrintRangeLog(best.log)));
  OPTFARM_RETURN_IF_ERROR(
      RestoreFile(kShiftFile, transforms::PrintConstantShifts(best.shifts)));
  return best;
}

}  // namespace optfarm::optimize
