#include "engine/optimize/calibration/calibration.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/optimize/samples/sample_runs.h"
#include "engine/runtime/core/thread_pool.h"
#include "engine/runtime/session/session.h"
#include "engine/transforms/freezing/freeze_quantize_ranges.h"
#include "engine/transforms/freezing/freeze_ranges.h"
#include "engine/transforms/machinery/pipeline.h"
#include "engine/transforms/quantizing/clipped_range.h"

namespace optfarm::optimize {
namespace {

using transforms::ObservedRange;
using transforms::RangeLog;
using transforms::TransformStep;

constexpr double kDefaultDecay = 0.9;

// Where the sample that runs on this thread writes what it prints.
thread_local RangeLog* log_of_this_thread = nullptr;

TransformStep LoggingStep() {
  return {"insert_logging",
          {{"op", "RequantizationRange"},
           {"op", "RequantizationRangePerChannel"},
           {"show_name", "true"},
           {"message", transforms::kRangeMessage}}};
}

transforms::FreezeOptions Percentiles(const v1::Calibration& calibration) {
  transforms::FreezeOptions options;
  const bool cut = calibration.range_method() == v1::Calibration::PERCENTILE;
  options.min_percentile =
      cut ? static_cast<float>(calibration.min_percentile()) : 0;
  options.max_percentile =
      cut ? static_cast<float>(calibration.max_percentile()) : 0;
  return options;
}

ObservedRange MovingAverage(absl::Span<const ObservedRange> records,
                            double decay) {
  double min = records[0].min;
  double max = records[0].max;
  for (const ObservedRange& record : records.subspan(1)) {
    min = decay * min + (1 - decay) * record.min;
    max = decay * max + (1 - decay) * record.max;
  }
  return {static_cast<float>(min), static_cast<float>(max)};
}

bool UsesHistograms(const v1::Calibration& calibration) {
  return calibration.range_method() == v1::Calibration::MSE ||
         calibration.range_method() == v1::Calibration::KL;
}

// A session that prints what RequantizationRange nodes find and fetches the
// ranges of the sites.
absl::StatusOr<std::unique_ptr<runtime::Session>> MakeLogger(
    const graph::Graph& graph, absl::Span<const RangeSite> sites,
    absl::Span<const graph::TensorName> inputs,
    absl::Span<const graph::TensorName> outputs) {
  graph::Graph logged = graph.Clone();
  const TransformStep steps[] = {LoggingStep()};
  OPTFARM_RETURN_IF_ERROR(
      transforms::RunTransforms(&logged, steps, inputs, outputs).status());
  std::vector<graph::TensorName> fetches(outputs.begin(), outputs.end());
  for (const RangeSite& site : sites) {
    fetches.insert(fetches.end(), {site.min, site.max});
  }
  runtime::SessionOptions options;
  // One thread: samples run at once, and each prints on its own thread.
  options.threads = 1;
  options.print = [](absl::string_view line) {
    if (log_of_this_thread == nullptr) return;
    if (auto record = transforms::ParseRangeRecord(line)) {
      (*log_of_this_thread)[record->node].push_back(record->range);
    }
  };
  return runtime::Session::Create(logged, inputs, fetches, options);
}

RangeLog* LogOf(const RangeSite& site, Observation* observation) {
  return site.is_quantize ? &observation->input_log : &observation->log;
}

// Smallest and largest values in the quantized graph, one record a run.
absl::Status ObserveQuantized(const graph::Graph& graph,
                              absl::Span<const RangeSite> all,
                              absl::Span<const graph::TensorName> outputs,
                              const SampleRun& sample_run,
                              Observation* observation) {
  std::vector<RangeSite> sites;
  std::set<std::string> printed;
  for (const RangeSite& site : all) {
    if (site.is_quantize) {
      sites.push_back(site);
    } else {
      printed.insert(site.node);
    }
  }
  OPTFARM_ASSIGN_OR_RETURN(
      const auto session, MakeLogger(graph, sites, sample_run.inputs, outputs));
  std::vector<RangeLog> logs(sample_run.samples.size());
  const auto run = [&](size_t place,
                       const std::vector<runtime::Tensor>& sample) {
    log_of_this_thread = &logs[place];
    auto result = session->Run(sample);
    log_of_this_thread = nullptr;
    return result;
  };
  observation->samples = 0;
  const auto take = [&](size_t place,
                        const std::vector<runtime::Tensor>& values) {
    for (const auto& [node, records] : logs[place]) {
      if (!printed.contains(node) || records.empty()) continue;
      // In a loop there is one for each iteration.
      ObservedRange range = records[0];
      for (const ObservedRange& record : records) {
        range.min = std::min(range.min, record.min);
        range.max = std::max(range.max, record.max);
      }
      observation->log[node].push_back(range);
    }
    for (size_t i = 0; i < sites.size(); ++i) {
      const size_t at = outputs.size() + 2 * i;
      observation->input_log[sites[i].node].push_back(
          {values[at].data<float>()[0], values[at + 1].data<float>()[0]});
    }
    ++observation->samples;
    return absl::OkStatus();
  };
  OPTFARM_RETURN_IF_ERROR(
      Annotate(RunSamples(sample_run.samples, sample_run.threads,
                          sample_run.reader, run, take),
               "While observing ranges"));
  return sample_run.reader->CheckBad();
}

// Smallest and largest values in the float graph, one record a run.
absl::Status ObserveFloats(const graph::Graph& graph,
                           absl::Span<const RangeSite> sites,
                           const SampleRun& run, Observation* observation) {
  OPTFARM_ASSIGN_OR_RETURN(const auto ranges,
                           ObserveExtremes(graph, sites, run));
  observation->samples = static_cast<int64_t>(ranges.size());
  for (const std::vector<ObservedRange>& of_sample : ranges) {
    for (size_t i = 0; i < sites.size(); ++i) {
      (*LogOf(sites[i], observation))[sites[i].node].push_back(of_sample[i]);
    }
  }
  return absl::OkStatus();
}

// Ranges of the values' distributions, one record a node.
absl::Status ObserveDistributions(const v1::Calibration& calibration,
                                  const graph::Graph& graph,
                                  absl::Span<const RangeSite> sites,
                                  const SampleRun& run,
                                  Observation* observation) {
  OPTFARM_ASSIGN_OR_RETURN(const ValueObservation values,
                           ObserveValues(graph, sites, run));
  observation->samples = values.samples;
  std::vector<ObservedRange> ranges(sites.size());
  runtime::ThreadPool pool(std::max(1, run.threads));
  pool.ParallelFor(
      static_cast<int64_t>(sites.size()), 1, [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i) {
          const auto& histogram = values.histograms.at(sites[i].node);
          ranges[i] = calibration.range_method() == v1::Calibration::KL
                          ? transforms::LeastDivergenceRange(histogram)
                          : transforms::LeastErrorRange(histogram);
          if (sites[i].clip > 0) {
            ranges[i].max = std::min(ranges[i].max, sites[i].clip);
          }
        }
      });
  for (size_t i = 0; i < sites.size(); ++i) {
    (*LogOf(sites[i], observation))[sites[i].node] = {ranges[i]};
  }
  return absl::OkStatus();
}

// One averaged record a node for MOVING_AVERAGE.
RangeLog Averaged(const v1::Calibration& calibration, const RangeLog& log) {
  RangeLog averaged;
  for (const auto& [node, records] : log) {
    averaged[node] = {FrozenRange(calibration, records)};
  }
  return averaged;
}

TransformStep FreezeStep(const v1::Calibration& calibration,
                         absl::string_view transform,
                         absl::string_view log_file) {
  const transforms::FreezeOptions options = Percentiles(calibration);
  return {std::string(transform),
          {{"min_max_log_file", std::string(log_file)},
           {"min_percentile", absl::StrCat(options.min_percentile)},
           {"max_percentile", absl::StrCat(options.max_percentile)}}};
}

// The place of the first step of one of these names; the number of steps when
// there is none.
size_t FirstOf(absl::Span<const TransformStep> steps,
               const std::set<absl::string_view>& names) {
  const auto first = std::find_if(
      steps.begin(), steps.end(),
      [&](const TransformStep& step) { return names.contains(step.name); });
  return static_cast<size_t>(first - steps.begin());
}

}  // namespace

bool HasRanges(const graph::Graph& graph, const v1::Calibration& calibration) {
  return !FindRangeSites(graph, calibration.freeze_inputs()).empty();
}

size_t StepsBeforeQuantizing(absl::Span<const TransformStep> steps) {
  const size_t first = FirstOf(steps, {"quantize_layers", "quantize_nodes"});
  return first == steps.size() ? 0 : first;
}

size_t FloatSteps(absl::Span<const TransformStep> steps) {
  return FirstOf(steps,
                 {"normalize_weights", "quantize_product_weights",
                  "quantize_weights", "quantize_layers", "quantize_nodes"});
}

absl::StatusOr<Observation> ObserveRanges(
    const v1::Calibration& calibration, const RangeGraphs& graphs,
    absl::Span<const graph::TensorName> outputs, const SampleRun& run) {
  std::vector<RangeSite> others =
      FindRangeSites(*graphs.quantized, calibration.freeze_inputs());
  std::vector<RangeSite> floats;
  if (graphs.floats != nullptr) {
    OPTFARM_ASSIGN_OR_RETURN(
        floats, FloatSites(*graphs.quantized, *graphs.floats, others));
  }
  std::set<std::string> known;
  for (const RangeSite& site : floats) known.insert(site.node);
  std::erase_if(
      others, [&](const RangeSite& site) { return known.contains(site.node); });
  Observation observed;
  const bool has_histograms = UsesHistograms(calibration);
  if (!floats.empty()) {
    OPTFARM_RETURN_IF_ERROR(
        has_histograms ? ObserveDistributions(calibration, *graphs.floats,
                                              floats, run, &observed)
                       : ObserveFloats(*graphs.floats, floats, run, &observed));
  }
  if (!others.empty()) {
    OPTFARM_RETURN_IF_ERROR(
        has_histograms ? ObserveDistributions(calibration, *graphs.quantized,
                                              others, run, &observed)
                       : ObserveQuantized(*graphs.quantized, others, outputs,
                                          run, &observed));
  }
  if (calibration.range_method() == v1::Calibration::MOVING_AVERAGE) {
    observed.log = Averaged(calibration, observed.log);
    observed.input_log = Averaged(calibration, observed.input_log);
  }
  return observed;
}

std::vector<TransformStep> FreezeSteps(const v1::Calibration& calibration,
                                       const Observation& observed) {
  std::vector<TransformStep> steps;
  if (!observed.log.empty()) {
    steps.push_back(
        FreezeStep(calibration, "freeze_requantization_ranges", kRangeLogFile));
  }
  if (!observed.input_log.empty()) {
    steps.push_back(
        FreezeStep(calibration, "freeze_quantize_ranges", kInputLogFile));
    // What found the ranges.
    steps.push_back({"strip_unused_nodes", {}});
  }
  if (!steps.empty()) steps.push_back({"sort_by_execution_order", {}});
  return steps;
}

absl::Status FreezeKnown(const v1::Calibration& calibration,
                         const Observation& observed, graph::Graph* graph) {
  RangeLog log, input_log;
  for (const RangeSite& site : FindRangeSites(*graph, true)) {
    const RangeLog& from = site.is_quantize ? observed.input_log : observed.log;
    const auto found = from.find(site.node);
    if (found == from.end()) continue;
    (site.is_quantize ? input_log : log)[site.node] = found->second;
  }
  const transforms::FreezeOptions options = Percentiles(calibration);
  if (!log.empty()) {
    OPTFARM_RETURN_IF_ERROR(
        transforms::FreezeRanges(graph, log, options).status());
  }
  if (!input_log.empty()) {
    OPTFARM_RETURN_IF_ERROR(
        transforms::FreezeQuantizeRanges(graph, input_log, options).status());
  }
  return absl::OkStatus();
}

ObservedRange FrozenRange(const v1::Calibration& calibration,
                          absl::Span<const ObservedRange> records) {
  if (calibration.range_method() == v1::Calibration::MOVING_AVERAGE) {
    const double decay = calibration.moving_average_decay();
    return MovingAverage(records, decay > 0 ? decay : kDefaultDecay);
  }
  return transforms::RangeOfPercentiles(records, Percentiles(calibration));
}

std::string DescribeMethod(const v1::Calibration& calibration,
                           int64_t samples) {
  std::string method;
  switch (calibration.range_method()) {
    case v1::Calibration::PERCENTILE:
      method = absl::StrCat("without the lowest ", calibration.min_percentile(),
                            " % of minima and the highest ",
                            calibration.max_percentile(), " % of maxima");
      break;
    case v1::Calibration::MOVING_AVERAGE:
      method = "moving average of minima and maxima";
      break;
    case v1::Calibration::MSE:
      method = "least mean square error of all values";
      break;
    case v1::Calibration::KL:
      method = "least divergence of all values' distribution";
      break;
    default:
      method = "smallest and largest value";
  }
  if (calibration.freeze_inputs()) {
    absl::StrAppend(&method, ", inputs of 8-bit ops too");
  }
  return absl::StrCat(method, ", ", samples, " samples, seed ",
                      calibration.seed());
}

}  // namespace optfarm::optimize
