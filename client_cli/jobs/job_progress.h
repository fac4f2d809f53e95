// What a progress line says about a job, put together from its events.

#ifndef OPTFARM_CLIENT_CLI_JOBS_JOB_PROGRESS_H_
#define OPTFARM_CLIENT_CLI_JOBS_JOB_PROGRESS_H_

#include <map>
#include <string>

#include "absl/time/time.h"
#include "optfarm/v1/jobs.pb.h"

namespace optfarm::client_cli {

class JobProgress {
 public:
  // `job` says what its tasks are; `now` is when the wait began.
  JobProgress(const v1::Job& job, absl::Time now);

  void Add(const v1::JobEvent& event);

  // "RUNNING 12 s: optimize 40% calibrating; benchmark on pi4 waits".
  std::string Line(absl::Time now) const;

 private:
  struct TaskView {
    std::string title;
    v1::TaskState state = v1::TASK_STATE_UNSPECIFIED;
    double fraction = 0;
    std::string message;
  };

  v1::JobState state_;
  absl::Time start_;
  // By task id, which is the order of the tasks.
  std::map<std::string, TaskView> tasks_;
};

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_JOBS_JOB_PROGRESS_H_
