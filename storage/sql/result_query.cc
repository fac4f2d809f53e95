#include "storage/sql/result_query.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <string>

#include "base/status_macros.h"
#include "storage/sql/result_rows.h"
#include "storage/sql/select_columns.h"

namespace optfarm::storage::sql {
namespace {

constexpr char kRowsOfSeries[] = OPTFARM_SELECT_POINTS
    "measurements AS m INDEXED BY measurements_by_series"
    " WHERE series_id = ?1 AND result_id >= ?2 AND result_id <= ?3"
    " ORDER BY result_id DESC";
// Rows that do not match go by without leaving SQLite: by one metric, or by
// any.
#define OPTFARM_ROWS_WHERE(condition)                              \
  OPTFARM_SELECT_POINTS                                            \
  "measurements AS m INDEXED BY measurements_by_series"            \
  " WHERE series_id = ?1 AND result_id >= ?2 AND result_id <= ?3 " \
  "AND " condition " ORDER BY result_id DESC"
constexpr char kRowsByMedian[] =
    OPTFARM_ROWS_WHERE("median_us >= ?5 AND median_us <= ?6");
constexpr char kRowsByP90[] =
    OPTFARM_ROWS_WHERE("p90_us >= ?5 AND p90_us <= ?6");
constexpr char kRowsByMemory[] =
    OPTFARM_ROWS_WHERE("peak_memory_bytes >= ?5 AND peak_memory_bytes <= ?6");
constexpr char kRowsBySize[] =
    OPTFARM_ROWS_WHERE("file_size_bytes >= ?5 AND file_size_bytes <= ?6");
constexpr char kRowsByAll[] = OPTFARM_ROWS_WHERE(
    "median_us >= ?5 AND median_us <= ?6 AND p90_us >= ?7 AND p90_us <= ?8"
    " AND peak_memory_bytes >= ?9 AND peak_memory_bytes <= ?10"
    " AND file_size_bytes >= ?11 AND file_size_bytes <= ?12");
#undef OPTFARM_ROWS_WHERE
// In the order of IndexOf.
constexpr const char* kRowsByOne[] = {kRowsByMedian, kRowsByP90, kRowsByMemory,
                                      kRowsBySize};
// The sign keeps SQLite from looking at all rows between ?2 and ?3 for each
// tag.
constexpr char kRowsOfTag[] = OPTFARM_SELECT_POINTS
    "result_tags AS t CROSS JOIN measurements AS m"
    " INDEXED BY measurements_by_series"
    " ON m.series_id = t.series_id AND m.result_id = +t.result_id"
    " WHERE t.tag = ?4 AND t.series_id = ?1 AND t.result_id >= ?2"
    " AND t.result_id <= ?3 ORDER BY t.result_id DESC";
constexpr char kRowsOfJob[] = OPTFARM_SELECT_POINTS
    "measurements AS m INDEXED BY measurements_by_job"
    " WHERE job_id = ?4 AND series_id = ?1 AND result_id >= ?2"
    " AND result_id <= ?3 ORDER BY result_id DESC";

constexpr char kNextTime[] =
    "SELECT result_id, create_time FROM measurements"
    " WHERE result_id >= ?1 ORDER BY result_id LIMIT 1";
constexpr SelectColumns kNext(kNextTime);

constexpr char kTagIsRare[] =
    "SELECT COUNT(*) <= ?2 FROM"
    " (SELECT 1 FROM result_tags WHERE tag = ?1 LIMIT ?2 + 1) AS found";
// Beyond so many results a tag leads to more rows than other filters do, read
// from the index or looked at in memory.
constexpr int64_t kRareInIndex = 20'000;
constexpr int64_t kRareInMemory = 1000;
// All results, for what so many have that the series need not be asked.
constexpr char kWalkBack[] =
    "SELECT result_id, series_id, median_us, p90_us, peak_memory_bytes,"
    " file_size_bytes FROM measurements WHERE result_id >= ?1"
    " AND result_id < ?2 ORDER BY result_id DESC";
constexpr SelectColumns kWalked(kWalkBack);
// Below so many series it is as fast to ask each of them.
constexpr size_t kManySeries = 64;
// How dense the results must be that are asked for, and after how many rows
// that is judged.
constexpr int64_t kRowsForOne = 16;
constexpr int64_t kRowsToJudgeBy = 2000;

constexpr char kHasTag[] =
    "SELECT 1 FROM result_tags WHERE tag = ?1 AND series_id = ?2"
    " AND result_id = ?3";

// The place of a metric among the bounds of a series.
size_t IndexOf(v1::Metric metric) {
  switch (metric) {
    case v1::P90_US:
      return 1;
    case v1::PEAK_MEMORY_BYTES:
      return 2;
    case v1::FILE_SIZE_BYTES:
      return 3;
    default:
      return 0;
  }
}

// 1 to 8, then 12, 16, 24, 32, 48, 64, ...: some rows more cost less than to
// look at all of them after each.
bool IsTimeToAsk(size_t rows) {
  const size_t lowest_bit = rows & (~rows + 1);
  return rows <= 8 || rows <= 3 * lowest_bit;
}

// The largest number that is smaller; infinity stands for no bound.
double JustBelow(double bound) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return bound == kInfinity ? bound : std::nextafter(bound, -kInfinity);
}

}  // namespace

// Results are in order of time, so the first one at or after a time is found by
// halving the range of ids.
absl::StatusOr<int64_t> FirstResultAt(SqlDatabase& db, absl::Time time) {
  int64_t low = 1;
  int64_t high = 1;
  {
    SqlStatement last =
        db.Prepare("SELECT COALESCE(MAX(result_id), 0) + 1 FROM measurements");
    if (last.Step()) high = last.Int(0);
    OPTFARM_RETURN_IF_ERROR(last.status());
  }
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    SqlStatement query = db.Prepare(kNextTime);
    query.BindInt(1, middle);
    if (query.Step() && query.Time(kNext["create_time"]) < time) {
      low = query.Int(kNext["result_id"]) + 1;
    } else {
      high = middle;
    }
    OPTFARM_RETURN_IF_ERROR(query.status());
  }
  return low;
}

absl::Status ResultQuery::Prepare(int64_t before) {
  for (const MetricFilter& wanted : filter_.metrics) {
    NumberRange& range = ranges_[IndexOf(wanted.metric)];
    range.least = std::max(range.least, wanted.at_least);
    range.most = std::min(range.most, JustBelow(wanted.below));
  }
  if (before > 0) high_ = before;
  if (filter_.from_time != absl::InfinitePast()) {
    OPTFARM_ASSIGN_OR_RETURN(low_, FirstResultAt(db_, filter_.from_time));
  }
  if (filter_.until_time != absl::InfiniteFuture()) {
    OPTFARM_ASSIGN_OR_RETURN(const int64_t end,
                             FirstResultAt(db_, filter_.until_time));
    high_ = std::min(high_, end);
  }
  if (filter_.result_id > 0) {
    low_ = std::max(low_, filter_.result_id);
    high_ = std::min(high_, filter_.result_id + 1);
  }
  if (filter_.tag) OPTFARM_RETURN_IF_ERROR(CountTag());
  if (!filter_.model || filter_.model->sha256_prefix.empty()) {
    return absl::OkStatus();
  }
  SqlStatement query = db_.Prepare(
      "SELECT graph_id FROM graphs WHERE sha256 >= ?1 AND sha256 < ?2");
  query.BindText(1, filter_.model->sha256_prefix);
  // 'g' sorts after every hex digit.
  query.BindText(2, filter_.model->sha256_prefix + "g");
  while (query.Step()) graphs_.insert(query.Int(0));
  return query.status();
}

absl::Status ResultQuery::CountTag() {
  if (memory_ != nullptr) sets_with_tag_ = memory_->SetsWith(*filter_.tag);
  SqlStatement query = db_.Prepare(kTagIsRare);
  query.BindText(1, *filter_.tag);
  query.BindInt(2, memory_ == nullptr ? kRareInIndex : kRareInMemory);
  if (query.Step()) tag_is_rare_ = query.Int(0) != 0;
  return query.status();
}

bool ResultQuery::LedByTag() const {
  return filter_.tag && !filter_.job_id &&
         (tag_is_rare_ || (filter_.metrics.empty() && graphs_.empty()));
}

absl::StatusOr<bool> ResultQuery::HasTag(int64_t series_id, int64_t result_id) {
  SqlStatement query = db_.Prepare(kHasTag);
  query.BindText(1, *filter_.tag);
  query.BindInt(2, series_id);
  query.BindInt(3, result_id);
  const bool has = query.Step();
  OPTFARM_RETURN_IF_ERROR(query.status());
  return has;
}

std::optional<size_t> ResultQuery::OneMetric() const {
  std::optional<size_t> one;
  for (const MetricFilter& range : filter_.metrics) {
    const size_t index = IndexOf(range.metric);
    if (one && *one != index) return std::nullopt;
    one = index;
  }
  return one;
}

bool ResultQuery::NeedsSeries() const {
  return filter_.job_id || filter_.recipe_name || filter_.device ||
         filter_.variant || filter_.threads || filter_.project ||
         filter_.model || filter_.tag || !filter_.metrics.empty();
}

bool ResultQuery::MatchesNumbers(const PointNumbers& point) const {
  return std::all_of(filter_.metrics.begin(), filter_.metrics.end(),
                     [&](const MetricFilter& range) {
                       const double value = ValueOf(point, range.metric);
                       return value >= range.at_least && value < range.below;
                     });
}

absl::StatusOr<std::vector<int64_t>> ResultQuery::NewestOfAll(size_t limit) {
  SqlStatement query = db_.Prepare(
      "SELECT result_id FROM measurements WHERE result_id >= ?1"
      " AND result_id < ?2 ORDER BY result_id DESC LIMIT ?3");
  query.BindInt(1, low_);
  query.BindInt(2, high_);
  query.BindInt(3, static_cast<int64_t>(limit));
  std::vector<int64_t> ids;
  while (query.Step()) ids.push_back(query.Int(0));
  OPTFARM_RETURN_IF_ERROR(query.status());
  return ids;
}

absl::StatusOr<std::vector<int64_t>> ResultQuery::NewestIds(size_t limit) {
  if (!NeedsSeries()) return NewestOfAll(limit);
  series_by_tag_ = tag_is_rare_;
  OPTFARM_ASSIGN_OR_RETURN(std::vector<Candidate> candidates, Candidates());
  // The smallest of the best so far is on top.
  std::priority_queue<int64_t, std::vector<int64_t>, std::greater<>> best;
  const bool walk = memory_ == nullptr && candidates.size() >= kManySeries &&
                    graphs_.empty() && !filter_.job_id &&
                    !(filter_.tag && tag_is_rare_);
  if (walk) {
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> ids,
                             WalkBack(candidates, limit));
    for (const int64_t id : ids) best.push(id);
  }
  std::vector<PointNumbers> rows;
  for (Candidate& candidate : candidates) {
    candidate.newest = std::min(candidate.newest, high_ - 1);
    if (candidate.newest < candidate.oldest) continue;
    int64_t least = 0;
    if (best.size() == limit) {
      least = best.top() + 1;
      if (candidate.newest < least) break;
    }
    OPTFARM_RETURN_IF_ERROR(
        Rows(candidate, {static_cast<int>(limit), least}, rows));
    for (const PointNumbers& row : rows) {
      best.push(row.result_id);
      if (best.size() > limit) best.pop();
    }
  }
  std::vector<int64_t> ids(best.size());
  for (size_t i = ids.size(); i-- > 0; best.pop()) ids[i] = best.top();
  return ids;
}

absl::StatusOr<std::vector<int64_t>> ResultQuery::WalkBack(
    absl::Span<const Candidate> candidates, size_t limit) {
  absl::flat_hash_set<int64_t> series;
  for (const Candidate& candidate : candidates) {
    series.insert(candidate.series_id);
  }
  SqlStatement query = db_.Prepare(kWalkBack, SqlDatabase::Rows::kMany);
  query.BindInt(1, low_);
  query.BindInt(2, high_);
  std::vector<int64_t> ids;
  for (int64_t rows = 1; ids.size() < limit; ++rows) {
    if (!query.Step()) {
      high_ = low_;
      break;
    }
    PointNumbers point;
    point.result_id = high_ = query.Int(kWalked["result_id"]);
    point.median_us = query.Double(kWalked["median_us"]);
    point.p90_us = query.Double(kWalked["p90_us"]);
    point.peak_memory_bytes = query.Int(kWalked["peak_memory_bytes"]);
    point.file_size_bytes = query.Int(kWalked["file_size_bytes"]);
    const int64_t series_id = query.Int(kWalked["series_id"]);
    bool wanted = series.contains(series_id) && MatchesNumbers(point);
    if (wanted && filter_.tag) {
      OPTFARM_ASSIGN_OR_RETURN(wanted, HasTag(series_id, point.result_id));
    }
    if (wanted) ids.push_back(point.result_id);
    if (rows % kRowsToJudgeBy == 0 &&
        static_cast<int64_t>(ids.size()) * kRowsForOne < rows) {
      break;
    }
  }
  OPTFARM_RETURN_IF_ERROR(query.status());
  return ids;
}

bool ResultQuery::Add(const PointNumbers& row, const RowsWanted& wanted,
                      std::vector<PointNumbers>& rows) const {
  rows.push_back(row);
  if (static_cast<int>(rows.size()) >= wanted.limit) return true;
  return wanted.enough != nullptr && *wanted.enough &&
         IsTimeToAsk(rows.size()) && (*wanted.enough)(rows);
}

absl::Status ResultQuery::Rows(const Candidate& candidate,
                               const RowsWanted& wanted,
                               std::vector<PointNumbers>& rows) {
  rows.clear();
  if (wanted.limit <= 0) return absl::OkStatus();
  const SeriesMemory::Series* series = candidate.series;
  // A job has few results, and they are found by it.
  if (series == nullptr || filter_.job_id) {
    return AddRowsOfIndex(candidate, wanted, rows);
  }
  if (AddRowsOfMemory(candidate, wanted, rows) || !series->has_older()) {
    return absl::OkStatus();
  }
  Candidate older = candidate;
  if (!series->points.empty()) {
    older.newest = std::min(older.newest, series->points.front().result_id - 1);
  }
  return AddRowsOfIndex(older, wanted, rows);
}

bool ResultQuery::AddRowsOfMemory(const Candidate& candidate,
                                  const RowsWanted& wanted,
                                  std::vector<PointNumbers>& rows) const {
  const std::vector<SeriesMemory::Point>& points = candidate.series->points;
  const int64_t least = std::max(wanted.least, candidate.oldest);
  auto point = points.end();
  if (!points.empty() && points.back().result_id > candidate.newest) {
    point = std::upper_bound(points.begin(), points.end(), candidate.newest,
                             [](int64_t id, const SeriesMemory::Point& p) {
                               return id < p.result_id;
                             });
  }
  while (point != points.begin()) {
    --point;
    if (point->result_id < least) return true;
    if (filter_.tag &&
        (sets_with_tag_.empty() || sets_with_tag_[point->tags] == 0)) {
      continue;
    }
    if (candidate.check_graph && !graphs_.contains(point->model_id) &&
        !graphs_.contains(point->measured_id)) {
      continue;
    }
    const PointNumbers row = point->Numbers();
    if (MatchesNumbers(row) && Add(row, wanted, rows)) return true;
  }
  return false;
}

absl::Status ResultQuery::AddRowsOfIndex(const Candidate& candidate,
                                         const RowsWanted& wanted,
                                         std::vector<PointNumbers>& rows) {
  const bool led_by_tag = LedByTag();
  const bool check_tag = filter_.tag && !filter_.job_id && !led_by_tag;
  const bool in_range =
      !filter_.metrics.empty() && !filter_.job_id && !led_by_tag;
  const std::optional<size_t> one = OneMetric();
  SqlStatement query = db_.Prepare(filter_.job_id ? kRowsOfJob
                                   : led_by_tag   ? kRowsOfTag
                                   : !in_range    ? kRowsOfSeries
                                   : one          ? kRowsByOne[*one]
                                                  : kRowsByAll,
                                   SqlDatabase::Rows::kMany);
  query.BindInt(1, candidate.series_id);
  query.BindInt(2, std::max(wanted.least, candidate.oldest));
  query.BindInt(3, candidate.newest);
  if (filter_.job_id) {
    query.BindText(4, *filter_.job_id);
  } else if (led_by_tag) {
    query.BindText(4, *filter_.tag);
  }
  int parameter = 5;
  for (size_t i = 0; in_range && i < ranges_.size(); ++i) {
    if (one && *one != i) continue;
    query.BindDouble(parameter++, ranges_[i].least);
    query.BindDouble(parameter++, ranges_[i].most);
  }
  while (query.Step()) {
    if (candidate.check_graph) {
      const PointPlaces places = ReadPointPlaces(query);
      if (!graphs_.contains(places.model_id) &&
          !graphs_.contains(places.measured_id)) {
        continue;
      }
    }
    const PointNumbers point = ReadPointNumbers(query);
    if (!MatchesNumbers(point)) continue;
    if (check_tag) {
      OPTFARM_ASSIGN_OR_RETURN(const bool has,
                               HasTag(candidate.series_id, point.result_id));
      if (!has) continue;
    }
    if (Add(point, wanted, rows)) break;
  }
  return query.status();
}

}  // namespace optfarm::storage::sql
