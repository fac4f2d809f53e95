#include "engine/optimize/optimizer.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "base/digest.h"
#include "base/status_macros.h"
#include "engine/formats/tensorflow/graph_file.h"
#include "engine/optimize/judging/search_samples.h"
#include "engine/optimize/judging/sensitivity.h"
#include "engine/optimize/layers/comparison.h"
#include "engine/optimize/layers/layers.h"
#include "engine/optimize/report/layer_histogram.h"
#include "engine/runtime/session/session.h"
#include "engine/runtime/session/step_work.h"

namespace optfarm::optimize {
namespace {

using runtime::Tensor;
using transforms::TransformStep;

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
  return attempt.broken.ok() && attempt.can_be_written &&
         !MayBeMended(attempt.aim_gates);
}

bool IsBetter(const Attempt& a, const Attempt& b) {
  if (a.broken.ok() != b.broken.ok()) return a.broken.ok();
  if (a.can_be_written != b.can_be_written) return a.can_be_written;
  return Badness(a.aim_gates, a.guide) < Badness(b.aim_gates, b.guide);
}

OptimizerInput WithDetector(OptimizerInput in) {
  in.detector = FindDetector(*in.original, in.outputs);
  return in;
}

}  // namespace

Optimizer::Optimizer(OptimizerInput input)
    : in_(WithDetector(std::move(input))),
      judgement_(in_),
      maker_(in_, judgement_.calibration()) {}

absl::StatusOr<std::optional<Attempt>> Optimizer::Make(const Spared& spared) {
  // Each attempt gets half of what is left of 0.2..0.8.
  double left = 0.6;
  for (size_t i = 0; i < attempts_.size(); ++i) left /= 2;
  const double start = 0.8 - left;
  Attempt attempt;
  attempt.spared = spared;
  in_.Report("transforming", start);
  std::optional<graph::Graph> floats;
  OPTFARM_RETURN_IF_ERROR(maker_.Transform(&attempt, &floats));
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

std::string Optimizer::Describe(const Attempt& attempt) const {
  std::string text = DescribeSpared(attempt.spared);
  if (search_samples_.has_value()) {
    absl::StrAppend(&text, ", on ", search_samples_->samples.size(),
                    " samples");
  }
  if (!attempt.can_be_written) {
    absl::StrAppend(&text, ", cannot be written");
  }
  return text;
}

void Optimizer::AddSearchStep(const Attempt& attempt) {
  v1::SearchStep& step = search_.emplace_back();
  step.set_description(Describe(attempt));
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
  OPTFARM_RETURN_IF_ERROR(
      maker_.Learn(floats, attempt, [&](absl::string_view stage, double part) {
        in_.Report(stage, start + part * left);
      }));
  in_.Report("comparing", start + 0.3 * left);
  OPTFARM_ASSIGN_OR_RETURN(OutputComparison compared,
                           CompareWithReference(attempt->graph, in_, guide()));
  OPTFARM_ASSIGN_OR_RETURN(const std::string bytes,
                           formats::SerializeGraphDef(attempt->graph.ToDef()));
  attempt->guide.outputs = std::move(compared.outputs);
  attempt->guide.bytes_before = in_.original_bytes;
  attempt->guide.bytes_after = static_cast<int64_t>(bytes.size());
  const auto sample = guide().samples.empty()
                          ? std::nullopt
                          : in_.reader->Read(guide().samples[0]);
  if (sample.has_value()) {
    OPTFARM_ASSIGN_OR_RETURN(
        attempt->milliseconds,
        MillisecondsOf(attempt->graph, in_.inputs, in_.outputs, *sample));
  }
  attempt->can_be_written =
      !in_.can_be_written || in_.can_be_written(attempt->graph);
  const v1::Bounds bounds = BoundsWithoutLabels(in_.recipe->bounds());
  attempt->guide_gates = CheckGates(bounds, attempt->guide);
  attempt->aim_gates =
      CheckGates(WithAims(bounds, in_.recipe->keep_float()), attempt->guide);
  return absl::OkStatus();
}

void Optimizer::Remember(const Attempt& attempt) {
  if (!attempt.broken.ok()) {
    attempts_.push_back(absl::StrCat(Describe(attempt), ": cannot be run; ",
                                     attempt.broken.message()));
    return;
  }
  std::string text = absl::StrCat(Describe(attempt), ": ",
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
  in_.Report("comparing layers", 0.85);
  return CompareLayersOn(judgement_.judge(), attempt);
}

absl::StatusOr<std::vector<v1::LayerSensitivity>> Optimizer::MeasureLayersAlone(
    const Attempt& attempt, absl::Span<const v1::TensorComparison> layers) {
  in_.Report("measuring layers alone", 0.87);
  std::vector<std::vector<Tensor>> samples;
  for (const int64_t index : judgement_.judge().samples) {
    if (samples.size() == kAloneSamples) break;
    auto sample = in_.reader->Read(index);
    if (sample.has_value()) samples.push_back(*std::move(sample));
  }
  OPTFARM_ASSIGN_OR_RETURN(const graph::Graph floats,
                           maker_.InFloat(attempt.spared));
  SensitivityJob job;
  job.original = in_.original;
  job.floats = &floats;
  job.result = &attempt.ReadableGraph();
  job.inputs = in_.inputs;
  job.outputs = in_.outputs;
  job.samples = samples;
  job.cumulative = layers;
  job.threads = in_.threads;
  return MeasureSensitivity(job);
}

absl::StatusOr<std::vector<v1::StepWork>> Optimizer::ListSteps(
    const Attempt& attempt) {
  std::optional<std::vector<Tensor>> sample;
  for (const int64_t index : judgement_.judge().samples) {
    sample = in_.reader->Read(index);
    if (sample.has_value()) break;
  }
  if (!sample.has_value()) return std::vector<v1::StepWork>();
  std::vector<runtime::StepWorks::Feed> feeds;
  for (size_t i = 0; i < in_.inputs.size(); ++i) {
    const auto dims = (*sample)[i].shape().dims();
    feeds.emplace_back(in_.inputs[i], graph::PartialShape(std::vector<int64_t>(
                                          dims.begin(), dims.end())));
  }
  OPTFARM_ASSIGN_OR_RETURN(const runtime::StepWorks works,
                           runtime::StepWorks::Create(attempt.graph, feeds));
  runtime::SessionOptions options;
  options.threads = 1;
  options.print = [](absl::string_view) {};
  OPTFARM_ASSIGN_OR_RETURN(const auto session,
                           runtime::Session::Create(attempt.graph, in_.inputs,
                                                    in_.outputs, options));
  runtime::RunTrace trace;
  OPTFARM_RETURN_IF_ERROR(session->Run(*sample, &trace).status());
  std::vector<v1::StepWork> steps;
  for (const runtime::NodeTiming& step : trace.nodes) {
    steps.push_back(works.Of(step).To<v1::StepWork>());
  }
  return steps;
}

absl::StatusOr<std::vector<v1::LayerHistogram>> Optimizer::MeasureDistributions(
    const Attempt& attempt) {
  const auto& wanted = in_.recipe->verification().histograms();
  const std::vector<std::string> names(wanted.begin(), wanted.end());
  std::vector<int64_t> samples = judgement_.judge().samples;
  samples.resize(std::min<size_t>(samples.size(), kLayerSamples));
  return MeasureHistograms(*in_.original, attempt.ReadableGraph(),
                           attempt.ReadableNames(), names, in_.inputs, samples,
                           in_.threads, in_.reader);
}

absl::StatusOr<std::vector<v1::TensorComparison>> Optimizer::CompareLayersOn(
    const Reference& reference, const Attempt& attempt) {
  const graph::Graph& graph = attempt.ReadableGraph();
  OPTFARM_ASSIGN_OR_RETURN(
      const std::vector<Layer> layers,
      FindLayers(*in_.original, graph, attempt.ReadableNames(), in_.inputs,
                 kMaxLayers));
  std::vector<int64_t> samples = reference.samples;
  samples.resize(std::min<size_t>(samples.size(), kLayerSamples));
  auto compared = CompareLayers(*in_.original, graph, layers, in_.inputs,
                                samples, in_.threads, in_.reader);
  if (compared.status().code() != absl::StatusCode::kFailedPrecondition) {
    return compared;
  }
  // A Switch cut a tensor off.
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<Layer> sure,
                           LayersOfEveryRun(*in_.original, layers));
  return CompareLayers(*in_.original, graph, sure, in_.inputs, samples,
                       in_.threads, in_.reader);
}

absl::StatusOr<std::vector<std::string>> Optimizer::LayersToSpare(
    const Attempt& attempt, const Spared& spared) {
  const int eight_bit = CountEightBit(attempt.ReadableGraph());
  if (eight_bit == 0) return std::vector<std::string>();
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<v1::TensorComparison> layers,
                           CompareLayersOn(guide(), attempt));
  const size_t step = (eight_bit + kLayersPerStep - 1) / kLayersPerStep;
  std::vector<std::string> worst =
      WorstLayers(*in_.original, attempt.ReadableGraph(), layers, layers.size(),
                  attempt.ReadableNames());
  // `attempt` is the best so far; later ones may have spared some already.
  std::erase_if(worst, [&](const std::string& node) {
    return spared.nodes.count(node) > 0;
  });
  worst.resize(std::min(worst.size(), step));
  return worst;
}

absl::Status Optimizer::SpareInputLayers(Attempt* best) {
  const v1::KeepFloat& keep_float = in_.recipe->keep_float();
  if (!keep_float.has_input_layers_gain_db() || !best->broken.ok() ||
      search_[best->search_step].snr_db() >=
          std::max(kQuiet, keep_float.aim_snr_db())) {
    return absl::OkStatus();
  }
  const std::vector<std::string> layers =
      InputLayers(best->ReadableGraph(), best->ReadableNames());
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

absl::StatusOr<Attempt> Optimizer::Search() {
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
  return best;
}

absl::StatusOr<Attempt> Optimizer::SearchOnFewSamples() {
  search_samples_ = ChooseSearchSamples(in_, judgement_.guide());
  if (!search_samples_.has_value()) return Search();
  maker_.LearnFrom(search_samples_->samples);
  OPTFARM_ASSIGN_OR_RETURN(const Attempt found, Search());
  search_samples_.reset();
  maker_.LearnFrom(judgement_.calibration());
  made_.clear();
  if (found.broken.ok()) {
    OPTFARM_ASSIGN_OR_RETURN(std::optional<Attempt> best, Make(found.spared));
    if (best->broken.ok() && !MayBeMended(best->guide_gates) &&
        (ReachesAims(*best) || !ReachesAims(found))) {
      return *std::move(best);
    }
    made_.clear();
  }
  return Search();
}

absl::StatusOr<Attempt> Optimizer::FindBest() {
  OPTFARM_ASSIGN_OR_RETURN(Attempt best, SearchOnFewSamples());
  OPTFARM_RETURN_IF_ERROR(best.broken);
  search_[best.search_step].set_taken(true);
  in_.Report("comparing", 0.82);
  OPTFARM_RETURN_IF_ERROR(judgement_.Judge(&best));
  // The files on disk are the last attempt's.
  OPTFARM_RETURN_IF_ERROR(maker_.RestoreFiles(best));
  return best;
}

}  // namespace optfarm::optimize
