#include "storage/sqlite/migrate_artifacts.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "optfarm/v1/jobs.pb.h"
#include "storage/sql/select_columns.h"

namespace optfarm::storage {
namespace {

absl::Status Count(SqliteDatabase& db, const std::string& project,
                   const v1::Digest& digest) {
  SqlStatement insert = db.Prepare(
      "INSERT INTO project_blobs (project, sha256, size_bytes, made)"
      " VALUES (?1, ?2, ?3, 1) ON CONFLICT DO NOTHING");
  insert.BindText(1, project);
  insert.BindText(2, digest.sha256());
  insert.BindInt(3, digest.size_bytes());
  return insert.Run();
}

}  // namespace

absl::Status CountArtifactsOfVersion14(SqliteDatabase& db) {
  static constexpr char kAll[] =
      "SELECT task_id, project, details_proto FROM tasks"
      " CROSS JOIN jobs USING (job_id) WHERE LENGTH(details_proto) > 0";
  constexpr SelectColumns kRow(kAll);
  SqlStatement query = db.Prepare(kAll);
  while (query.Step()) {
    v1::Task details;
    if (!details.ParseFromString(query.Text(kRow["details_proto"]))) {
      return absl::DataLossError(
          absl::StrCat("task ", query.Text(kRow["task_id"]),
                       " is damaged; restore the database from a backup"));
    }
    for (const v1::Artifact& artifact : details.artifacts()) {
      OPTFARM_RETURN_IF_ERROR(
          Count(db, query.Text(kRow["project"]), artifact.digest()));
    }
  }
  return query.status();
}

}  // namespace optfarm::storage
