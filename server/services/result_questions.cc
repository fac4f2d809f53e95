#include "server/services/result_questions.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/status_macros.h"
#include "server/conventions/names.h"
#include "server/delivery/job_view.h"
#include "server/services/list_query.h"
#include "server/services/regression_rule.h"
#include "server/services/result_comparison.h"

namespace optfarm::server {
namespace {

constexpr int kResultsAPage = 100;
// Samples and profiles of more would not fit a message.
constexpr int kFullResultsAPage = 400;
// Series of a job or a model that a comparison looks at.
constexpr size_t kMaxCompared = 1000;
// Points of a series that say how much it varies.
constexpr int kSpreadPoints = 21;
constexpr int kSeries = 20;
constexpr int kMostSeries = 100;
constexpr int kPoints = 100;
constexpr int kMostPoints = 1000;
constexpr int kRegressions = 100;
constexpr int kMostRegressions = 1000;

// `fallback` for 0. ERRORS: InvalidArgument outside 0..most.
absl::StatusOr<int> Bounded(absl::string_view field, int value, int fallback,
                            int most) {
  if (value >= 0 && value <= most) return value == 0 ? fallback : value;
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is ", value, "; give 0 to ", most));
}

}  // namespace

absl::Status ResultQuestions::Query(const Caller& caller,
                                    const v1::QueryResultsRequest& request,
                                    v1::QueryResultsResponse& response) {
  OPTFARM_ASSIGN_OR_RETURN(storage::MeasurementFilter filter,
                           ParseMeasurementFilter(request));
  filter.project = caller.OnlyProject();
  OPTFARM_ASSIGN_OR_RETURN(
      storage::PageRequest page,
      ParsePage(request.page_size(), kResultsAPage, request.page_token()));
  if (request.full()) page.limit = std::min(page.limit, kFullResultsAPage);
  OPTFARM_ASSIGN_OR_RETURN(
      const std::vector<storage::MeasurementRecord> records,
      store_.QueryMeasurements(filter, page));
  for (const storage::MeasurementRecord& record : records) {
    *response.add_results() = ToProto(record);
  }
  if (static_cast<int>(records.size()) == page.limit) {
    response.set_next_page_token(PageToken(records.back().result_id));
  }
  return absl::OkStatus();
}

absl::Status ResultQuestions::Compare(const Caller& caller,
                                      const v1::CompareResultsRequest& request,
                                      v1::CompareResultsResponse& response) {
  OPTFARM_ASSIGN_OR_RETURN(const auto a, ReadSide(caller, request.a()));
  OPTFARM_ASSIGN_OR_RETURN(const auto b, ReadSide(caller, request.b()));
  OPTFARM_ASSIGN_OR_RETURN(const RunSpreads spreads, ReadSpreads(caller, a, b));
  response = server::Compare(a, b, spreads);
  return absl::OkStatus();
}

absl::StatusOr<RunSpreads> ResultQuestions::ReadSpreads(
    const Caller& caller, absl::Span<const storage::MeasurementRecord> a,
    absl::Span<const storage::MeasurementRecord> b) {
  std::set<std::string> devices;
  for (const storage::MeasurementRecord& record : a) {
    devices.insert(record.measurement.device());
  }
  RunSpreads spreads;
  for (const storage::MeasurementRecord& record : b) {
    // Only pairs have an interval. Each device is looked at once.
    if (devices.erase(record.measurement.device()) == 0) continue;
    storage::MeasurementFilter filter;
    filter.project = caller.OnlyProject();
    filter.device = record.measurement.device();
    storage::SeriesRequest wanted;
    wanted.max_series = kMaxCompared;
    wanted.max_points = kSpreadPoints;
    wanted.details = false;
    wanted.take = [&](const storage::SeriesKey& key,
                      absl::Span<const storage::PointNumbers> points) {
      spreads.Add(key, points);
    };
    OPTFARM_RETURN_IF_ERROR(store_.ListSeries(filter, wanted).status());
  }
  return spreads;
}

absl::StatusOr<std::vector<storage::MeasurementRecord>>
ResultQuestions::ReadSide(const Caller& caller,
                          const v1::CompareResultsRequest::Side& side) {
  storage::MeasurementFilter filter;
  filter.project = caller.OnlyProject();
  switch (side.what_case()) {
    case v1::CompareResultsRequest::Side::kJobId: {
      OPTFARM_ASSIGN_OR_RETURN(const storage::StoredJob stored,
                               store_.GetJob(side.job_id()));
      if (!caller.Sees(stored.job.project)) {
        return storage::NoSuchJob(side.job_id());
      }
      filter.job_id = side.job_id();
      break;
    }
    case v1::CompareResultsRequest::Side::kModelSha256:
      if (!IsSha256Hex(side.model_sha256())) {
        return absl::InvalidArgumentError(absl::StrCat(
            "comparing: ", Quoted(side.model_sha256()),
            " is not a SHA-256: give 64 lower-case hexadecimal digits"));
      }
      filter.model = storage::ModelFilter{side.model_sha256(), ""};
      break;
    case v1::CompareResultsRequest::Side::WHAT_NOT_SET:
      return absl::InvalidArgumentError(
          "comparing: a side is empty; give a job or a model on both");
  }
  // Only what is newest in its series can be the newest of a row. It is known
  // by its id then.
  OPTFARM_ASSIGN_OR_RETURN(
      const storage::SeriesList list,
      store_.ListSeries(filter, {kMaxCompared, 1, /*details=*/false}));
  std::vector<int64_t> newest_first;
  for (const storage::SeriesRecord& series : list.series) {
    newest_first.push_back(series.points[0].result_id);
  }
  std::sort(newest_first.begin(), newest_first.end(), std::greater<>());
  return store_.GetMeasurements(newest_first);
}

absl::Status ResultQuestions::History(const Caller& caller,
                                      const v1::ListHistoryRequest& request,
                                      v1::ListHistoryResponse& response) {
  OPTFARM_ASSIGN_OR_RETURN(storage::MeasurementFilter filter,
                           ParseMeasurementFilter(request.filter()));
  filter.project = caller.OnlyProject();
  storage::SeriesRequest wanted;
  OPTFARM_ASSIGN_OR_RETURN(
      const int max_series,
      Bounded("max_series", request.max_series(), kSeries, kMostSeries));
  wanted.max_series = static_cast<size_t>(max_series);
  OPTFARM_ASSIGN_OR_RETURN(
      wanted.max_points,
      Bounded("max_points", request.max_points(), kPoints, kMostPoints));
  OPTFARM_ASSIGN_OR_RETURN(storage::SeriesList list,
                           store_.ListSeries(filter, wanted));
  response.set_more_series(list.more);
  for (storage::SeriesRecord& record : list.series) {
    v1::SeriesHistory& series = *response.add_series();
    *series.mutable_series() = ToProto(record.key);
    for (auto point = record.points.rbegin(); point != record.points.rend();
         ++point) {
      MoveTo(std::move(*point), *series.add_points());
    }
  }
  return absl::OkStatus();
}

absl::Status ResultQuestions::Regressions(
    const Caller& caller, const v1::FindRegressionsRequest& request,
    v1::FindRegressionsResponse& response) {
  OPTFARM_ASSIGN_OR_RETURN(storage::MeasurementFilter filter,
                           ParseMeasurementFilter(request.filter()));
  filter.project = caller.OnlyProject();
  OPTFARM_ASSIGN_OR_RETURN(const v1::RegressionRule rule,
                           CompleteRule(request.rule()));
  OPTFARM_ASSIGN_OR_RETURN(
      const int limit,
      Bounded("limit", request.limit(), kRegressions, kMostRegressions));
  storage::SeriesRequest wanted;
  wanted.max_series = std::numeric_limits<size_t>::max();
  // Noisy points that are left out are made up for by older ones.
  wanted.max_points = rule.window() * (rule.skip_noisy() ? 2 : 1);
  wanted.details = false;
  wanted.enough = [&rule](absl::Span<const storage::PointNumbers> points) {
    return IsEnough(rule, points);
  };
  struct Found {
    storage::SeriesKey key;
    Judgement judgement;
    storage::PointRecord point;
    double ratio;
  };
  std::vector<Found> found;
  wanted.take = [&](const storage::SeriesKey& key,
                    absl::Span<const storage::PointNumbers> points) {
    if (IsFine(rule, points)) {
      response.set_judged(response.judged() + 1);
      return;
    }
    const Judgement judgement = Judge(rule, points);
    if (!judgement.enough_points) {
      response.set_too_few_points(response.too_few_points() + 1);
      return;
    }
    response.set_judged(response.judged() + 1);
    if (judgement.regressed) {
      found.push_back({key, judgement, storage::PointRecord(*judgement.point),
                       judgement.past_median > 0
                           ? judgement.newest / judgement.past_median
                           : std::numeric_limits<double>::infinity()});
    }
  };
  OPTFARM_RETURN_IF_ERROR(store_.ListSeries(filter, wanted).status());
  response.set_found(static_cast<int>(found.size()));
  std::vector<Found*> worst;
  for (Found& entry : found) worst.push_back(&entry);
  std::stable_sort(
      worst.begin(), worst.end(),
      [](const Found* a, const Found* b) { return a->ratio > b->ratio; });
  worst.resize(std::min(worst.size(), static_cast<size_t>(limit)));
  std::vector<storage::PointRecord*> points;
  for (Found* entry : worst) points.push_back(&entry->point);
  OPTFARM_RETURN_IF_ERROR(store_.AddDetails(points));
  for (Found* entry : worst) {
    const Judgement& judgement = entry->judgement;
    v1::Regression& regression = *response.add_regressions();
    *regression.mutable_series() = ToProto(entry->key);
    MoveTo(std::move(entry->point), *regression.mutable_newest());
    regression.set_allowed(judgement.allowed);
    regression.set_past_median(judgement.past_median);
    if (judgement.past_median > 0) {
      regression.set_ratio(judgement.newest / judgement.past_median);
    }
    regression.set_past_points(judgement.past_points);
    regression.set_message(Explain(rule, judgement));
  }
  return absl::OkStatus();
}

}  // namespace optfarm::server
