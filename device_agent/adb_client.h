// Runs adb: one child process a command, its arguments as they are, without a
// shell on this side, each with a time limit.

#ifndef OPTFARM_DEVICE_AGENT_ADB_CLIENT_H_
#define OPTFARM_DEVICE_AGENT_ADB_CLIENT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace optfarm::device_agent {

// THREADS: safe.
class AdbClient {
 public:
  // `program` is searched in PATH when it has no '/'.
  // ERRORS: NotFound when it is not there.
  static absl::StatusOr<AdbClient> Make(const std::string& program);

  // What adb printed.
  // ERRORS: Unavailable with the end of what it printed when it fails or takes
  // longer than `limit`; then it is killed.
  absl::StatusOr<std::string> Run(std::vector<std::string> arguments,
                                  absl::Duration limit) const;

  // The same for one phone.
  absl::StatusOr<std::string> RunOn(const std::string& serial,
                                    std::vector<std::string> arguments,
                                    absl::Duration limit) const;

  const std::string& program() const { return program_; }

 private:
  explicit AdbClient(std::string program) : program_(std::move(program)) {}

  std::string program_;
};

}  // namespace optfarm::device_agent

#endif  // OPTFARM_DEVICE_AGENT_ADB_CLIENT_H_
