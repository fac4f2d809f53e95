// How rows of the tables `series` and `measurements` are read where results are
// looked for: the columns that are selected, and the one reader of each.

#ifndef OPTFARM_STORAGE_SQL_RESULT_ROWS_H_
#define OPTFARM_STORAGE_SQL_RESULT_ROWS_H_

#include <array>
#include <cstdint>
#include <limits>

#include "storage/records.h"
#include "storage/sql/database.h"

namespace optfarm::storage::sql {

// least <= number <= most.
struct NumberRange {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
};
// Of median, p90, peak memory and file size.
using NumberRanges = std::array<NumberRange, 4>;

// How a statement begins whose rows the next three functions read; conditions
// follow.
#define OPTFARM_SELECT_SERIES                                            \
  "SELECT series_id, last_result_id, results, model_name, recipe_name,"  \
  " device, variant, threads, project, least_median_us, most_median_us," \
  " least_p90_us, most_p90_us, least_peak_memory_bytes,"                 \
  " most_peak_memory_bytes, least_file_size_bytes, most_file_size_bytes" \
  " FROM series"

struct SeriesNumbers {
  int64_t series_id = 0;
  int64_t last_result_id = 0;
  // How many it has.
  int64_t results = 0;
};
SeriesNumbers ReadSeriesNumbers(const SqlStatement& row);
SeriesKey ReadSeriesKey(const SqlStatement& row);
// At least those of its results.
NumberRanges ReadSeriesBounds(const SqlStatement& row);

// How a statement begins whose rows the next two functions read; a source with
// the table `measurements AS m` follows.
#define OPTFARM_SELECT_POINTS                                           \
  "SELECT m.result_id, m.median_us, m.p90_us, m.peak_memory_bytes,"     \
  " m.file_size_bytes, m.noisy, m.model_id, m.measured_id, m.series_id" \
  " FROM "

PointNumbers ReadPointNumbers(const SqlStatement& row);

// The numbers of rows that a measurement points at.
struct PointPlaces {
  int64_t series_id = 0;
  // Graphs: the job's model, and what was measured.
  int64_t model_id = 0;
  int64_t measured_id = 0;
};
PointPlaces ReadPointPlaces(const SqlStatement& row);

}  // namespace optfarm::storage::sql

#endif  // OPTFARM_STORAGE_SQL_RESULT_ROWS_H_
