// What a job ends with, on the screen or as JSON or CSV: the results table,
// then gates, warnings and where the files are.

#ifndef OPTFARM_CLIENT_CLI_JOBS_JOB_OUTCOME_H_
#define OPTFARM_CLIENT_CLI_JOBS_JOB_OUTCOME_H_

#include <string>
#include <vector>

#include "client_cli/command/command.h"
#include "optfarm/v1/jobs.pb.h"

namespace optfarm::client_cli {

struct JobOutcome {
  // Ended, with its verdicts; that of `optctl run` has no id.
  v1::Job job;
  // A remark about where the numbers come from; "" for none.
  std::string remark;
  // Lines that say where the files are.
  std::vector<std::string> where;

  bool succeeded() const { return job.state() == v1::SUCCEEDED; }
};

// The outcome of a job that has ended. A server that is older than verdicts
// sends none: they are decided here then.
JobOutcome OutcomeOf(v1::Job job);

// What a program should end with after this job, which has ended: kOk,
// kGateMissed, kBadModel or kJobFailed.
ExitCode ExitCodeOf(const v1::Job& job);

// The outcome in the context's format. Returns ExitCodeOf its job.
ExitCode PrintOutcome(const JobOutcome& outcome, const CommandContext& context);

// The text form: the verdict that matters most in one line, then the results
// in 80 columns, or with all columns in the wide format, then the rest. `color`
// marks the verdict and the state.
std::string OutcomeText(const JobOutcome& outcome, OutputFormat format,
                        bool color);

// {"job_id", "state", "failure", "rows", "gates", "warnings", "report"}.
std::string OutcomeJson(const JobOutcome& outcome);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_JOBS_JOB_OUTCOME_H_
