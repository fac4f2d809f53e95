// What each step of a job's local part costs: time, processor time and memory.

#ifndef OPTFARM_CLIENT_CLI_LOCAL_STEP_TIMES_H_
#define OPTFARM_CLIENT_CLI_LOCAL_STEP_TIMES_H_

#include <functional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace optfarm::client_cli {

// Of this whole process. THREADS: one at a time.
class StepTimes {
 public:
  // `print` gets one line for each step that ends.
  explicit StepTimes(std::function<void(absl::string_view line)> print)
      : print_(std::move(print)) {}

  // Ends the step before. The same name again goes on with the step.
  void Begin(absl::string_view step);
  // Ends the last step.
  void End();

 private:
  std::function<void(absl::string_view line)> print_;
  std::string step_;
  absl::Time start_;
  absl::Duration cpu_at_start_;
};

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_LOCAL_STEP_TIMES_H_
