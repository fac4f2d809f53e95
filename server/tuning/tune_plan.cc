#include "server/tuning/tune_plan.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/digest.h"
#include "base/status_macros.h"
#include "server/conventions/names.h"
#include "server/scheduling/job_spec_check.h"

namespace optfarm::server {
namespace {

constexpr int kMaxDevices = 32;
constexpr int kMaxThreads = 256;
constexpr int kMostThreadCounts = 4;
constexpr int kMostCpus = 256;
constexpr int kLeastMeasured = 6;
constexpr int kMostMeasured = 200;
constexpr int kDefaultMeasured = 16;
constexpr int kMaxCalibrationSamples = 100'000;
// A third of the samples calibrates, a third guides the search, a third is held
// out; 100 are enough for ranges.
constexpr int kDefaultCalibration = 100;
constexpr size_t kKeyDigits = 10;
constexpr size_t kRequestDigits = 40;
constexpr char kPrefix[] = "tune-";

absl::Status OutOfRange(absl::string_view field, int64_t value, int64_t least,
                        int64_t most, int64_t fallback) {
  return absl::InvalidArgumentError(
      absl::StrCat("tune spec: ", field, " is ", value, "; give ", least,
                   " to ", most, ", or 0 for ", fallback));
}

absl::Status CheckDevices(const v1::TuneSpec& spec) {
  if (spec.devices_size() == 0 || spec.devices_size() > kMaxDevices) {
    return absl::InvalidArgumentError(
        absl::StrCat("tune spec: devices lists ", spec.devices_size(),
                     " names; give the names of 1 to ", kMaxDevices,
                     " devices to tune for"));
  }
  std::set<std::string> names;
  for (const std::string& name : spec.devices()) {
    OPTFARM_RETURN_IF_ERROR(
        Annotate(CheckName("device", name),
                 "tune spec: variants are compared on one device, so each is "
                 "named"));
    if (!names.insert(name).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          "tune spec: devices names ", Quoted(name), " more than once"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckBound(const v1::TuneSpec& spec) {
  if (!v1::TuneReport::Measure_IsValid(spec.measure()) ||
      !v1::TuneReport::Objective_IsValid(spec.objective())) {
    return absl::InvalidArgumentError(
        absl::StrCat("tune spec: there is no measure ", spec.measure(),
                     " or objective ", spec.objective()));
  }
  if (!spec.has_bound()) return absl::OkStatus();
  const double bound = spec.bound();
  double least = -1e6, most = 1e6;
  switch (spec.measure()) {
    case v1::TuneReport::TOP1_CHANGE:
      least = -100, most = 100;
      break;
    case v1::TuneReport::AGREEMENT:
      least = 0, most = 100;
      break;
    case v1::TuneReport::SNR:
      break;
    default:
      return absl::InvalidArgumentError(
          "tune spec: bound is in the unit of measure, so give measure too: "
          "TOP1_CHANGE, AGREEMENT or SNR");
  }
  if (std::isfinite(bound) && bound >= least && bound <= most) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("tune spec: bound is ", bound, "; for ",
                   v1::TuneReport::Measure_Name(spec.measure()), " give ",
                   least, " to ", most));
}

absl::Status CheckNumbers(const v1::TuneSpec& spec) {
  if (spec.threads() < 0 || spec.threads() > kMaxThreads) {
    return OutOfRange("threads", spec.threads(), 1, kMaxThreads, 1);
  }
  std::set<int> counts;
  for (const int threads : spec.thread_counts()) {
    if (threads < 1 || threads > kMaxThreads ||
        !counts.insert(threads).second || counts.size() > kMostThreadCounts) {
      return absl::InvalidArgumentError(absl::StrCat(
          "tune spec: thread_counts is ",
          absl::StrJoin(spec.thread_counts(), ","), "; give up to ",
          kMostThreadCounts, " different numbers from 1 to ", kMaxThreads));
    }
  }
  if (spec.threads() != 0 && !counts.empty() &&
      !counts.contains(spec.threads())) {
    return absl::InvalidArgumentError(
        absl::StrCat("tune spec: threads is ", spec.threads(),
                     ", which thread_counts does not have; leave threads out"));
  }
  for (const int cpu : spec.cpus()) {
    if (cpu < 0 || spec.cpus_size() > kMostCpus) {
      return absl::InvalidArgumentError(absl::StrCat(
          "tune spec: cpus is ", absl::StrJoin(spec.cpus(), ","),
          "; give up to ", kMostCpus, " numbers of processors from 0 on"));
    }
  }
  const int measured = spec.max_measured();
  if (measured != 0 &&
      (measured < kLeastMeasured || measured > kMostMeasured)) {
    return OutOfRange("max_measured", measured, kLeastMeasured, kMostMeasured,
                      kDefaultMeasured);
  }
  const int samples = spec.calibration_samples();
  if (samples < 0 || samples > kMaxCalibrationSamples) {
    return absl::InvalidArgumentError(
        absl::StrCat("tune spec: calibration_samples is ", samples,
                     "; give 1 to ", kMaxCalibrationSamples,
                     ", or 0 for a third of the files, at most 100"));
  }
  if (spec.seed() < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tune spec: seed is ", spec.seed(), "; give 1 or more, or 0 for 1"));
  }
  const google::protobuf::Duration& budget = spec.budget();
  if (spec.has_budget() && (budget.seconds() < 0 || budget.nanos() < 0 ||
                            budget.seconds() + budget.nanos() == 0)) {
    return absl::InvalidArgumentError(
        "tune spec: budget is not a time above 0; leave it out for none");
  }
  return absl::OkStatus();
}

// What a tune decides by itself.
absl::Status CheckEmpty(const v1::JobSpec& job) {
  const char* field = nullptr;
  if (!job.name().empty()) field = "name";
  if (job.recipe_source_case() != v1::JobSpec::RECIPE_SOURCE_NOT_SET) {
    field = "recipe";
  }
  if (job.has_benchmark()) field = "benchmark";
  if (job.out_formats_size() > 0) field = "out_formats";
  if (job.no_cache()) field = "no_cache";
  if (field == nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("tune spec: job.", field,
                   " is set; a tune fills it in for each of its "
                   "jobs, so leave it out"));
}

// How many there are, as far as the spec tells; 0: it does not.
int SampleFiles(const v1::JobSpec& job) {
  int files = 0;
  for (const v1::DataSource& source : job.calibration().sources()) {
    if (source.role() == v1::DataSource::SAMPLES) files += source.files_size();
  }
  return files;
}

bool HasData(const v1::JobSpec& job) {
  return std::any_of(job.calibration().sources().begin(),
                     job.calibration().sources().end(),
                     [](const v1::DataSource& source) {
                       return source.role() != v1::DataSource::LABELS;
                     });
}

}  // namespace

absl::StatusOr<v1::TuneSpec> CheckTuneSpec(const v1::TuneSpec& given) {
  OPTFARM_RETURN_IF_ERROR(CheckEmpty(given.job()));
  OPTFARM_RETURN_IF_ERROR(CheckDevices(given));
  OPTFARM_RETURN_IF_ERROR(CheckBound(given));
  OPTFARM_RETURN_IF_ERROR(CheckNumbers(given));
  v1::TuneSpec spec = given;
  if (spec.thread_counts().empty()) {
    spec.add_thread_counts(std::max(spec.threads(), 1));
  }
  if (spec.threads() == 0) spec.set_threads(spec.thread_counts(0));
  if (spec.max_measured() == 0) spec.set_max_measured(kDefaultMeasured);
  if (spec.seed() == 0) spec.set_seed(1);
  if (spec.objective() == v1::TuneReport::OBJECTIVE_UNSPECIFIED) {
    spec.set_objective(v1::TuneReport::LATENCY);
  }
  // In its checked form: with a recipe, which is not kept.
  v1::JobSpec probe = spec.job();
  probe.set_name(absl::StrCat(kPrefix, "0"));
  *probe.mutable_recipe() = tune::WholeRecipes({}).front().recipe;
  OPTFARM_ASSIGN_OR_RETURN(probe, CheckJobSpec(probe));
  if (!HasData(probe)) {
    return absl::InvalidArgumentError(
        "tune spec: job.calibration has no samples; a tune judges variants on "
        "data, so give the files of a folder, or an array for an input");
  }
  probe.clear_name();
  probe.clear_recipe();
  *spec.mutable_job() = std::move(probe);
  if (spec.calibration_samples() == 0) {
    // Arrays and record files do not say here how many samples they hold.
    const int files = SampleFiles(spec.job());
    spec.set_calibration_samples(
        files < 3 ? kDefaultCalibration
                  : std::min(kDefaultCalibration, files / 3));
  }
  return spec;
}

tune::SearchOptions SearchOptionsOf(const v1::TuneSpec& spec) {
  tune::SearchOptions options;
  options.devices.assign(spec.devices().begin(), spec.devices().end());
  options.threads.assign(spec.thread_counts().begin(),
                         spec.thread_counts().end());
  // Of an earlier version of this program.
  if (options.threads.empty()) options.threads = {spec.threads()};
  options.objective = spec.objective();
  options.measure = spec.measure();
  if (spec.has_bound()) options.bound = spec.bound();
  options.samples.calibration = spec.calibration_samples();
  options.samples.seed = static_cast<uint64_t>(spec.seed());
  options.most_measured = spec.max_measured();
  options.one_for_all = spec.one_for_all();
  return options;
}

std::string JobNameOf(const v1::TuneSpec& spec, const std::string& tune_id) {
  std::string text = absl::StrCat(
      OPTFARM_VERSION, " ", spec.job().SerializeAsString(), " ",
      absl::StrJoin(spec.thread_counts(), ","), " ",
      absl::StrJoin(spec.cpus(), ","), " ", spec.calibration_samples(), " ",
      spec.seed(), " ", absl::StrJoin(spec.devices(), ","));
  if (spec.fresh()) absl::StrAppend(&text, " ", tune_id);
  return absl::StrCat(kPrefix, Sha256Hex(text).substr(0, kKeyDigits));
}

v1::SubmitJobRequest CandidateJob(const v1::TuneSpec& spec,
                                  const std::string& job_name,
                                  const tune::Candidate& candidate,
                                  int attempt) {
  v1::SubmitJobRequest request;
  v1::JobSpec& job = *request.mutable_spec();
  job = spec.job();
  *job.mutable_recipe() = candidate.recipe;
  job.set_name(job_name);
  job.add_tags(absl::StrCat("tune=", job_name.substr(sizeof(kPrefix) - 1)));
  job.set_no_cache(spec.fresh());
  if (candidate.on_devices) {
    *job.mutable_benchmark()->mutable_devices() = spec.devices();
    *job.mutable_benchmark()->mutable_threads() = spec.thread_counts();
    if (spec.thread_counts().empty()) {
      job.mutable_benchmark()->add_threads(spec.threads());
    }
    *job.mutable_benchmark()->mutable_cpus() = spec.cpus();
    job.mutable_benchmark()->set_steps(true);
  }
  const std::string id = absl::StrCat(
      job_name, "-",
      Sha256Hex(job.SerializeAsString()).substr(0, kRequestDigits));
  request.set_client_request_id(attempt == 1 ? id
                                             : absl::StrCat(id, "-", attempt));
  return request;
}

v1::TuneSpec ShownSpec(const v1::TuneSpec& spec) {
  v1::TuneSpec shown = spec;
  for (v1::DataSource& source :
       *shown.mutable_job()->mutable_calibration()->mutable_sources()) {
    if (source.role() == v1::DataSource::SAMPLES) source.clear_files();
  }
  return shown;
}

}  // namespace optfarm::server
