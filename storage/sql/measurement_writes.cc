#include "storage/sql/measurement_writes.h"

#include <cmath>
#include <initializer_list>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/sql/deflate.h"

namespace optfarm::storage {
namespace {

// The numbers of rows that a measurement points at.
struct Places {
  int64_t series = 0;
  int64_t environment = 0;
  int64_t model = 0;
  int64_t measured = 0;
};

// Binds what tells one series from another as parameters 1 to 6; the project
// is that of the job.
void BindSeries(SqlStatement& statement, const MeasurementRecord& record) {
  statement.BindText(1, record.measurement.device());
  statement.BindText(2, record.source_model.name());
  statement.BindText(3, record.recipe_name);
  statement.BindText(4, record.measurement.variant());
  statement.BindInt(5, record.measurement.threads());
  statement.BindText(6, record.job_id);
}

// Of a statement that inserts a row and returns its number.
absl::StatusOr<int64_t> NewId(SqlStatement& insert) {
  const int64_t id = insert.Step() ? insert.Int(0) : 0;
  OPTFARM_RETURN_IF_ERROR(insert.status());
  return id;
}

absl::StatusOr<int64_t> SeriesOf(SqlDatabase& db,
                                 const MeasurementRecord& record) {
  {
    SqlStatement query = db.Prepare(
        "SELECT series_id FROM series WHERE device = ?1 AND model_name = ?2"
        " AND recipe_name = ?3 AND variant = ?4 AND threads = ?5 AND project ="
        " (SELECT project FROM jobs WHERE job_id = ?6)");
    BindSeries(query, record);
    if (query.Step()) return query.Int(0);
    OPTFARM_RETURN_IF_ERROR(query.status());
  }
  SqlStatement insert = db.Prepare(
      "INSERT INTO series (device, model_name, recipe_name, variant, threads,"
      " project, last_result_id) VALUES (?1,?2,?3,?4,?5,"
      " (SELECT project FROM jobs WHERE job_id = ?6),0) RETURNING series_id");
  BindSeries(insert, record);
  return NewId(insert);
}

absl::StatusOr<int64_t> GraphOf(SqlDatabase& db, const std::string& sha256) {
  {
    SqlStatement query =
        db.Prepare("SELECT graph_id FROM graphs WHERE sha256 = ?1");
    query.BindText(1, sha256);
    if (query.Step()) return query.Int(0);
    OPTFARM_RETURN_IF_ERROR(query.status());
  }
  SqlStatement insert =
      db.Prepare("INSERT INTO graphs (sha256) VALUES (?1) RETURNING graph_id");
  insert.BindText(1, sha256);
  return NewId(insert);
}

// Binds what is kept of an environment as parameters 1 to 5.
void BindEnvironment(SqlStatement& statement,
                     const v1::Environment& environment) {
  statement.BindText(1, environment.build_version());
  statement.BindText(2, environment.cpu_model());
  statement.BindText(3, environment.governor());
  statement.BindText(4, environment.os());
  statement.BindText(5, environment.kernel());
}

absl::StatusOr<int64_t> EnvironmentOf(SqlDatabase& db,
                                      const v1::Environment& environment) {
  {
    SqlStatement query = db.Prepare(
        "SELECT environment_id FROM environments WHERE build_version = ?1"
        " AND cpu_model = ?2 AND governor = ?3 AND os = ?4 AND kernel = ?5");
    BindEnvironment(query, environment);
    if (query.Step()) return query.Int(0);
    OPTFARM_RETURN_IF_ERROR(query.status());
  }
  SqlStatement insert = db.Prepare(
      "INSERT INTO environments (build_version, cpu_model, governor, os,"
      " kernel) VALUES (?1,?2,?3,?4,?5) RETURNING environment_id");
  BindEnvironment(insert, environment);
  return NewId(insert);
}

// The number of the row that `key` stands for: as remembered, or `look_up()`'s.
template <typename LookUp>
absl::StatusOr<int64_t> PlaceOf(ResultPlaces& places, std::string key,
                                LookUp look_up) {
  if (const int64_t known = places.Find(key); known != 0) return known;
  OPTFARM_ASSIGN_OR_RETURN(const int64_t id, look_up());
  places.Add(std::move(key), id);
  return id;
}

// Texts may hold anything: each comes after its length.
std::string KeyOf(std::initializer_list<absl::string_view> texts) {
  std::string key;
  for (const absl::string_view text : texts) {
    absl::StrAppend(&key, text.size(), ":", text);
  }
  return key;
}

std::string SeriesKeyOf(const MeasurementRecord& record) {
  const v1::Measurement& m = record.measurement;
  return KeyOf({"series", m.device(), record.source_model.name(),
                record.recipe_name, m.variant(), absl::StrCat(m.threads()),
                record.project});
}

std::string EnvironmentKeyOf(const v1::Environment& e) {
  return KeyOf({"environment", e.build_version(), e.cpu_model(), e.governor(),
                e.os(), e.kernel()});
}

absl::StatusOr<Places> PlacesOf(SqlDatabase& db,
                                const MeasurementRecord& record,
                                ResultPlaces& known) {
  const v1::Measurement& m = record.measurement;
  const auto graph = [&](const std::string& sha256) {
    return PlaceOf(known, KeyOf({"graph", sha256}),
                   [&] { return GraphOf(db, sha256); });
  };
  Places places;
  if (record.project.empty()) {
    OPTFARM_ASSIGN_OR_RETURN(places.series, SeriesOf(db, record));
  } else {
    OPTFARM_ASSIGN_OR_RETURN(places.series,
                             PlaceOf(known, SeriesKeyOf(record),
                                     [&] { return SeriesOf(db, record); }));
  }
  OPTFARM_ASSIGN_OR_RETURN(places.environment,
                           PlaceOf(known, EnvironmentKeyOf(m.before()), [&] {
                             return EnvironmentOf(db, m.before());
                           }));
  OPTFARM_ASSIGN_OR_RETURN(places.model,
                           graph(record.source_model.digest().sha256()));
  OPTFARM_ASSIGN_OR_RETURN(places.measured, graph(m.model().sha256()));
  return places;
}

// SQLite keeps NaN as NULL, which no column may be.
double NumberOrZero(double value) { return std::isnan(value) ? 0 : value; }

absl::Status InsertRow(SqlDatabase& db, const MeasurementRecord& record,
                       const Places& places, const v1::Measurement& summary) {
  SqlStatement insert = db.Prepare(
      "INSERT INTO measurements (series_id, job_id, task_id, create_time,"
      " environment_id, model_id, model_bytes, measured_id, runs, noisy,"
      " load_us, first_us, min_us, median_us, mean_us, mad_us, p90_us, p99_us,"
      " max_us, peak_memory_bytes, file_size_bytes, measurement_proto) VALUES"
      // A clock that was set back does not put this result before others.
      " (?1,?2,?3,(SELECT MAX(create_time) FROM (SELECT create_time FROM"
      "   (SELECT create_time FROM measurements ORDER BY result_id DESC LIMIT "
      "1)"
      "   AS newest UNION ALL SELECT ?4) AS times),"
      "?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20,?21,?22)");
  insert.BindInt(1, places.series);
  insert.BindText(2, record.job_id);
  insert.BindText(3, record.task_id);
  insert.BindTime(4, record.create_time);
  insert.BindInt(5, places.environment);
  insert.BindInt(6, places.model);
  insert.BindInt(7, record.source_model.digest().size_bytes());
  insert.BindInt(8, places.measured);
  const v1::Measurement& m = summary;
  insert.BindInt(9, m.runs());
  insert.BindInt(10, m.noisy() ? 1 : 0);
  int parameter = 11;
  for (const double value :
       {m.load_us(), m.first_us(), m.min_us(), m.median_us(), m.mean_us(),
        m.mad_us(), m.p90_us(), m.p99_us(), m.max_us()}) {
    insert.BindDouble(parameter++, NumberOrZero(value));
  }
  insert.BindInt(20, m.peak_memory_bytes());
  insert.BindInt(21, m.file_size_bytes());
  insert.BindBlob(22, m.SerializeAsString());
  return insert.RunLater();
}

// The result that this transaction added last: it has the only right to write,
// and ids grow.
#define OPTFARM_NEWEST_RESULT "(SELECT MAX(result_id) FROM measurements)"

absl::Status InsertSamples(SqlDatabase& db, const v1::Measurement& raw) {
  const std::string bytes = raw.SerializeAsString();
  if (bytes.empty()) return absl::OkStatus();
  OPTFARM_ASSIGN_OR_RETURN(const std::string deflated, Deflate(bytes));
  const bool smaller = deflated.size() < bytes.size();
  SqlStatement insert = db.Prepare(
      "INSERT INTO samples VALUES (" OPTFARM_NEWEST_RESULT ",?1,?2,?3)");
  insert.BindInt(1, smaller ? 1 : 0);
  insert.BindInt(2, static_cast<int64_t>(bytes.size()));
  insert.BindBlob(3, smaller ? deflated : bytes);
  return insert.RunLater();
}

// A bound that is NULL is not smaller or larger than anything.
#define OPTFARM_LEAST(number, value)                         \
  " least_" number " = CASE WHEN least_" number " <= " value \
  " THEN least_" number " ELSE " value " END,"
#define OPTFARM_MOST(number, value)                        \
  " most_" number " = CASE WHEN most_" number " >= " value \
  " THEN most_" number " ELSE " value " END,"

// Also widens the bounds of the series and adds to its sums.
absl::Status NoteNewest(SqlDatabase& db, int64_t series_id,
                        const v1::Measurement& m) {
  // clang-format off
  SqlStatement update = db.Prepare(
      "UPDATE series SET results = results + 1,"
      " sum_median_us = sum_median_us + ?2, sum_p90_us = sum_p90_us + ?3,"
      OPTFARM_LEAST("median_us", "?2") OPTFARM_MOST("median_us", "?2")
      OPTFARM_LEAST("p90_us", "?3") OPTFARM_MOST("p90_us", "?3")
      OPTFARM_LEAST("peak_memory_bytes", "?4")
      OPTFARM_MOST("peak_memory_bytes", "?4")
      OPTFARM_LEAST("file_size_bytes", "?5")
      OPTFARM_MOST("file_size_bytes", "?5")
      " last_result_id = " OPTFARM_NEWEST_RESULT " WHERE series_id = ?1");
  // clang-format on
  update.BindInt(1, series_id);
  update.BindDouble(2, NumberOrZero(m.median_us()));
  update.BindDouble(3, NumberOrZero(m.p90_us()));
  update.BindInt(4, m.peak_memory_bytes());
  update.BindInt(5, m.file_size_bytes());
  return update.RunLater();
}

#undef OPTFARM_LEAST
#undef OPTFARM_MOST

absl::Status InsertTags(SqlDatabase& db, const std::string& job_id,
                        int64_t series_id) {
  SqlStatement insert = db.Prepare(
      "INSERT INTO result_tags SELECT tag, ?2, " OPTFARM_NEWEST_RESULT
      " FROM job_tags WHERE job_id = ?1");
  insert.BindText(1, job_id);
  insert.BindInt(2, series_id);
  return insert.RunLater();
}

#undef OPTFARM_NEWEST_RESULT

}  // namespace

absl::Status InsertMeasurement(SqlDatabase& db, const MeasurementRecord& record,
                               ResultPlaces& known) {
  v1::Measurement summary = record.measurement;
  v1::Measurement raw;
  raw.mutable_samples_us()->Swap(summary.mutable_samples_us());
  raw.mutable_op_times()->Swap(summary.mutable_op_times());
  raw.mutable_slowest_nodes()->Swap(summary.mutable_slowest_nodes());
  raw.mutable_steps()->Swap(summary.mutable_steps());
  OPTFARM_ASSIGN_OR_RETURN(const Places places, PlacesOf(db, record, known));
  OPTFARM_RETURN_IF_ERROR(InsertRow(db, record, places, summary));
  OPTFARM_RETURN_IF_ERROR(InsertSamples(db, raw));
  OPTFARM_RETURN_IF_ERROR(InsertTags(db, record.job_id, places.series));
  return NoteNewest(db, places.series, summary);
}

}  // namespace optfarm::storage
