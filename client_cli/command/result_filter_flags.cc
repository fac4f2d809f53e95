#include "client_cli/command/result_filter_flags.h"

#include <cmath>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/nearest_names.h"
#include "base/status_macros.h"
#include "client_cli/command/all_devices.h"
#include "client_cli/command/job_ids.h"
#include "client_cli/flags/exit_code.h"
#include "client_cli/tables/table.h"
#include "rpc/proto_time.h"

namespace optfarm::client_cli {
namespace {

struct NamedMetric {
  const char* name;
  v1::Metric metric;
};
constexpr NamedMetric kMetrics[] = {
    {"median_us", v1::MEDIAN_US},
    {"p90_us", v1::P90_US},
    {"peak_memory_bytes", v1::PEAK_MEMORY_BYTES},
    {"file_size_bytes", v1::FILE_SIZE_BYTES},
};

double Next(double value) {
  return std::nextafter(value, std::numeric_limits<double>::infinity());
}

}  // namespace

std::vector<std::string> MetricNames() {
  std::vector<std::string> names;
  for (const NamedMetric& entry : kMetrics) names.emplace_back(entry.name);
  return names;
}

v1::Metric MetricOf(absl::string_view name) {
  for (const NamedMetric& entry : kMetrics) {
    if (name == entry.name) return entry.metric;
  }
  return v1::METRIC_UNSPECIFIED;
}

double ValueOf(const v1::SeriesPoint& point, v1::Metric metric) {
  switch (metric) {
    case v1::P90_US:
      return point.p90_us();
    case v1::PEAK_MEMORY_BYTES:
      return static_cast<double>(point.peak_memory_bytes());
    case v1::FILE_SIZE_BYTES:
      return static_cast<double>(point.file_size_bytes());
    default:
      return point.median_us();
  }
}

absl::StatusOr<v1::MetricRange> ParseMetricRange(absl::string_view text) {
  const size_t sign = text.find_first_of("<>");
  const bool or_equal =
      sign != absl::string_view::npos && text.substr(sign + 1, 1) == "=";
  double number = 0;
  if (sign == absl::string_view::npos ||
      !absl::SimpleAtod(text.substr(sign + (or_equal ? 2 : 1)), &number) ||
      std::isnan(number)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", PrintableLine(text),
                     "' is not a metric, < <= > or >=, and a number, such as "
                     "median_us<5000"));
  }
  v1::MetricRange range;
  range.set_metric(MetricOf(text.substr(0, sign)));
  if (range.metric() == v1::METRIC_UNSPECIFIED) {
    const std::string name = PrintableLine(text.substr(0, sign));
    return absl::InvalidArgumentError(
        absl::StrCat("there is no metric '", name, "'; use ",
                     absl::StrJoin(MetricNames(), ", "),
                     NearestNamesHint(name, MetricNames())));
  }
  if (text[sign] == '<') {
    range.set_below(or_equal ? Next(number) : number);
  } else {
    range.set_at_least(or_equal ? number : Next(number));
  }
  return range;
}

void ResultFilterFlags::Declare(FlagSet* flags) {
  flags->Text("model", "MODEL",
              "Only this model: SHA-256 of the source or of the measured "
              "graph (at least 6 digits), or a file name.",
              &model_);
  flags->Text("recipe", "NAME", "Only this recipe.", &recipe_);
  flags->Text("device", "NAME", "Only this device.", &device_);
  flags->Text("job", "JOB", "Only this job; latest: the newest.", &job_);
  flags->Text("variant", "NAME", "Only this variant: float, or a recipe.",
              &variant_);
  flags->Integer("threads", "Only this thread count.", &threads_, 1);
  flags->Text("tag", "TAG", "Only jobs with this tag.", &tag_);
  flags->Duration("since", "Only results newer than this, for instance 24h.",
                  &since_);
  flags->Duration("until", "Only results older than this.", &until_);
  flags->Texts("where", "METRIC<N",
               absl::StrCat("Only results with a metric below (or, with >, "
                            "above) a number. Metrics: ",
                            absl::StrJoin(MetricNames(), ", "), "."),
               &where_);
}

absl::Status ResultFilterFlags::CompleteJob(FarmClient& client) {
  if (job_.empty()) return absl::OkStatus();
  OPTFARM_ASSIGN_OR_RETURN(job_, FindJobId(client, job_));
  return absl::OkStatus();
}

absl::StatusOr<v1::ResultFilter> ResultFilterFlags::Build(
    absl::Time now) const {
  v1::ResultFilter filter;
  filter.set_model(model_);
  filter.set_recipe_name(recipe_);
  filter.set_device(device_);
  filter.set_job_id(job_);
  filter.set_variant(variant_);
  filter.set_threads(static_cast<int32_t>(threads_));
  filter.set_tag(tag_);
  if (since_ > absl::ZeroDuration()) {
    *filter.mutable_from_time() = rpc::ToTimestamp(now - since_);
  }
  if (until_ > absl::ZeroDuration()) {
    *filter.mutable_until_time() = rpc::ToTimestamp(now - until_);
  }
  for (const std::string& text : where_) {
    absl::StatusOr<v1::MetricRange> range = ParseMetricRange(text);
    if (!range.ok()) {
      return UsageError(absl::StrCat("--where: ", range.status().message()));
    }
    *filter.add_metrics() = *std::move(range);
  }
  return filter;
}

absl::Status ResultFilterFlags::CheckNames(FarmClient& client) const {
  if (!job_.empty()) OPTFARM_RETURN_IF_ERROR(client.GetJob(job_).status());
  if (device_.empty()) return absl::OkStatus();
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<v1::Device> devices,
                           ListAllDevices(client));
  std::vector<std::string> known;
  for (const v1::Device& device : devices) {
    if (device.info().name() == device_) return absl::OkStatus();
    known.push_back(device.info().name());
  }
  return FromServer(absl::NotFoundError(
      absl::StrCat("there is no device '", PrintableLine(device_), "'",
                   NearestNamesHint(device_, known))));
}

}  // namespace optfarm::client_cli
