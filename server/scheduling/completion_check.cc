#include "server/scheduling/completion_check.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "server/conventions/names.h"

namespace optfarm::server {
namespace {

using ::optfarm::storage::BlobId;
using ::optfarm::storage::BlobIdFromProto;

constexpr int kMaxArtifacts = 100;
constexpr int kMaxMeasurements = 1000;
constexpr size_t kMaxReportBytes = 16 << 20;
constexpr int kMaxSamples = 10000;
constexpr int kMaxProfileRows = 2000;
constexpr int kMaxSteps = 2000;
constexpr int kMaxEngines = 8;
constexpr size_t kMaxEngineBytes = 4096;

absl::Status AddArtifacts(
    const google::protobuf::RepeatedPtrField<v1::Artifact>& artifacts,
    std::vector<BlobId>& blobs) {
  if (artifacts.size() > kMaxArtifacts) {
    return absl::InvalidArgumentError(
        absl::StrCat("the completion names ", artifacts.size(),
                     " artifacts; at most ", kMaxArtifacts, " are kept"));
  }
  for (const v1::Artifact& artifact : artifacts) {
    OPTFARM_RETURN_IF_ERROR(CheckFileName("artifact", artifact.name()));
    OPTFARM_ASSIGN_OR_RETURN(BlobId id, BlobIdFromProto(artifact.digest()));
    blobs.push_back(std::move(id));
  }
  return absl::OkStatus();
}

// Each format that the job asks for is there, or the report says why not.
absl::Status CheckExports(const v1::Report& report, const v1::JobSpec& spec) {
  const auto has_file = [&](const std::string& name) {
    return absl::c_any_of(
        report.artifacts(),
        [&](const v1::Artifact& artifact) { return artifact.name() == name; });
  };
  for (const v1::ExportedModel& made : report.exports()) {
    if (made.artifact().empty() ? !made.problems().empty()
                                : has_file(made.artifact())) {
      continue;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("the report speaks of a model of format ", made.format(),
                     ", and has neither the file ", Quoted(made.artifact()),
                     " nor a reason why there is none"));
  }
  for (const int format : spec.out_formats()) {
    if (format == v1::PB ||
        absl::c_any_of(report.exports(), [&](const v1::ExportedModel& made) {
          return made.format() == format;
        })) {
      continue;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("the report says nothing of format ",
                     v1::ModelFormat_Name(static_cast<v1::ModelFormat>(format)),
                     ", which the job asks for"));
  }
  return absl::OkStatus();
}

absl::Status CheckReport(const v1::Report& report, const v1::JobSpec& spec,
                         std::vector<BlobId>& blobs) {
  if (report.ByteSizeLong() > kMaxReportBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the report has ", report.ByteSizeLong(),
                     " bytes; at most ", kMaxReportBytes, " are kept"));
  }
  OPTFARM_RETURN_IF_ERROR(AddArtifacts(report.artifacts(), blobs));
  OPTFARM_RETURN_IF_ERROR(CheckExports(report, spec));
  if (!report.has_optimized_model()) {
    return absl::InvalidArgumentError(
        "the report does not say which blob the optimized graph is");
  }
  OPTFARM_ASSIGN_OR_RETURN(BlobId id,
                           BlobIdFromProto(report.optimized_model()));
  blobs.push_back(std::move(id));
  if (!report.passed() &&
      std::all_of(report.gates().begin(), report.gates().end(),
                  [](const v1::GateResult& gate) { return gate.passed(); })) {
    return absl::InvalidArgumentError(
        "the report did not pass, and names no gate that failed");
  }
  return absl::OkStatus();
}

// "int8" of "int8@tflite", where the job asks for that engine.
std::string GraphOfVariant(const std::string& variant,
                           const v1::JobSpec& spec) {
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(variant, absl::MaxSplits('@', 1));
  return absl::c_linear_search(spec.benchmark().engines(), parts.second)
             ? parts.first
             : variant;
}

// What a runtime of somebody's says goes into the report.
absl::Status CheckEngineWords(const v1::Measurement& measurement) {
  if (measurement.engine_failures_size() > kMaxEngines) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a measurement tells of ", measurement.engine_failures_size(),
        " engines that failed; at most ", kMaxEngines, " are taken"));
  }
  size_t longest = measurement.engine().size();
  for (const v1::EngineFailure& failure : measurement.engine_failures()) {
    longest =
        std::max({longest, failure.engine().size(), failure.reason().size()});
  }
  if (longest <= kMaxEngineBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "a measurement says ", longest, " bytes of an engine; at most ",
      kMaxEngineBytes, " are kept"));
}

absl::Status CheckMeasurement(const v1::Measurement& measurement,
                              const storage::TaskRecord& task,
                              const v1::JobSpec& spec) {
  if (measurement.device() != task.device) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a measurement is of device ", Quoted(measurement.device()),
        " and the task is for '", task.device, "'"));
  }
  OPTFARM_RETURN_IF_ERROR(CheckEngineWords(measurement));
  const std::string graph = GraphOfVariant(measurement.variant(), spec);
  if (graph != "float" && graph != spec.recipe().name()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a measurement is of variant ", Quoted(measurement.variant()),
        "; the task has 'float' and '", spec.recipe().name(), "'"));
  }
  for (const double value :
       {measurement.median_us(), measurement.min_us(), measurement.mean_us(),
        measurement.mad_us(), measurement.p90_us(), measurement.p99_us()}) {
    if (!std::isfinite(value) || value < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("a measurement says ", value, " microseconds"));
    }
  }
  if (measurement.samples_us_size() > kMaxSamples ||
      measurement.op_times_size() > kMaxProfileRows ||
      measurement.slowest_nodes_size() > kMaxProfileRows) {
    return absl::InvalidArgumentError(
        absl::StrCat("a measurement has more than ", kMaxSamples,
                     " samples or ", kMaxProfileRows, " rows of a profile"));
  }
  if (measurement.steps_size() > kMaxSteps) {
    return absl::InvalidArgumentError(
        absl::StrCat("a measurement has ", measurement.steps_size(),
                     " steps; at most ", kMaxSteps, " are kept"));
  }
  if (measurement.threads() < 1 || measurement.runs() < 1 ||
      !(measurement.median_us() > 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a measurement has ", measurement.threads(), " threads, ",
        measurement.runs(), " runs and a median of ", measurement.median_us(),
        " microseconds; all must be above 0"));
  }
  OPTFARM_ASSIGN_OR_RETURN(const BlobId model,
                           BlobIdFromProto(measurement.model()));
  return absl::OkStatus();
}

absl::Status CheckBenchmark(const v1::BenchmarkResult& result,
                            const storage::TaskRecord& task,
                            const v1::JobSpec& spec) {
  if (result.measurements().empty() ||
      result.measurements_size() > kMaxMeasurements) {
    return absl::InvalidArgumentError(
        absl::StrCat("the completion has ", result.measurements_size(),
                     " measurements; 1 to ", kMaxMeasurements, " are taken"));
  }
  for (const v1::Measurement& measurement : result.measurements()) {
    OPTFARM_RETURN_IF_ERROR(CheckMeasurement(measurement, task, spec));
  }
  return absl::OkStatus();
}

absl::Status WrongKind(absl::string_view sent,
                       const storage::TaskRecord& task) {
  return absl::InvalidArgumentError(absl::StrCat(
      "the completion has ", sent, " and task ", task.task_id, " is ",
      task.kind == v1::OPTIMIZE ? "an optimize task" : "a benchmark task"));
}

}  // namespace

absl::StatusOr<std::vector<BlobId>> CheckCompletion(
    const v1::Completion& completion, const storage::TaskRecord& task,
    const v1::JobSpec& spec) {
  std::vector<BlobId> blobs;
  OPTFARM_RETURN_IF_ERROR(AddArtifacts(completion.artifacts(), blobs));
  switch (completion.outcome_case()) {
    case v1::Completion::kReport:
      if (task.kind != v1::OPTIMIZE) return WrongKind("a report", task);
      OPTFARM_RETURN_IF_ERROR(CheckReport(completion.report(), spec, blobs));
      break;
    case v1::Completion::kBenchmark:
      if (task.kind != v1::BENCHMARK) return WrongKind("measurements", task);
      OPTFARM_RETURN_IF_ERROR(
          CheckBenchmark(completion.benchmark(), task, spec));
      break;
    case v1::Completion::kFailure:
      if (completion.failure().kind() != v1::Failure::USER &&
          completion.failure().kind() != v1::Failure::INTERNAL) {
        return absl::InvalidArgumentError(
            "the failure is neither USER nor INTERNAL");
      }
      break;
    case v1::Completion::kReleased:
      break;
    case v1::Completion::OUTCOME_NOT_SET:
      return absl::InvalidArgumentError("the completion has no outcome");
  }
  return blobs;
}

}  // namespace optfarm::server
