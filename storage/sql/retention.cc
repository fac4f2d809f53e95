#include "storage/sql/retention.h"

#include <string>
#include <vector>

#include "base/status_macros.h"
#include "storage/sql/blob_owners.h"
#include "storage/sql/result_query.h"
#include "storage/sql/select_columns.h"

namespace optfarm::storage::sql {
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
constexpr char kEndedJobs[] =
    "SELECT end_time, job_number, job_id FROM jobs INDEXED BY jobs_by_end"
    " WHERE end_time >= ?1 AND (end_time > ?1 OR job_number > ?2)"
    " AND end_time < ?3 AND state IN (3, 4, 5)"
    " ORDER BY end_time, job_number LIMIT ?4";
constexpr char kLogsOfJob[] =
    "DELETE FROM events WHERE job_id = ?1 AND sequence IN"
    " (SELECT sequence FROM events INDEXED BY events_with_logs"
    "  WHERE job_id = ?1 AND is_log = 1 LIMIT ?2)";
constexpr char kOldJobs[] =
    "SELECT job_id FROM jobs AS old INDEXED BY jobs_by_end"
    " WHERE end_time < ?1 AND state IN (3, 4, 5)"
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

absl::Status DeleteJob(SqlDatabase& db, const std::string& job_id) {
  OPTFARM_RETURN_IF_ERROR(GiveBackWhatJobMade(db, job_id));
  for (const char* sql : kPartsOfJob) {
    SqlStatement part = db.Prepare(sql);
    part.BindText(1, job_id);
    OPTFARM_RETURN_IF_ERROR(part.Run());
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> DeleteJobs(SqlDatabase& db, absl::Time before,
                                   int max_jobs) {
  if (before == absl::InfinitePast()) return 0;
  std::vector<std::string> jobs;
  {
    SqlStatement query = db.Prepare(kOldJobs);
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

absl::StatusOr<int64_t> DeleteSamples(SqlDatabase& db, absl::Time before,
                                      int max_rows) {
  if (before == absl::InfinitePast()) return 0;
  OPTFARM_ASSIGN_OR_RETURN(const int64_t end, FirstResultAt(db, before));
  SqlStatement statement = db.Prepare(kOldSamples);
  statement.BindInt(1, end);
  statement.BindInt(2, max_rows);
  OPTFARM_RETURN_IF_ERROR(statement.Run());
  return db.Changes();
}

struct NamedJob {
  EndedJob place;
  std::string job_id;
};

NamedJob ReadEndedJob(const SqlStatement& row) {
  constexpr SelectColumns kJob(kEndedJobs);
  return {{row.Int(kJob["end_time"]), row.Int(kJob["job_number"])},
          row.Text(kJob["job_id"])};
}

absl::StatusOr<std::vector<NamedJob>> JobsAfter(const EndedJob& place,
                                                SqlDatabase& db,
                                                const RetentionPolicy& policy) {
  SqlStatement query = db.Prepare(kEndedJobs);
  query.BindInt(1, place.end_time);
  query.BindInt(2, place.number);
  query.BindTime(3, policy.logs_before);
  query.BindInt(4, policy.max_rows);
  std::vector<NamedJob> jobs;
  while (query.Step()) jobs.push_back(ReadEndedJob(query));
  OPTFARM_RETURN_IF_ERROR(query.status());
  return jobs;
}

// Most jobs that ended long ago have no logs any more: they are gone through
// once, as many in a call as rows may be deleted in it.
absl::Status DeleteLogs(SqlDatabase& db, const RetentionPolicy& policy,
                        EndedJob& gone, RetentionCounts& counts) {
  if (policy.logs_before == absl::InfinitePast()) return absl::OkStatus();
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<NamedJob> jobs,
                           JobsAfter(gone, db, policy));
  for (const NamedJob& job : jobs) {
    SqlStatement statement = db.Prepare(kLogsOfJob);
    statement.BindText(1, job.job_id);
    statement.BindInt(2, policy.max_rows - counts.logs);
    OPTFARM_RETURN_IF_ERROR(statement.Run());
    counts.logs += db.Changes();
    if (counts.logs == policy.max_rows) {
      counts.more = true;
      return absl::OkStatus();
    }
    gone = job.place;
  }
  counts.more = static_cast<int>(jobs.size()) == policy.max_rows;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RetentionCounts> Prune(SqlDatabase& db,
                                      const RetentionPolicy& policy,
                                      EndedJob& logs_gone) {
  RetentionCounts counts;
  const int max_jobs = policy.max_rows / kRowsAJob + 1;
  OPTFARM_ASSIGN_OR_RETURN(counts.jobs,
                           DeleteJobs(db, policy.jobs_before, max_jobs));
  OPTFARM_RETURN_IF_ERROR(DeleteLogs(db, policy, logs_gone, counts));
  OPTFARM_ASSIGN_OR_RETURN(
      counts.samples,
      DeleteSamples(db, policy.samples_before, policy.max_rows));
  counts.more |= counts.jobs == max_jobs || counts.samples == policy.max_rows;
  return counts;
}

}  // namespace optfarm::storage::sql
