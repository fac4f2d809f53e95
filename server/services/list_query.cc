#include "server/services/list_query.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/nearest_names.h"
#include "base/status_macros.h"
#include "rpc/proto_time.h"
#include "server/conventions/names.h"

namespace optfarm::server {
namespace {

constexpr int kLargestPage = 1000;
constexpr char kTokenPrefix[] = "after-";
constexpr int kMostRanges = 8;

bool IsHexPrefix(absl::string_view text) {
  return text.size() >= 6 && text.size() <= 64 &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f');
         });
}

storage::ModelFilter ToModelFilter(absl::string_view model) {
  storage::ModelFilter filter;
  filter.file_name = std::string(model);
  if (IsHexPrefix(model)) filter.sha256_prefix = std::string(model);
  return filter;
}

absl::StatusOr<v1::JobState> ParseState(absl::string_view text) {
  v1::JobState state = v1::JOB_STATE_UNSPECIFIED;
  const std::string name = absl::AsciiStrToUpper(text);
  if (v1::JobState_Parse(name, &state) && state != v1::JOB_STATE_UNSPECIFIED) {
    return state;
  }
  const std::vector<std::string> states = {"QUEUED", "RUNNING", "SUCCEEDED",
                                           "FAILED", "CANCELLED"};
  return absl::InvalidArgumentError(
      absl::StrCat("filter: there is no job state ", Quoted(text), "; use ",
                   "QUEUED, RUNNING, SUCCEEDED, FAILED or CANCELLED",
                   NearestNamesHint(name, states)));
}

absl::Status AddTerm(absl::string_view key, absl::string_view value,
                     storage::JobFilter& filter) {
  if (key == "state") {
    OPTFARM_ASSIGN_OR_RETURN(filter.state, ParseState(value));
  } else if (key == "recipe") {
    filter.recipe_name = std::string(value);
  } else if (key == "model") {
    filter.model = ToModelFilter(value);
  } else if (key == "device") {
    filter.device = std::string(value);
  } else if (key == "name") {
    filter.name = std::string(value);
  } else if (key == "job") {
    filter.job_id_prefix = std::string(value);
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("filter: there is no term ", Quoted(key),
                     "; use state=, recipe=, model=, device=, name= or job="));
  }
  return absl::OkStatus();
}

absl::StatusOr<storage::MetricFilter> ParseRange(const v1::MetricRange& range) {
  storage::MetricFilter filter;
  if (!v1::Metric_IsValid(range.metric()) ||
      range.metric() == v1::METRIC_UNSPECIFIED) {
    return absl::InvalidArgumentError(absl::StrCat(
        "metrics: there is no metric ", static_cast<int>(range.metric())));
  }
  filter.metric = range.metric();
  if (range.has_at_least()) filter.at_least = range.at_least();
  if (range.has_below()) filter.below = range.below();
  return filter;
}

}  // namespace

absl::StatusOr<storage::JobFilter> ParseJobFilter(absl::string_view filter) {
  storage::JobFilter result;
  for (const absl::string_view term :
       absl::StrSplit(filter, absl::ByAnyChar(" \t\n"), absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(term, absl::MaxSplits('=', 1));
    if (parts.second.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("filter: ", Quoted(term),
                       " is not of the form key=value, such as state=RUNNING"));
    }
    OPTFARM_RETURN_IF_ERROR(AddTerm(parts.first, parts.second, result));
  }
  return result;
}

absl::StatusOr<storage::MeasurementFilter> ParseMeasurementFilter(
    const v1::ResultFilter& request) {
  storage::MeasurementFilter filter;
  const auto set = [](const std::string& value,
                      std::optional<std::string>& field) {
    if (!value.empty()) field = value;
  };
  set(request.job_id(), filter.job_id);
  set(request.recipe_name(), filter.recipe_name);
  set(request.device(), filter.device);
  set(request.variant(), filter.variant);
  set(request.tag(), filter.tag);
  if (!request.model().empty()) filter.model = ToModelFilter(request.model());
  if (request.threads() < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("threads is ", request.threads(), "; give 0 for any"));
  }
  if (request.threads() > 0) filter.threads = request.threads();
  // Beyond these the arithmetic on microseconds would saturate anyway.
  const auto time = [](const google::protobuf::Timestamp& timestamp) {
    return std::clamp(rpc::FromTimestamp(timestamp), absl::UnixEpoch(),
                      absl::FromUnixSeconds(int64_t{1} << 35));
  };
  if (request.has_from_time()) filter.from_time = time(request.from_time());
  if (request.has_until_time()) filter.until_time = time(request.until_time());
  if (request.metrics_size() > kMostRanges) {
    return absl::InvalidArgumentError(
        absl::StrCat("metrics has ", request.metrics_size(),
                     " ranges; give at most ", kMostRanges));
  }
  for (const v1::MetricRange& range : request.metrics()) {
    OPTFARM_ASSIGN_OR_RETURN(filter.metrics.emplace_back(), ParseRange(range));
  }
  return filter;
}

absl::StatusOr<storage::MeasurementFilter> ParseMeasurementFilter(
    const v1::QueryResultsRequest& request) {
  v1::ResultFilter common;
  common.set_model(request.model());
  common.set_recipe_name(request.recipe_name());
  common.set_device(request.device());
  common.set_job_id(request.job_id());
  common.set_variant(request.variant());
  common.set_threads(request.threads());
  common.set_tag(request.tag());
  if (request.has_from_time()) {
    *common.mutable_from_time() = request.from_time();
  }
  if (request.has_until_time()) {
    *common.mutable_until_time() = request.until_time();
  }
  *common.mutable_metrics() = request.metrics();
  OPTFARM_ASSIGN_OR_RETURN(storage::MeasurementFilter filter,
                           ParseMeasurementFilter(common));
  if (request.result_id() < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("result_id is ", request.result_id(), "; give 0 for any"));
  }
  filter.result_id = request.result_id();
  filter.full = request.full();
  return filter;
}

absl::StatusOr<storage::PageRequest> ParsePage(int size, int fallback,
                                               absl::string_view token) {
  if (size < 0 || size > kLargestPage) {
    return absl::InvalidArgumentError(
        absl::StrCat("page_size is ", size, "; give 0 to ", kLargestPage));
  }
  storage::PageRequest page;
  page.limit = size == 0 ? fallback : size;
  if (token.empty()) return page;
  absl::string_view digits = token;
  if (!absl::ConsumePrefix(&digits, kTokenPrefix) ||
      !absl::SimpleAtoi(digits, &page.before) || page.before <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("page_token ", Quoted(token),
                     " is not one of this server's; give next_page_token of "
                     "the page before, or none"));
  }
  return page;
}

std::string PageToken(int64_t last_number) {
  return absl::StrCat(kTokenPrefix, last_number);
}

}  // namespace optfarm::server
