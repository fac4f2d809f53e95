// What a job ends with, on the screen or as JSON or CSV: the results table,
// then gates, warnings and where the files are.

#ifndef OPTFARM_CLIENT_CLI_JOBS_JOB_OUTCOME_H_
#define OPTFARM_CLIENT_CLI_JOBS_JOB_OUTCOME_H_

#include <string>
#include <vector>

#include "client_cli/command/command.h"
#include "client_cli/tables/results_table.h"

namespace optfarm::v1 {
class Failure;
class Job;
}  // namespace optfarm::v1

namespace optfarm::client_cli {

// OWNERSHIP: the pointers must outlive the calls below.
struct JobOutcome {
  // Empty for `optctl run`.
  std::string job_id;
  // "SUCCEEDED", "FAILED" or "CANCELLED".
  std::string state;
  // Null: none.
  const v1::Failure* failure = nullptr;
  JobResults results;
  // A remark about where the numbers come from; "" for none.
  std::string remark;
  // Lines that say where the files are.
  std::vector<std::string> where;

  bool succeeded() const { return state == "SUCCEEDED"; }
};

// The outcome of a job that the server says has ended.
JobOutcome OutcomeOf(const v1::Job& job);

// The outcome in the context's format. Returns kOk for SUCCEEDED, else
// kJobFailed.
ExitCode PrintOutcome(const JobOutcome& outcome, const CommandContext& context);

// The text form; `color` marks the state.
std::string OutcomeText(const JobOutcome& outcome, bool color);

// {"job_id", "state", "failure", "rows", "gates", "warnings", "report"}.
std::string OutcomeJson(const JobOutcome& outcome);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_JOBS_JOB_OUTCOME_H_
