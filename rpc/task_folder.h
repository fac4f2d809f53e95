// Where a task's files lie. A participant lays the folder out, a child process
// works in it; the names here are all that the two agree on.

#ifndef OPTFARM_RPC_TASK_FOLDER_H_
#define OPTFARM_RPC_TASK_FOLDER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "optfarm/v1/work.pb.h"

namespace optfarm::rpc {

class TaskFolder {
 public:
  // Nothing is read or made.
  explicit TaskFolder(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  // Blobs of the task, by the paths its plan gave them.
  std::string in() const { return At("in"); }
  // Files the child wants to become artifacts.
  std::string out() const { return At("out"); }
  // What the child leaves for the participant, and where it may keep what it
  // needs meanwhile.
  std::string state() const { return At("state"); }
  // Everything that was printed.
  std::string log() const { return At("task.log"); }

  // Makes the folder and those in it.
  absl::Status Make() const;

  // The lease. Written by the participant, read by the child.
  absl::Status WriteLease(const v1::LeasedTask& lease) const;
  absl::StatusOr<v1::LeasedTask> ReadLease() const;

  // The outcome. Written by the child. NotFound until then.
  absl::Status WriteCompletion(const v1::Completion& completion) const;
  absl::StatusOr<v1::Completion> ReadCompletion() const;

  // UNITS: fraction 0..1. How far the child is. Neither fails: progress is
  // never worth a task.
  void WriteProgress(double fraction, absl::string_view message) const;
  // Returns false, with both as they were, when there is nothing (new) to read.
  bool ReadProgress(double* fraction, std::string* message) const;

  // Appends one line of the participant's own to the log.
  void AppendLog(absl::string_view line) const;

 private:
  std::string At(absl::string_view name) const;

  std::string path_;
};

}  // namespace optfarm::rpc

#endif  // OPTFARM_RPC_TASK_FOLDER_H_
