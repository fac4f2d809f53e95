// Following a job to its end over a connection that may break: every break
// goes on from the last event seen.

#ifndef OPTFARM_CLIENT_CLI_JOBS_JOB_FOLLOW_H_
#define OPTFARM_CLIENT_CLI_JOBS_JOB_FOLLOW_H_

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "client_cli/command/farm_client.h"
#include "optfarm/v1/jobs.pb.h"

namespace optfarm::client_cli {

struct FollowOptions {
  // The last event that need not be told again.
  int64_t after_sequence = 0;
  // Leave log lines out.
  bool no_logs = true;
  // Longest wait for the job's end.
  absl::Duration timeout = absl::InfiniteDuration();
  // Longest time without an answer of the server before we give up.
  absl::Duration patience = absl::Minutes(10);
  // Each event once, in order; may be null.
  std::function<void(const v1::JobEvent&)> on_event;
  // Before each pause that a lost connection causes; may be null.
  std::function<void(const absl::Status&)> on_lost;
  // OWNERSHIP: must outlive the call.
  Clock* clock = RealClock();
};

// Returns the job when it has ended, succeeded or not.
// ERRORS: marked kTimeout when options.timeout passed (the job goes on); marked
// kUnavailable when the server was away for options.patience; the server's
// otherwise (NotFound).
absl::StatusOr<v1::Job> FollowJob(FarmClient* client, const std::string& job_id,
                                  const FollowOptions& options);

// Says on `err` that no worker is connected, where that is so: a job waits
// until one is. Nothing where the server does not say.
void RemarkOnWorkers(FarmClient& client, std::ostream& err);

// What to print when somebody stops following: "Job ... goes on; ...".
std::string GoesOnText(const std::string& job_id);

// SUCCEEDED, FAILED or CANCELLED.
bool HasEnded(v1::JobState state);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_JOBS_JOB_FOLLOW_H_
