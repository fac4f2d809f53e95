// Which jobs a list shows: the question in one text for each set of filters.
// With all filters in one text, each switched off by a NULL, SQLite has to plan
// for having none, and reads every job there ever was.

#ifndef OPTFARM_STORAGE_SQL_JOB_QUERY_H_
#define OPTFARM_STORAGE_SQL_JOB_QUERY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "storage/metadata_store.h"
#include "storage/sql/database.h"

namespace optfarm::storage::sql {

// Numbers of the jobs like `filter` that the page has, newest first.
absl::StatusOr<std::vector<int64_t>> FindJobs(SqlDatabase& db,
                                              const JobFilter& filter,
                                              const PageRequest& page);

// All texts of the question, for tests of how they are answered: the first one
// has no filter.
absl::Span<const std::string> AllJobQueries();

}  // namespace optfarm::storage::sql

#endif  // OPTFARM_STORAGE_SQL_JOB_QUERY_H_
