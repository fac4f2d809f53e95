#include "storage/sqlite_retention.h"

#include <string>
#include <vector>

#include "base/status_macros.h"
#include "storage/sqlite_result_query.h"

namespace optfarm::storage::sqlite {
namespace {

// Roughly: a job is many rows.
constexpr int kRowsAJob = 50;

// States 3, 4 and 5 are SUCCEEDED, FAILED and CANCELLED. Everything of a live
// job stays, and so do jobs whose outcome a live job took over.
constexpr char kOldSamples[] =
    "DELETE FROM samples WHERE result_id IN"
    " (SELECT samples.result_id FROM samples"
    "  CROSS JOIN measurements USING (result_id) CROSS JOIN jobs USING (job_id)"
    "  WHERE samples.result_id < ?1 AND state IN (3, 4, 5)"
    "  ORDER BY samples.result_id LIMIT ?2)";
constexpr char kOldLogs[] =
    "DELETE FROM events WHERE rowid IN"
    " (SELECT events.rowid FROM events CROSS JOIN jobs USING (job_id)"
    "  WHERE is_log = 1 AND end_time < ?1 AND state IN (3, 4, 5) LIMIT ?2)";
constexpr char kOldJobs[] =
    "SELECT job_id FROM jobs AS old WHERE end_time < ?1 AND state IN (3, 4, 5)"
    " AND NOT EXISTS (SELECT 1 FROM jobs AS live WHERE live.state IN (1, 2)"
    "  AND live.cached_from_job_id = old.job_id)"
    " ORDER BY end_time LIMIT ?2";

// In the order that references allow.
constexpr const char* kPartsOfJob[] = {
    "DELETE FROM samples WHERE result_id IN"
    " (SELECT result_id FROM measurements WHERE job_id = ?1)",
    "DELETE FROM result_tags WHERE result_id IN"
    " (SELECT result_id FROM measurements WHERE job_id = ?1)",
    "DELETE FROM measurements WHERE job_id = ?1",
    "DELETE FROM attempts WHERE task_id IN"
    " (SELECT task_id FROM tasks WHERE job_id = ?1)",
    "DELETE FROM tasks WHERE job_id = ?1",
    "DELETE FROM events WHERE job_id = ?1",
    "DELETE FROM job_blobs WHERE job_id = ?1",
    "DELETE FROM job_tags WHERE job_id = ?1",
    "DELETE FROM reports WHERE job_id = ?1",
    "DELETE FROM action_cache WHERE job_id = ?1",
    "DELETE FROM jobs WHERE job_id = ?1",
};

absl::Status DeleteJob(SqliteDatabase& db, const std::string& job_id) {
  for (const char* sql : kPartsOfJob) {
    SqliteStatement part = db.Prepare(sql);
    part.BindText(1, job_id);
    OPTFARM_RETURN_IF_ERROR(part.Run());
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> DeleteJobs(SqliteDatabase& db, absl::Time before,
                                   int max_jobs) {
  if (before == absl::InfinitePast()) return 0;
  std::vector<std::string> jobs;
  {
    SqliteStatement query = db.Prepare(kOldJobs);
    query.BindTime(1, before);
    query.BindInt(2, max_jobs);
    while (query.Step()) jobs.push_back(query.Text(0));
    OPTFARM_RETURN_IF_ERROR(query.status());
  }
  for (const std::string& job_id : jobs) {
    OPTFARM_RETURN_IF_ERROR(DeleteJob(db, job_id));
  }
  return static_cast<int64_t>(jobs.size());
}

absl::StatusOr<int64_t> DeleteSamples(SqliteDatabase& db, absl::Time before,
                                      int max_rows) {
  if (before == absl::InfinitePast()) return 0;
  OPTFARM_ASSIGN_OR_RETURN(const int64_t end, FirstResultAt(db, before));
  SqliteStatement statement = db.Prepare(kOldSamples);
  statement.BindInt(1, end);
  statement.BindInt(2, max_rows);
  OPTFARM_RETURN_IF_ERROR(statement.Run());
  return db.Changes();
}

absl::StatusOr<int64_t> DeleteLogs(SqliteDatabase& db, absl::Time before,
                                   int max_rows) {
  if (before == absl::InfinitePast()) return 0;
  SqliteStatement statement = db.Prepare(kOldLogs);
  statement.BindTime(1, before);
  statement.BindInt(2, max_rows);
  OPTFARM_RETURN_IF_ERROR(statement.Run());
  return db.Changes();
}

}  // namespace

absl::StatusOr<RetentionCounts> Prune(SqliteDatabase& db,
                                      const RetentionPolicy& policy) {
  RetentionCounts counts;
  const int max_jobs = policy.max_rows / kRowsAJob + 1;
  OPTFARM_ASSIGN_OR_RETURN(counts.jobs,
                           DeleteJobs(db, policy.jobs_before, max_jobs));
  OPTFARM_ASSIGN_OR_RETURN(counts.logs,
                           DeleteLogs(db, policy.logs_before, policy.max_rows));
  OPTFARM_ASSIGN_OR_RETURN(
      counts.samples,
      DeleteSamples(db, policy.samples_before, policy.max_rows));
  counts.more = counts.jobs == max_jobs || counts.logs == policy.max_rows ||
                counts.samples == policy.max_rows;
  return counts;
}

}  // namespace optfarm::storage::sqlite
