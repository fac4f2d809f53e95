#include "storage/postgres/migrate_artifacts.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "optfarm/v1/jobs.pb.h"

namespace optfarm::storage {
namespace {

// $2 as many tasks at once.
constexpr char kSome[] =
    "SELECT task_id, project, details_proto FROM tasks"
    " JOIN jobs USING (job_id) WHERE task_id > $1"
    " AND LENGTH(details_proto) > 0 ORDER BY task_id LIMIT $2";
constexpr int kAtOnce = 1000;
constexpr char kCount[] =
    "INSERT INTO project_blobs (project, sha256, size_bytes, made)"
    " VALUES ($1, $2, $3, 1) ON CONFLICT DO NOTHING";
constexpr absl::Duration kLongest = absl::Hours(24);

absl::StatusOr<std::vector<PostgresRequest>> CountsOf(
    const PostgresResult& rows) {
  std::vector<PostgresRequest> counts;
  for (int row = 0; row < rows.rows(); ++row) {
    v1::Task details;
    if (!details.ParseFromString(rows.Text(row, 2))) {
      return absl::DataLossError(
          absl::StrCat("task ", rows.Text(row, 0),
                       " is damaged; restore the database from a backup"));
    }
    for (const v1::Artifact& artifact : details.artifacts()) {
      counts.push_back(
          {kCount,
           {PostgresParameter::Text(rows.Text(row, 1)),
            PostgresParameter::Text(artifact.digest().sha256()),
            PostgresParameter::Int(artifact.digest().size_bytes())}});
    }
  }
  return counts;
}

}  // namespace

absl::Status CountArtifactsOfVersion6(PostgresConnection& connection) {
  std::string after;
  while (true) {
    OPTFARM_ASSIGN_OR_RETURN(const PostgresResult rows,
                             connection.Query(kSome,
                                              {PostgresParameter::Text(after),
                                               PostgresParameter::Int(kAtOnce)},
                                              kLongest));
    if (rows.rows() == 0) return absl::OkStatus();
    after = rows.Text(rows.rows() - 1, 0);
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<PostgresRequest> counts,
                             CountsOf(rows));
    if (counts.empty()) continue;
    OPTFARM_RETURN_IF_ERROR(connection.QueryAll(counts, kLongest).status());
  }
}

}  // namespace optfarm::storage
