#include "storage/sql/series_memory.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "storage/sql/select_columns.h"

namespace optfarm::storage::sql {
namespace {

constexpr char kAllSeries[] = OPTFARM_SELECT_SERIES;
constexpr char kOneSeries[] = OPTFARM_SELECT_SERIES " WHERE series_id = ?1";
constexpr char kPointsOfSeries[] = OPTFARM_SELECT_POINTS
    "measurements AS m INDEXED BY measurements_by_series WHERE series_id = ?1"
    " ORDER BY result_id DESC LIMIT ?2";
constexpr char kNewPoints[] = OPTFARM_SELECT_POINTS
    "measurements AS m WHERE result_id > ?1 ORDER BY result_id";
constexpr char kIdsOfSeries[] =
    "SELECT result_id FROM measurements INDEXED BY measurements_by_series"
    " WHERE series_id = ?1 AND result_id >= ?2 ORDER BY result_id";

// Tags of a result in one order, so that equal sets are one.
#define OPTFARM_SELECT_TAGS "SELECT tag, series_id, result_id FROM result_tags "
constexpr char kAllTags[] =
    OPTFARM_SELECT_TAGS "ORDER BY tag, series_id, result_id";
constexpr char kNewTags[] = OPTFARM_SELECT_TAGS
    "INDEXED BY result_tags_by_result"
    " WHERE result_id > ?1 ORDER BY result_id, tag";
constexpr SelectColumns kTag(OPTFARM_SELECT_TAGS);
#undef OPTFARM_SELECT_TAGS
constexpr char kCounts[] = "SELECT series_id, results FROM series";
constexpr SelectColumns kCount(kCounts);

// Of a series beside its points: names, and its places in both tables.
constexpr int64_t kSeriesBytes = sizeof(SeriesMemory::Series) + 160;
// Vectors have room for some more.
constexpr int64_t kPointBytes =
    sizeof(SeriesMemory::Point) + sizeof(SeriesMemory::Point) / 16;

// Below so many points of a series a rule would look further back anyway.
constexpr size_t kShallowest = 25;

SeriesMemory::Point PointOf(const SqlStatement& row) {
  const PointNumbers numbers = ReadPointNumbers(row);
  const PointPlaces places = ReadPointPlaces(row);
  SeriesMemory::Point point;
  point.result_id = numbers.result_id;
  point.median_us = numbers.median_us;
  point.p90_us = numbers.p90_us;
  point.peak_memory_bytes = numbers.peak_memory_bytes;
  point.file_size_bytes = numbers.file_size_bytes;
  point.noisy = numbers.noisy ? 1 : 0;
  point.model_id = places.model_id;
  point.measured_id = places.measured_id;
  point.tags = TagSets::kEmpty;
  return point;
}

void Widen(double value, NumberRange& range) {
  range.least = std::min(range.least, value);
  range.most = std::max(range.most, value);
}

// The first point from this id on.
std::vector<SeriesMemory::Point>::iterator PointFrom(
    int64_t result_id, std::vector<SeriesMemory::Point>& points) {
  return std::lower_bound(points.begin(), points.end(), result_id,
                          [](const SeriesMemory::Point& point, int64_t id) {
                            return point.result_id < id;
                          });
}

// Doubling would leave half of a large memory empty.
void Append(const SeriesMemory::Point& point,
            std::vector<SeriesMemory::Point>& points) {
  if (points.size() == points.capacity()) {
    points.reserve(points.size() + points.size() / 8 + 4);
  }
  points.push_back(point);
}

absl::StatusOr<int64_t> OneNumber(SqlDatabase& db, const char* sql) {
  SqlStatement query = db.Prepare(sql);
  const int64_t number = query.Step() ? query.Int(0) : 0;
  OPTFARM_RETURN_IF_ERROR(query.status());
  return number;
}

absl::StatusOr<int64_t> ResultsGone(SqlDatabase& db) {
  return OneNumber(db, "SELECT results FROM results_gone");
}

}  // namespace

const SeriesMemory::Series* SeriesMemory::Find(int64_t series_id) const {
  const auto found = by_id_.find(series_id);
  return found == by_id_.end() ? nullptr : found->second;
}

int64_t SeriesMemory::bytes() const {
  return static_cast<int64_t>(series_.size()) * kSeriesBytes +
         points_ * kPointBytes + tags_.bytes();
}

void SeriesMemory::Clear() {
  loaded_ = false;
  by_id_.clear();
  series_.clear();
  tags_ = TagSets();
  points_ = 0;
}

absl::Status SeriesMemory::CatchUp(SqlDatabase& db) {
  if (max_bytes_ <= 0 || too_small_) return absl::OkStatus();
  const absl::Status status = loaded_ ? Follow(db) : Load(db);
  if (!status.ok()) {
    Clear();
    return status;
  }
  loaded_ = true;
  KeepWithinBound();
  return absl::OkStatus();
}

SeriesMemory::Series& SeriesMemory::Add(const SqlStatement& row) {
  auto added = std::make_unique<Series>();
  Series& series = *added;
  const SeriesNumbers numbers = ReadSeriesNumbers(row);
  series.series_id = numbers.series_id;
  series.last_result_id = numbers.last_result_id;
  series.results = numbers.results;
  series.key = ReadSeriesKey(row);
  series.bounds = ReadSeriesBounds(row);
  by_id_[series.series_id] = &series;
  series_.push_back(std::move(added));
  return series;
}

absl::Status SeriesMemory::Load(SqlDatabase& db) {
  Clear();
  OPTFARM_ASSIGN_OR_RETURN(gone_, ResultsGone(db));
  OPTFARM_ASSIGN_OR_RETURN(
      last_result_id_,
      OneNumber(db, "SELECT MAX(result_id) FROM measurements"));
  {
    SqlStatement query = db.Prepare(kAllSeries);
    while (query.Step()) Add(query);
    OPTFARM_RETURN_IF_ERROR(query.status());
  }
  const size_t depth = DepthWithin(max_bytes_ - bytes());
  if (depth == 0) {
    too_small_ = !series_.empty();
    return absl::OkStatus();
  }
  for (const std::unique_ptr<Series>& series : series_) {
    OPTFARM_RETURN_IF_ERROR(LoadPoints(db, depth, *series));
  }
  return LoadTags(db);
}

absl::Status SeriesMemory::LoadPoints(SqlDatabase& db, size_t depth,
                                      Series& series) {
  SqlStatement query = db.Prepare(kPointsOfSeries);
  query.BindInt(1, series.series_id);
  query.BindInt(2, static_cast<int64_t>(depth));
  series.points.reserve(std::min(
      depth, static_cast<size_t>(std::max<int64_t>(series.results, 0))));
  while (query.Step()) Append(PointOf(query), series.points);
  OPTFARM_RETURN_IF_ERROR(query.status());
  std::reverse(series.points.begin(), series.points.end());
  points_ += static_cast<int64_t>(series.points.size());
  return absl::OkStatus();
}

void SeriesMemory::AddTag(absl::string_view tag, Point& point) {
  point.tags = tags_.With(point.tags, tag) & 0x7fffffffu;
}

absl::Status SeriesMemory::LoadTags(SqlDatabase& db) {
  SqlStatement query = db.Prepare(kAllTags, SqlDatabase::Rows::kMany);
  Series* series = nullptr;
  std::vector<Point>::iterator point;
  int64_t last_id = 0;
  while (query.Step()) {
    const int64_t series_id = query.Int(kTag["series_id"]);
    const int64_t result_id = query.Int(kTag["result_id"]);
    // Within a series ids grow, until the next tag begins.
    if (series == nullptr || series->series_id != series_id ||
        result_id < last_id) {
      const auto found = by_id_.find(series_id);
      if (found == by_id_.end()) continue;
      series = found->second;
      point = PointFrom(result_id, series->points);
    }
    last_id = result_id;
    while (point != series->points.end() && point->result_id < result_id) {
      ++point;
    }
    if (point == series->points.end() || point->result_id != result_id) {
      continue;
    }
    AddTag(query.Text(kTag["tag"]), *point);
  }
  return query.status();
}

absl::Status SeriesMemory::Follow(SqlDatabase& db) {
  const int64_t before = last_result_id_;
  OPTFARM_RETURN_IF_ERROR(AddNewPoints(db));
  if (last_result_id_ > before) {
    OPTFARM_RETURN_IF_ERROR(AddNewTags(db, before));
  }
  OPTFARM_ASSIGN_OR_RETURN(const int64_t gone, ResultsGone(db));
  if (gone == gone_) return absl::OkStatus();
  gone_ = gone;
  return DropThoseGone(db);
}

absl::Status SeriesMemory::AddNewPoints(SqlDatabase& db) {
  SqlStatement query = db.Prepare(kNewPoints, SqlDatabase::Rows::kMany);
  query.BindInt(1, last_result_id_);
  while (query.Step()) {
    const int64_t series_id = ReadPointPlaces(query).series_id;
    const auto found = by_id_.find(series_id);
    Series* series = found == by_id_.end() ? nullptr : found->second;
    if (series == nullptr) {
      SqlStatement row = db.Prepare(kOneSeries);
      row.BindInt(1, series_id);
      if (!row.Step()) return row.status();
      series = &Add(row);
      // The count has the points that are about to come.
      series->results = 0;
    }
    const Point point = PointOf(query);
    Append(point, series->points);
    ++points_;
    ++series->results;
    last_result_id_ = series->last_result_id = point.result_id;
    Widen(point.median_us, series->bounds[0]);
    Widen(point.p90_us, series->bounds[1]);
    Widen(static_cast<double>(point.peak_memory_bytes), series->bounds[2]);
    Widen(static_cast<double>(point.file_size_bytes), series->bounds[3]);
  }
  return query.status();
}

absl::Status SeriesMemory::AddNewTags(SqlDatabase& db, int64_t after) {
  SqlStatement query = db.Prepare(kNewTags);
  query.BindInt(1, after);
  while (query.Step()) {
    const auto found = by_id_.find(query.Int(kTag["series_id"]));
    if (found == by_id_.end()) continue;
    const int64_t result_id = query.Int(kTag["result_id"]);
    std::vector<Point>& points = found->second->points;
    const auto point = PointFrom(result_id, points);
    if (point == points.end() || point->result_id != result_id) continue;
    AddTag(query.Text(kTag["tag"]), *point);
  }
  return query.status();
}

absl::Status SeriesMemory::DropThoseGone(SqlDatabase& db) {
  SqlStatement query = db.Prepare(kCounts);
  while (query.Step()) {
    const auto found = by_id_.find(query.Int(kCount["series_id"]));
    const int64_t results = query.Int(kCount["results"]);
    if (found == by_id_.end() || found->second->results == results) continue;
    OPTFARM_RETURN_IF_ERROR(DropThoseGone(db, results, *found->second));
  }
  return query.status();
}

absl::Status SeriesMemory::DropThoseGone(SqlDatabase& db, int64_t results,
                                         Series& series) {
  series.results = results;
  std::vector<Point>& points = series.points;
  if (points.empty()) return absl::OkStatus();
  SqlStatement query = db.Prepare(kIdsOfSeries);
  query.BindInt(1, series.series_id);
  query.BindInt(2, points.front().result_id);
  auto stays = points.begin();
  auto point = points.begin();
  while (query.Step()) {
    while (point != points.end() && point->result_id < query.Int(0)) ++point;
    if (point == points.end()) break;
    if (point->result_id == query.Int(0)) *stays++ = *point++;
  }
  OPTFARM_RETURN_IF_ERROR(query.status());
  points_ -= points.end() - stays;
  points.erase(stays, points.end());
  return absl::OkStatus();
}

size_t SeriesMemory::DepthWithin(int64_t bytes) const {
  int64_t longest = 1;
  for (const std::unique_ptr<Series>& series : series_) {
    longest = std::max(longest, series->results);
  }
  const auto kept = [&](size_t depth) {
    int64_t points = 0;
    for (const std::unique_ptr<Series>& series : series_) {
      points += std::min(static_cast<int64_t>(depth), series->results);
    }
    return points;
  };
  auto depth = static_cast<size_t>(longest);
  const int64_t most = bytes / kPointBytes;
  while (depth > 0 && kept(depth) > most) {
    depth -= depth / 4 + 1;
    if (depth < kShallowest) return 0;
  }
  return depth;
}

void SeriesMemory::KeepWithinBound() {
  if (!too_small_ && bytes() > max_bytes_) {
    const int64_t beside = bytes() - points_ * kPointBytes;
    const size_t depth = DepthWithin(max_bytes_ / 8 * 7 - beside);
    too_small_ = depth == 0;
    for (const std::unique_ptr<Series>& series : series_) {
      std::vector<Point>& points = series->points;
      if (points.size() <= depth) continue;
      const size_t dropped = points.size() - depth;
      points_ -= static_cast<int64_t>(dropped);
      points = std::vector<Point>(
          points.begin() + static_cast<std::ptrdiff_t>(dropped), points.end());
    }
  }
  if (!too_small_) return;
  LogWarning(series_.size(), " series of results do not fit into ", max_bytes_,
             " bytes: questions about many of them take longer; give the "
             "server more with --results_memory_mb");
  Clear();
}

}  // namespace optfarm::storage::sql
