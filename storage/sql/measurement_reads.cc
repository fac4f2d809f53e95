#include "storage/sql/measurement_reads.h"

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/sql/deflate.h"
#include "storage/sql/result_query.h"
#include "storage/sql/select_columns.h"

namespace optfarm::storage::sql {
namespace {

// Everything but samples and tags.
constexpr char kMeasurements[] =
    "SELECT m.job_id, m.task_id, m.create_time, s.recipe_name, g.sha256,"
    " s.model_name, m.model_bytes, m.measurement_proto, s.project, m.result_id"
    " FROM measurements AS m"
    " JOIN series AS s USING (series_id)"
    " JOIN graphs AS g ON g.graph_id = m.model_id"
    " WHERE m.result_id IN (SELECT value FROM json_each(?1))";
constexpr SelectColumns kMeasurement(kMeasurements);

constexpr char kSamplesOfResults[] =
    "SELECT encoding, raw_bytes, raw_proto, result_id FROM samples"
    " WHERE result_id IN (SELECT value FROM json_each(?1))";
constexpr SelectColumns kSamples(kSamplesOfResults);

constexpr char kTagsOfResults[] =
    "SELECT m.result_id, t.tag FROM measurements AS m"
    " JOIN job_tags AS t USING (job_id)"
    " WHERE m.result_id IN (SELECT value FROM json_each(?1))"
    " ORDER BY m.result_id, t.tag";
constexpr SelectColumns kTags(kTagsOfResults);

using RecordsById = absl::flat_hash_map<int64_t, MeasurementRecord>;

absl::Status MergeSamples(const SqlStatement& row, MeasurementRecord& record) {
  std::string raw = row.Text(kSamples["raw_proto"]);
  if (row.Int(kSamples["encoding"]) == 1) {
    OPTFARM_ASSIGN_OR_RETURN(
        raw, Inflate(raw, static_cast<size_t>(row.Int(kSamples["raw_bytes"]))));
  }
  // One message, cut in two when it was stored.
  if (record.measurement.MergeFromString(raw)) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("the samples of result ", record.result_id,
                   " are damaged; restore the database from a backup"));
}

// Retention may have let them go.
absl::Status AddSamples(SqlDatabase& db, absl::Span<const int64_t> ids,
                        RecordsById& records) {
  SqlStatement query = db.Prepare(kSamplesOfResults);
  query.BindInts(1, ids);
  while (query.Step()) {
    const auto record = records.find(query.Int(kSamples["result_id"]));
    if (record == records.end()) continue;
    OPTFARM_RETURN_IF_ERROR(MergeSamples(query, record->second));
  }
  return query.status();
}

absl::Status AddTags(SqlDatabase& db, absl::Span<const int64_t> ids,
                     RecordsById& records) {
  SqlStatement query = db.Prepare(kTagsOfResults);
  query.BindInts(1, ids);
  while (query.Step()) {
    const auto record = records.find(query.Int(kTags["result_id"]));
    if (record == records.end()) continue;
    record->second.tags.push_back(query.Text(kTags["tag"]));
  }
  return query.status();
}

// What many rows refer to by number, read once each.
class TextsByNumber {
 public:
  // `sql` gives the text for the number ?1.
  TextsByNumber(SqlDatabase& db, const char* sql) : db_(db), sql_(sql) {}

  absl::Status Read(int64_t number, std::string& text) {
    const auto [known, is_new] = texts_.try_emplace(number);
    if (is_new) {
      SqlStatement query = db_.Prepare(sql_);
      query.BindInt(1, number);
      if (query.Step()) known->second = query.Text(0);
      OPTFARM_RETURN_IF_ERROR(query.status());
    }
    text = known->second;
    return absl::OkStatus();
  }

 private:
  SqlDatabase& db_;
  const char* const sql_;
  absl::flat_hash_map<int64_t, std::string> texts_;
};

// What is read of points beside their numbers.
class PointDetails {
 public:
  explicit PointDetails(SqlDatabase& db)
      : db_(db),
        graphs_(db, "SELECT sha256 FROM graphs WHERE graph_id = ?1"),
        builds_(db,
                "SELECT build_version FROM environments"
                " WHERE environment_id = ?1") {}

  // `points` are the series', newest first.
  absl::Status AddOfSeries(int64_t series_id, absl::Span<PointRecord> points);
  absl::Status Add(PointRecord& point);

 private:
  // From the columns of a row.
  absl::Status Fill(const SqlStatement& row, PointRecord& point);

  SqlDatabase& db_;
  TextsByNumber graphs_;
  TextsByNumber builds_;
};

#define OPTFARM_SELECT_DETAILS                                         \
  "SELECT create_time, measured_id, environment_id, job_id, result_id" \
  " FROM measurements "
constexpr char kDetailsOfSeries[] = OPTFARM_SELECT_DETAILS
    "INDEXED BY measurements_by_series"
    " WHERE series_id = ?1 AND result_id <= ?2 ORDER BY result_id DESC";
constexpr char kDetailsOfResult[] =
    OPTFARM_SELECT_DETAILS "WHERE result_id = ?1";
constexpr char kDetailsOfResults[] =
    "SELECT m.create_time, g.sha256, e.build_version, m.job_id, m.result_id"
    " FROM measurements AS m JOIN graphs AS g ON g.graph_id = m.measured_id"
    " JOIN environments AS e USING (environment_id)"
    " WHERE m.result_id IN (SELECT value FROM json_each(?1))";
constexpr SelectColumns kJoinedDetails(kDetailsOfResults);
constexpr SelectColumns kDetails(OPTFARM_SELECT_DETAILS);
#undef OPTFARM_SELECT_DETAILS

absl::Status PointDetails::AddOfSeries(int64_t series_id,
                                       absl::Span<PointRecord> points) {
  // Looking for a row takes as long as going over so many.
  constexpr int kRowsToPass = 8;
  auto point = points.begin();
  while (point != points.end()) {
    SqlStatement rows = db_.Prepare(kDetailsOfSeries, SqlDatabase::Rows::kMany);
    rows.BindInt(1, series_id);
    rows.BindInt(2, point->result_id);
    int passed = 0;
    while (point != points.end() && passed < kRowsToPass) {
      if (!rows.Step()) return rows.status();
      const int64_t id = rows.Int(kDetails["result_id"]);
      if (id < point->result_id) {
        // Its row has gone; the search goes on with the next point.
        ++point;
        break;
      }
      if (id > point->result_id) {
        ++passed;
        continue;
      }
      passed = 0;
      OPTFARM_RETURN_IF_ERROR(Fill(rows, *point++));
    }
  }
  return absl::OkStatus();
}

absl::Status PointDetails::Add(PointRecord& point) {
  SqlStatement row = db_.Prepare(kDetailsOfResult);
  row.BindInt(1, point.result_id);
  // Retention may have let it go meanwhile.
  return row.Step() ? Fill(row, point) : row.status();
}

// With one statement for many.
absl::Status AddDetailsTogether(SqlDatabase& db,
                                absl::Span<PointRecord* const> points) {
  absl::flat_hash_map<int64_t, PointRecord*> by_id;
  std::vector<int64_t> ids;
  for (PointRecord* point : points) {
    by_id[point->result_id] = point;
    ids.push_back(point->result_id);
  }
  SqlStatement rows = db.Prepare(kDetailsOfResults);
  rows.BindInts(1, ids);
  while (rows.Step()) {
    const auto found = by_id.find(rows.Int(kJoinedDetails["result_id"]));
    if (found == by_id.end()) continue;
    PointRecord& point = *found->second;
    point.create_time = rows.Time(kJoinedDetails["create_time"]);
    point.measured_sha256 = rows.Text(kJoinedDetails["sha256"]);
    point.build_version = rows.Text(kJoinedDetails["build_version"]);
    point.job_id = rows.Text(kJoinedDetails["job_id"]);
  }
  return rows.status();
}

absl::Status PointDetails::Fill(const SqlStatement& row, PointRecord& point) {
  point.create_time = row.Time(kDetails["create_time"]);
  OPTFARM_RETURN_IF_ERROR(
      graphs_.Read(row.Int(kDetails["measured_id"]), point.measured_sha256));
  OPTFARM_RETURN_IF_ERROR(
      builds_.Read(row.Int(kDetails["environment_id"]), point.build_version));
  point.job_id = row.Text(kDetails["job_id"]);
  return absl::OkStatus();
}

absl::StatusOr<MeasurementRecord> ReadRow(const SqlStatement& row) {
  MeasurementRecord record;
  record.result_id = row.Int(kMeasurement["result_id"]);
  record.job_id = row.Text(kMeasurement["job_id"]);
  record.task_id = row.Text(kMeasurement["task_id"]);
  record.create_time = row.Time(kMeasurement["create_time"]);
  record.recipe_name = row.Text(kMeasurement["recipe_name"]);
  v1::NamedBlob& model = record.source_model;
  model.set_name(row.Text(kMeasurement["model_name"]));
  model.mutable_digest()->set_sha256(row.Text(kMeasurement["sha256"]));
  model.mutable_digest()->set_size_bytes(row.Int(kMeasurement["model_bytes"]));
  record.project = row.Text(kMeasurement["project"]);
  if (record.measurement.ParseFromString(
          row.Text(kMeasurement["measurement_proto"]))) {
    return record;
  }
  return absl::DataLossError(
      absl::StrCat("result ", record.result_id,
                   " is damaged; restore the database from a backup"));
}

// In the order of the ids; those that are not there are left out.
absl::StatusOr<std::vector<MeasurementRecord>> ReadMeasurements(
    SqlDatabase& db, absl::Span<const int64_t> ids, bool full) {
  std::vector<MeasurementRecord> found;
  if (ids.empty()) return found;
  RecordsById records;
  {
    SqlStatement rows = db.Prepare(kMeasurements);
    rows.BindInts(1, ids);
    while (rows.Step()) {
      OPTFARM_ASSIGN_OR_RETURN(MeasurementRecord record, ReadRow(rows));
      records[record.result_id] = std::move(record);
    }
    OPTFARM_RETURN_IF_ERROR(rows.status());
  }
  if (full) OPTFARM_RETURN_IF_ERROR(AddSamples(db, ids, records));
  OPTFARM_RETURN_IF_ERROR(AddTags(db, ids, records));
  for (const int64_t id : ids) {
    const auto record = records.find(id);
    if (record == records.end()) continue;
    found.push_back(std::move(record->second));
    records.erase(record);
  }
  return found;
}

}  // namespace

absl::StatusOr<std::vector<MeasurementRecord>> QueryMeasurements(
    SqlDatabase& db, const SeriesMemory* memory,
    const MeasurementFilter& filter, const PageRequest& page) {
  ResultQuery query(db, memory, filter);
  OPTFARM_RETURN_IF_ERROR(query.Prepare(page.before));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> ids,
                           query.NewestIds(static_cast<size_t>(page.limit)));
  return ReadMeasurements(db, ids, filter.full);
}

absl::StatusOr<std::vector<MeasurementRecord>> GetMeasurements(
    SqlDatabase& db, absl::Span<const int64_t> result_ids) {
  return ReadMeasurements(db, result_ids, /*full=*/false);
}

absl::StatusOr<SeriesList> ListSeries(SqlDatabase& db,
                                      const SeriesMemory* memory,
                                      const MeasurementFilter& filter,
                                      const SeriesRequest& request) {
  ResultQuery query(db, memory, filter);
  OPTFARM_RETURN_IF_ERROR(query.Prepare(0));
  OPTFARM_ASSIGN_OR_RETURN(const auto candidates, query.Candidates());
  SeriesList list;
  PointDetails details(db);
  std::vector<PointNumbers> points;
  for (const ResultQuery::Candidate& candidate : candidates) {
    OPTFARM_RETURN_IF_ERROR(query.Rows(
        candidate, {request.max_points, 0, &request.enough}, points));
    if (points.empty()) continue;
    if (request.take) {
      request.take(*candidate.key, points);
      continue;
    }
    if (list.series.size() == request.max_series) {
      list.more = true;
      break;
    }
    SeriesRecord& series = list.series.emplace_back();
    series.key = *candidate.key;
    series.points = std::vector<PointRecord>(points.begin(), points.end());
    if (request.details && db.IsInProcess()) {
      OPTFARM_RETURN_IF_ERROR(details.AddOfSeries(
          candidate.series_id, absl::MakeSpan(series.points)));
    }
  }
  if (request.details && !db.IsInProcess()) {
    std::vector<PointRecord*> all;
    for (SeriesRecord& series : list.series) {
      for (PointRecord& point : series.points) all.push_back(&point);
    }
    OPTFARM_RETURN_IF_ERROR(AddDetails(db, all));
  }
  return list;
}

absl::Status AddDetails(SqlDatabase& db,
                        absl::Span<PointRecord* const> points) {
  if (!db.IsInProcess() && !points.empty()) {
    return AddDetailsTogether(db, points);
  }
  PointDetails details(db);
  for (PointRecord* point : points) {
    OPTFARM_RETURN_IF_ERROR(details.Add(*point));
  }
  return absl::OkStatus();
}

}  // namespace optfarm::storage::sql
