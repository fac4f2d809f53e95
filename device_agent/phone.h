// One phone while a task is on it: what it needs is pushed once for each
// digest, the benchmark program runs there, its outcome is pulled, and what
// belongs to the task is removed.
//
// On the phone, below /data/local/tmp/optfarm:
//   blobs/SHA256   programs and graphs, kept for the next task
//   task/          the folder of the one task (rpc/task_folder.h)

#ifndef OPTFARM_DEVICE_AGENT_PHONE_H_
#define OPTFARM_DEVICE_AGENT_PHONE_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "device_agent/adb_client.h"
#include "optfarm/v1/work.pb.h"
#include "rpc/task_folder.h"

namespace optfarm::device_agent {

struct PhoneTask {
  // The program for the phone's processor, on this machine.
  std::string program;
  // What it is told besides the folder.
  std::vector<std::string> flags;
  // Longest time it may run.
  absl::Duration limit;
  bool fixed_performance = false;
  // Called when all is on the phone and the program is about to start.
  std::function<void()> on_ready = [] {};
};

// ERRORS of all methods: Unavailable saying what the phone or adb did.
// THREADS: one at a time.
class Phone {
 public:
  // OWNERSHIP: `adb` outlives the phone.
  Phone(const AdbClient& adb, std::string serial)
      : adb_(adb), serial_(std::move(serial)) {}

  // Runs `task` for the lease whose files lie in `folder`, and returns what it
  // left. The phone's log is appended to the folder's.
  absl::StatusOr<v1::Completion> Run(const v1::LeasedTask& lease,
                                     const rpc::TaskFolder& folder,
                                     const PhoneTask& task);

 private:
  absl::StatusOr<std::string> Shell(const std::string& command,
                                    absl::Duration limit) const;
  // Ends and removes what a task left.
  absl::Status Clear() const;
  // Makes the folders.
  absl::Status Begin() const;
  // The SHA-256 digest of a file on the phone, as the phone computes it; empty
  // where it has no such file or no sha256sum.
  absl::StatusOr<std::string> DigestOf(const std::string& path) const;
  // The path on the phone. Sends the file unless it is there already with the
  // bytes that it should have.
  absl::StatusOr<std::string> PushOnce(const std::string& path,
                                       bool executable) const;
  absl::Status Send(const std::string& path, const std::string& to) const;
  // Sends all that the task needs; returns the program's path on the phone.
  absl::StatusOr<std::string> LayOut(const v1::LeasedTask& lease,
                                     const rpc::TaskFolder& folder,
                                     const PhoneTask& task) const;
  absl::Status Start(const PhoneTask& task, const std::string& program,
                     const rpc::TaskFolder& folder) const;
  absl::StatusOr<v1::Completion> Fetch(const rpc::TaskFolder& folder) const;

  const AdbClient& adb_;
  const std::string serial_;
};

}  // namespace optfarm::device_agent

#endif  // OPTFARM_DEVICE_AGENT_PHONE_H_
