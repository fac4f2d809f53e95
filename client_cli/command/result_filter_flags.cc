#include "client_cli/command/result_filter_flags.h"

#include <cmath>
#include <limits>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/nearest_names.h"
#include "base/status_macros.h"
#include "client_cli/command/all_devices.h"
#include "client_cli/command/job_ids.h"
#include "client_cli/flags/exit_code.h"
#include "client_cli/tables/table.h"
#include "engine/optimize/recipes/recipes.h"
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

absl::Status Unknown(absl::string_view noun, const std::string& name,
                     const std::vector<std::string>& known) {
  return FromServer(absl::NotFoundError(
      absl::StrCat("there is no ", noun, " '", PrintableLine(name), "'",
                   NearestNamesHint(name, known))));
}

absl::Status CheckDevice(FarmClient& client, const std::string& name) {
  if (name.empty()) return absl::OkStatus();
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<v1::Device> devices,
                           ListAllDevices(client));
  std::vector<std::string> known;
  for (const v1::Device& device : devices) {
    if (device.info().name() == name) return absl::OkStatus();
    known.push_back(device.info().name());
  }
  return Unknown("device", name, known);
}

// A name that results are asked for by.
struct AskedName {
  const char* noun;
  // What a job's filter calls it.
  const char* job_key;
  std::string name;
  // With the name alone.
  v1::ResultFilter filter;
  // Those that need no results to be known.
  std::vector<std::string> known;
  const std::string& (v1::Series::*name_of)() const;
};

// The newest series like `filter`, without more than a point of each.
absl::StatusOr<std::vector<v1::Series>> NewestSeries(
    FarmClient& client, const v1::ResultFilter& filter, int most) {
  v1::ListHistoryRequest request;
  *request.mutable_filter() = filter;
  request.set_max_series(most);
  request.set_max_points(1);
  v1::ListHistoryResponse response;
  OPTFARM_RETURN_IF_ERROR(client.ListHistory(request, &response));
  std::vector<v1::Series> series;
  for (const v1::SeriesHistory& one : response.series()) {
    series.push_back(one.series());
  }
  return series;
}

// True where the question cannot be asked: terms of a job's filter are
// separated by blanks.
absl::StatusOr<bool> HasJobs(FarmClient& client, const AskedName& asked) {
  if (asked.name.find_first_of(" \t\n=") != std::string::npos) return true;
  v1::ListJobsRequest request;
  request.set_filter(absl::StrCat(asked.job_key, "=", asked.name));
  request.set_page_size(1);
  OPTFARM_ASSIGN_OR_RETURN(const v1::ListJobsResponse found,
                           client.ListJobs(request));
  return !found.jobs().empty();
}

// Three questions at most, which the server answers from series and by indexes
// of jobs: none looks at all results.
absl::Status CheckName(FarmClient& client, const AskedName& asked) {
  constexpr int kMostSeries = 100;
  if (asked.name.empty() || absl::c_linear_search(asked.known, asked.name)) {
    return absl::OkStatus();
  }
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<v1::Series> same,
                           NewestSeries(client, asked.filter, 1));
  if (!same.empty()) return absl::OkStatus();
  OPTFARM_ASSIGN_OR_RETURN(const bool has_jobs, HasJobs(client, asked));
  if (has_jobs) return absl::OkStatus();
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<v1::Series> newest,
                           NewestSeries(client, {}, kMostSeries));
  std::vector<std::string> known = asked.known;
  for (const v1::Series& series : newest) {
    const std::string& name = (series.*asked.name_of)();
    if (!name.empty() && !absl::c_linear_search(known, name)) {
      known.push_back(name);
    }
  }
  return Unknown(asked.noun, asked.name, known);
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
  OPTFARM_RETURN_IF_ERROR(CheckDevice(client, device_));
  v1::ResultFilter model, recipe, variant;
  model.set_model(model_);
  recipe.set_recipe_name(recipe_);
  variant.set_variant(variant_);
  const std::vector<std::string> recipes = optimize::BuiltInRecipeNames();
  std::vector<std::string> variants = recipes;
  variants.emplace_back("float");
  OPTFARM_RETURN_IF_ERROR(CheckName(
      client, {"model", "model", model_, model, {}, &v1::Series::model_name}));
  OPTFARM_RETURN_IF_ERROR(
      CheckName(client, {"recipe", "recipe", recipe_, recipe, recipes,
                         &v1::Series::recipe_name}));
  return CheckName(client, {"variant", "recipe", variant_, variant, variants,
                            &v1::Series::variant});
}

}  // namespace optfarm::client_cli
