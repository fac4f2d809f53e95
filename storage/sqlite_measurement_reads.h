// The questions about measurements, with the meaning and the errors of the
// MetadataStore methods of the same names. `memory`, which may be null, says
// what `db` says.

#ifndef OPTFARM_STORAGE_SQLITE_MEASUREMENT_READS_H_
#define OPTFARM_STORAGE_SQLITE_MEASUREMENT_READS_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "storage/metadata_store.h"
#include "storage/series_memory.h"
#include "storage/sqlite_database.h"

namespace optfarm::storage::sqlite {

absl::StatusOr<std::vector<MeasurementRecord>> QueryMeasurements(
    SqliteDatabase& db, const SeriesMemory* memory,
    const MeasurementFilter& filter, const PageRequest& page);
absl::StatusOr<std::vector<MeasurementRecord>> GetMeasurements(
    SqliteDatabase& db, absl::Span<const int64_t> result_ids);
absl::StatusOr<SeriesList> ListSeries(SqliteDatabase& db,
                                      const SeriesMemory* memory,
                                      const MeasurementFilter& filter,
                                      const SeriesRequest& request);
absl::Status AddDetails(SqliteDatabase& db,
                        absl::Span<PointRecord* const> points);

}  // namespace optfarm::storage::sqlite

#endif  // OPTFARM_STORAGE_SQLITE_MEASUREMENT_READS_H_
