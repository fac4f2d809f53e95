#include "storage/sql/blob_owners.h"

#include <cstdint>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "optfarm/v1/jobs.pb.h"
#include "storage/sql/select_columns.h"

namespace optfarm::storage::sql {
namespace {

constexpr char kPage[] =
    "SELECT sha256, size_bytes FROM project_blobs WHERE project = ?1"
    " AND (size_bytes, sha256) < (?2, ?3)"
    " ORDER BY size_bytes DESC, sha256 DESC LIMIT ?4";

// QUEUED = 1, RUNNING = 2.
constexpr char kUsesOfPage[] =
    "SELECT sha256, job_number, job_id, is_live, model_sha256, model_name,"
    " jobs, live_jobs FROM"
    " (SELECT p.sha256, j.job_number, j.job_id, j.model_sha256, j.model_name,"
    "   CASE WHEN j.state IN (1, 2) THEN 1 ELSE 0 END AS is_live,"
    "   ROW_NUMBER() OVER"
    "    (PARTITION BY p.sha256 ORDER BY j.job_number DESC) AS place,"
    "   COUNT(*) OVER (PARTITION BY p.sha256) AS jobs,"
    "   SUM(CASE WHEN j.state IN (1, 2) THEN 1 ELSE 0 END)"
    "    OVER (PARTITION BY p.sha256) AS live_jobs"
    "  FROM project_blobs AS p"
    "  JOIN job_blobs AS b ON b.sha256 = p.sha256"
    "  JOIN jobs AS j ON j.job_id = b.job_id AND j.project = p.project"
    "  WHERE p.project = ?1 AND (p.size_bytes, p.sha256) <= (?2, ?3)"
    "   AND (p.size_bytes, p.sha256) >= (?4, ?5)) AS ranked"
    " WHERE place <= ?6 ORDER BY sha256, place";

constexpr char kDetailsOfTheseJobs[] =
    "SELECT job_id, details_proto FROM tasks WHERE job_id IN"
    " (SELECT job_id FROM jobs"
    "  WHERE job_number IN (SELECT value FROM json_each(?1)))";

constexpr char kNewestLiveUser[] =
    "SELECT job_id FROM job_blobs CROSS JOIN jobs USING (job_id)"
    " WHERE sha256 = ?2 AND project = ?1 AND state IN (1, 2)"
    " ORDER BY job_number DESC LIMIT 1";

constexpr char kRemoved[] =
    "SELECT sha256, CASE WHEN EXISTS (SELECT 1 FROM project_blobs"
    "   WHERE project_blobs.sha256 = removed_blobs.sha256)"
    "  OR EXISTS (SELECT 1 FROM job_blobs"
    "   WHERE job_blobs.sha256 = removed_blobs.sha256)"
    "  THEN 1 ELSE 0 END AS has_owner"
    " FROM removed_blobs WHERE sha256 > ?1 ORDER BY sha256 LIMIT ?2";

// Names of artifacts by job and SHA-256.
using ArtifactNames =
    absl::flat_hash_map<std::pair<std::string, std::string>, std::string>;

absl::StatusOr<std::vector<ProjectBlobRecord>> ReadPage(
    SqlDatabase& db, const std::string& project, const BlobPageRequest& page) {
  constexpr SelectColumns kBlob(kPage);
  const bool first = page.after.sha256.empty();
  SqlStatement query = db.Prepare(kPage);
  query.BindText(1, project);
  query.BindInt(
      2, first ? std::numeric_limits<int64_t>::max() : page.after.size_bytes);
  query.BindText(3, page.after.sha256);
  query.BindInt(4, page.limit);
  std::vector<ProjectBlobRecord> blobs;
  while (query.Step()) {
    BlobId& id = blobs.emplace_back().id;
    id.sha256 = query.Text(kBlob["sha256"]);
    id.size_bytes = query.Int(kBlob["size_bytes"]);
  }
  OPTFARM_RETURN_IF_ERROR(query.status());
  return blobs;
}

// Fills in all but names of artifacts, and returns the numbers of the jobs.
absl::StatusOr<std::vector<int64_t>> ReadUses(
    SqlDatabase& db, const std::string& project,
    std::vector<ProjectBlobRecord>& blobs) {
  constexpr SelectColumns kUse(kUsesOfPage);
  absl::flat_hash_map<std::string, ProjectBlobRecord*> by_name;
  for (ProjectBlobRecord& blob : blobs) by_name[blob.id.sha256] = &blob;
  SqlStatement query = db.Prepare(kUsesOfPage);
  query.BindText(1, project);
  query.BindInt(2, blobs.front().id.size_bytes);
  query.BindText(3, blobs.front().id.sha256);
  query.BindInt(4, blobs.back().id.size_bytes);
  query.BindText(5, blobs.back().id.sha256);
  query.BindInt(6, kBlobUses);
  std::vector<int64_t> jobs;
  while (query.Step()) {
    const auto found = by_name.find(query.Text(kUse["sha256"]));
    if (found == by_name.end()) continue;
    ProjectBlobRecord& blob = *found->second;
    blob.jobs = static_cast<int>(query.Int(kUse["jobs"]));
    blob.live_jobs = static_cast<int>(query.Int(kUse["live_jobs"]));
    BlobUseRecord& use = blob.uses.emplace_back();
    use.job_id = query.Text(kUse["job_id"]);
    use.live = query.Int(kUse["is_live"]) != 0;
    if (query.Text(kUse["model_sha256"]) == blob.id.sha256) {
      use.kind = BlobUseRecord::Kind::kModel;
      use.name = query.Text(kUse["model_name"]);
    }
    jobs.push_back(query.Int(kUse["job_number"]));
  }
  OPTFARM_RETURN_IF_ERROR(query.status());
  return jobs;
}

absl::StatusOr<ArtifactNames> ReadArtifactNames(
    SqlDatabase& db, absl::Span<const int64_t> jobs) {
  constexpr SelectColumns kTask(kDetailsOfTheseJobs);
  ArtifactNames names;
  SqlStatement query = db.Prepare(kDetailsOfTheseJobs);
  query.BindInts(1, jobs);
  while (query.Step()) {
    const std::string job_id = query.Text(kTask["job_id"]);
    v1::Task details;
    if (!details.ParseFromString(query.Text(kTask["details_proto"]))) {
      return absl::DataLossError(
          absl::StrCat("the database holds a damaged task of job ", job_id,
                       "; restore it from a backup"));
    }
    for (const v1::Artifact& artifact : details.artifacts()) {
      names.try_emplace({job_id, artifact.digest().sha256()}, artifact.name());
    }
  }
  OPTFARM_RETURN_IF_ERROR(query.status());
  return names;
}

absl::StatusOr<bool> HasOwner(SqlDatabase& db, const std::string& sha256) {
  SqlStatement query = db.Prepare(
      "SELECT 1 FROM project_blobs WHERE sha256 = ?1"
      " UNION ALL SELECT 1 FROM job_blobs WHERE sha256 = ?1 LIMIT 1");
  query.BindText(1, sha256);
  const bool has_owner = query.Step();
  OPTFARM_RETURN_IF_ERROR(query.status());
  return has_owner;
}

// Runs a statement for each, bound as ?1.
absl::Status RunForEach(SqlDatabase& db, const char* sql,
                        absl::Span<const std::string> values) {
  for (const std::string& value : values) {
    SqlStatement statement = db.Prepare(sql);
    statement.BindText(1, value);
    OPTFARM_RETURN_IF_ERROR(statement.RunLater());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<ProjectBlobRecord>> ListProjectBlobs(
    SqlDatabase& db, const std::string& project, const BlobPageRequest& page) {
  OPTFARM_ASSIGN_OR_RETURN(std::vector<ProjectBlobRecord> blobs,
                           ReadPage(db, project, page));
  if (blobs.empty()) return blobs;
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> jobs,
                           ReadUses(db, project, blobs));
  if (jobs.empty()) return blobs;
  OPTFARM_ASSIGN_OR_RETURN(const ArtifactNames names,
                           ReadArtifactNames(db, jobs));
  for (ProjectBlobRecord& blob : blobs) {
    for (BlobUseRecord& use : blob.uses) {
      const auto made = names.find({use.job_id, blob.id.sha256});
      if (use.kind == BlobUseRecord::Kind::kModel || made == names.end()) {
        continue;
      }
      use.kind = BlobUseRecord::Kind::kArtifact;
      use.name = made->second;
    }
  }
  return blobs;
}

absl::StatusOr<BlobRemoval> RemoveProjectBlob(SqlDatabase& db,
                                              const std::string& project,
                                              const std::string& sha256) {
  BlobRemoval removal;
  {
    SqlStatement live = db.Prepare(kNewestLiveUser);
    live.BindText(1, project);
    live.BindText(2, sha256);
    if (live.Step()) {
      removal.outcome = BlobRemoval::Outcome::kNeeded;
      removal.job_id = live.Text(0);
      return removal;
    }
    OPTFARM_RETURN_IF_ERROR(live.status());
  }
  {
    SqlStatement query = db.Prepare(
        "SELECT size_bytes FROM project_blobs"
        " WHERE project = ?1 AND sha256 = ?2");
    query.BindText(1, project);
    query.BindText(2, sha256);
    if (query.Step()) {
      removal.outcome = BlobRemoval::Outcome::kRemoved;
      removal.given_back_bytes = query.Int(0);
    }
    OPTFARM_RETURN_IF_ERROR(query.status());
  }
  if (removal.outcome == BlobRemoval::Outcome::kNotThere) return removal;
  for (const char* sql :
       {"DELETE FROM project_blobs WHERE project = ?1 AND sha256 = ?2",
        "DELETE FROM job_blobs WHERE sha256 = ?2 AND job_id IN"
        " (SELECT job_id FROM jobs WHERE project = ?1"
        "  AND jobs.job_id = job_blobs.job_id)"}) {
    SqlStatement statement = db.Prepare(sql);
    statement.BindText(1, project);
    statement.BindText(2, sha256);
    OPTFARM_RETURN_IF_ERROR(statement.Run());
  }
  SqlStatement note = db.Prepare(
      "INSERT INTO removed_blobs (sha256) VALUES (?1) ON CONFLICT DO NOTHING");
  note.BindText(1, sha256);
  OPTFARM_RETURN_IF_ERROR(note.Run());
  OPTFARM_ASSIGN_OR_RETURN(const bool has_owner, HasOwner(db, sha256));
  removal.is_orphan = !has_owner;
  return removal;
}

absl::Status GiveBackBlobs(SqlDatabase& db,
                           absl::Span<const std::string> sha256) {
  return RunForEach(db, "DELETE FROM project_blobs WHERE sha256 = ?1", sha256);
}

absl::StatusOr<std::vector<RemovedBlob>> ListRemovedBlobs(
    SqlDatabase& db, const std::string& after, int limit) {
  constexpr SelectColumns kBlob(kRemoved);
  SqlStatement query = db.Prepare(kRemoved);
  query.BindText(1, after);
  query.BindInt(2, limit);
  std::vector<RemovedBlob> blobs;
  while (query.Step()) {
    blobs.push_back(
        {query.Text(kBlob["sha256"]), query.Int(kBlob["has_owner"]) != 0});
  }
  OPTFARM_RETURN_IF_ERROR(query.status());
  return blobs;
}

absl::Status ForgetRemovedBlobs(SqlDatabase& db,
                                absl::Span<const std::string> sha256) {
  return RunForEach(db, "DELETE FROM removed_blobs WHERE sha256 = ?1", sha256);
}

absl::Status GiveBackWhatJobMade(SqlDatabase& db, const std::string& job_id) {
  // Rows of `project_blobs` that only this job accounts for.
#define OPTFARM_MADE_BY_IT_ALONE                                         \
  " made = 1 AND project = (SELECT project FROM jobs WHERE job_id = ?1)" \
  " AND sha256 IN (SELECT sha256 FROM job_blobs WHERE job_id = ?1)"      \
  " AND NOT EXISTS (SELECT 1 FROM job_blobs AS others"                   \
  "  JOIN jobs AS j ON j.job_id = others.job_id"                         \
  "  WHERE others.sha256 = project_blobs.sha256 AND others.job_id <> ?1" \
  "  AND j.project = project_blobs.project)"
  for (const char* sql :
       {"INSERT INTO removed_blobs (sha256) SELECT sha256 FROM project_blobs"
        " WHERE" OPTFARM_MADE_BY_IT_ALONE " ON CONFLICT DO NOTHING",
        "DELETE FROM project_blobs WHERE" OPTFARM_MADE_BY_IT_ALONE}) {
    SqlStatement statement = db.Prepare(sql);
    statement.BindText(1, job_id);
    OPTFARM_RETURN_IF_ERROR(statement.Run());
  }
#undef OPTFARM_MADE_BY_IT_ALONE
  return absl::OkStatus();
}

}  // namespace optfarm::storage::sql
