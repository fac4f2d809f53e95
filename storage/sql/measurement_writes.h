// How a measurement is written: its series, graphs and environment are looked
// up or added, and its samples are kept apart, compressed.

#ifndef OPTFARM_STORAGE_SQL_MEASUREMENT_WRITES_H_
#define OPTFARM_STORAGE_SQL_MEASUREMENT_WRITES_H_

#include "absl/status/status.h"
#include "storage/records.h"
#include "storage/sql/database.h"
#include "storage/sql/result_places.h"

namespace optfarm::storage {

// REQUIRES: a writing transaction is open; `record.project` is that of the job,
// or empty, which takes longer. `record.tags` and `record.result_id` are not
// looked at: the job's tags count, and the id is given here.
// ERRORS: those of SqlDatabase.
absl::Status InsertMeasurement(SqlDatabase& db, const MeasurementRecord& record,
                               ResultPlaces& places);

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_SQL_MEASUREMENT_WRITES_H_
