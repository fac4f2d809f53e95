#include "storage/sqlite/migrate_measurements.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "optfarm/v1/measurement.pb.h"
#include "storage/sql/select_columns.h"

namespace optfarm::storage {
namespace {

absl::Status AddEnvironment(SqliteDatabase& db,
                            const v1::Environment& environment) {
  SqlStatement insert = db.Prepare(
      "INSERT OR IGNORE INTO environments (build_version, cpu_model, governor,"
      " os, kernel) VALUES (?1,?2,?3,?4,?5)");
  insert.BindText(1, environment.build_version());
  insert.BindText(2, environment.cpu_model());
  insert.BindText(3, environment.governor());
  insert.BindText(4, environment.os());
  insert.BindText(5, environment.kernel());
  return insert.Run();
}

absl::Status Complete(SqliteDatabase& db, int64_t result_id,
                      const v1::Measurement& m) {
  OPTFARM_RETURN_IF_ERROR(AddEnvironment(db, m.before()));
  SqlStatement update = db.Prepare(
      "UPDATE measurements SET runs = ?2, noisy = ?3, load_us = ?4,"
      " first_us = ?5, min_us = ?6, mean_us = ?7, mad_us = ?8, p90_us = ?9,"
      " p99_us = ?10, max_us = ?11, peak_memory_bytes = ?12,"
      " file_size_bytes = ?13, environment_id = (SELECT environment_id FROM"
      "  environments WHERE build_version = ?14 AND cpu_model = ?15 AND"
      "  governor = ?16 AND os = ?17 AND kernel = ?18) WHERE result_id = ?1");
  update.BindInt(1, result_id);
  update.BindInt(2, m.runs());
  update.BindInt(3, m.noisy() ? 1 : 0);
  int parameter = 4;
  for (const double value : {m.load_us(), m.first_us(), m.min_us(), m.mean_us(),
                             m.mad_us(), m.p90_us(), m.p99_us(), m.max_us()}) {
    // SQLite keeps NaN as NULL, which no column may be.
    update.BindDouble(parameter++, value == value ? value : 0);
  }
  update.BindInt(12, m.peak_memory_bytes());
  update.BindInt(13, m.file_size_bytes());
  update.BindText(14, m.before().build_version());
  update.BindText(15, m.before().cpu_model());
  update.BindText(16, m.before().governor());
  update.BindText(17, m.before().os());
  update.BindText(18, m.before().kernel());
  return update.Run();
}

}  // namespace

absl::Status CompleteMeasurementsOfVersion2(SqliteDatabase& db) {
  static constexpr char kAll[] =
      "SELECT result_id, measurement_proto FROM measurements";
  constexpr SelectColumns kRow(kAll);
  SqlStatement query = db.Prepare(kAll);
  while (query.Step()) {
    const int64_t result_id = query.Int(kRow["result_id"]);
    v1::Measurement measurement;
    if (!measurement.ParseFromString(query.Text(kRow["measurement_proto"]))) {
      return absl::DataLossError(
          absl::StrCat("result ", result_id,
                       " is damaged; restore the database from a backup"));
    }
    OPTFARM_RETURN_IF_ERROR(Complete(db, result_id, measurement));
  }
  return query.status();
}

}  // namespace optfarm::storage
