// The questions about measurements, with the meaning and the errors of the
// MetadataStore methods of the same names. `memory`, which may be null, says
// what `db` says.

#ifndef OPTFARM_STORAGE_SQL_MEASUREMENT_READS_H_
#define OPTFARM_STORAGE_SQL_MEASUREMENT_READS_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "storage/metadata_store.h"
#include "storage/sql/database.h"
#include "storage/sql/series_memory.h"

namespace optfarm::storage::sql {

absl::StatusOr<std::vector<MeasurementRecord>> QueryMeasurements(
    SqlDatabase& db, const SeriesMemory* memory,
    const MeasurementFilter& filter, const PageRequest& page);
absl::StatusOr<std::vector<MeasurementRecord>> GetMeasurements(
    SqlDatabase& db, absl::Span<const int64_t> result_ids);
absl::StatusOr<SeriesList> ListSeries(SqlDatabase& db,
                                      const SeriesMemory* memory,
                                      const MeasurementFilter& filter,
                                      const SeriesRequest& request);
absl::Status AddDetails(SqlDatabase& db, absl::Span<PointRecord* const> points);

}  // namespace optfarm::storage::sql

#endif  // OPTFARM_STORAGE_SQL_MEASUREMENT_READS_H_
