#include "engine/optimize/calibration.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/optimize/sample_runs.h"
#include "engine/runtime/session.h"
#include "engine/transforms/freeze_ranges.h"
#include "engine/transforms/pipeline.h"

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

}  // namespace

bool HasRanges(const graph::Graph& graph) {
  for (const graph::NodeId id : graph.Ids()) {
    if (graph.node(id).op() == "RequantizationRange") return true;
  }
  return false;
}

absl::StatusOr<Observation> ObserveRanges(
    const graph::Graph& graph, absl::Span<const graph::TensorName> inputs,
    absl::Span<const graph::TensorName> outputs,
    absl::Span<const int64_t> samples, int threads, SampleReader* reader) {
  graph::Graph logged = graph.Clone();
  const TransformStep steps[] = {LoggingStep()};
  OPTFARM_RETURN_IF_ERROR(
      transforms::RunTransforms(&logged, steps, inputs, outputs).status());
  Observation observation;
  runtime::SessionOptions options;
  // One thread: samples run at once, and each prints on its own thread.
  options.threads = 1;
  options.print = [](absl::string_view line) {
    if (log_of_this_thread == nullptr) return;
    if (auto record = transforms::ParseRangeRecord(line)) {
      (*log_of_this_thread)[record->node].push_back(record->range);
    }
  };
  OPTFARM_ASSIGN_OR_RETURN(
      const std::unique_ptr<runtime::Session> session,
      runtime::Session::Create(logged, inputs, outputs, options));
  std::vector<RangeLog> logs(samples.size());
  const auto run = [&](size_t place,
                       const std::vector<runtime::Tensor>& sample) {
    log_of_this_thread = &logs[place];
    auto result = session->Run(sample);
    log_of_this_thread = nullptr;
    return result;
  };
  const auto take = [&](size_t place, const std::vector<runtime::Tensor>&) {
    for (const auto& [node, records] : logs[place]) {
      std::vector<ObservedRange>& all = observation.log[node];
      all.insert(all.end(), records.begin(), records.end());
    }
    ++observation.samples;
    return absl::OkStatus();
  };
  OPTFARM_RETURN_IF_ERROR(
      Annotate(RunSamples(samples, threads, reader, run, take),
               "While observing ranges"));
  OPTFARM_RETURN_IF_ERROR(reader->CheckBad());
  return observation;
}

RangeLog LogToFreeze(const v1::Calibration& calibration,
                     const RangeLog& observed) {
  if (calibration.range_method() != v1::Calibration::MOVING_AVERAGE) {
    return observed;
  }
  RangeLog log;
  for (const auto& [node, records] : observed) {
    log[node] = {FrozenRange(calibration, records)};
  }
  return log;
}

TransformStep FreezeStep(const v1::Calibration& calibration,
                         absl::string_view log_file) {
  const transforms::FreezeOptions options = Percentiles(calibration);
  return {"freeze_requantization_ranges",
          {{"min_max_log_file", std::string(log_file)},
           {"min_percentile", absl::StrCat(options.min_percentile)},
           {"max_percentile", absl::StrCat(options.max_percentile)}}};
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
  std::string method = "smallest and largest value";
  if (calibration.range_method() == v1::Calibration::PERCENTILE) {
    method = absl::StrCat("without the lowest ", calibration.min_percentile(),
                          " % of minima and the highest ",
                          calibration.max_percentile(), " % of maxima");
  } else if (calibration.range_method() == v1::Calibration::MOVING_AVERAGE) {
    method = "moving average of minima and maxima";
  }
  return absl::StrCat(method, ", ", samples, " samples, seed ",
                      calibration.seed());
}

}  // namespace optfarm::optimize
