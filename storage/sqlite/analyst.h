// Questions in SQL from people, answered on a connection that cannot write, by
// tables that hold results, within bounds on time and size.

#ifndef OPTFARM_STORAGE_SQLITE_ANALYST_H_
#define OPTFARM_STORAGE_SQLITE_ANALYST_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "optfarm/v1/store.pb.h"

namespace optfarm::storage {

struct SqlLimits {
  int max_rows = 1000;
  absl::Duration max_time = absl::Seconds(5);
  // UNITS: bytes of one answer.
  size_t max_bytes = size_t{3} << 20;
};

// Runs one SELECT on the database at `path`. Tables and views that may be read:
// results, measurements, series, graphs, environments, result_tags, job_tags,
// devices and schema_version; of jobs, its plain columns.
// The answer's texts are as the database has them, perhaps not UTF-8.
// ERRORS: InvalidArgument for anything but one SELECT of these, with SQLite's
// message; DeadlineExceeded; ResourceExhausted when the first row is larger
// than an answer may be, or a value larger than a megabyte.
absl::StatusOr<v1::QuerySqlResponse> RunReadOnlySql(const std::string& path,
                                                    const std::string& sql,
                                                    const SqlLimits& limits);

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_SQLITE_ANALYST_H_
