#include "rpc/task_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/files.h"
#include "base/status_macros.h"

namespace optfarm::rpc {
namespace {

// UNITS: bytes. A child that ran somebody's model wrote these files.
constexpr uint64_t kMaxMessageFileBytes = 48 << 20;
constexpr uint64_t kMaxProgressBytes = 4 << 10;

template <typename Message>
absl::StatusOr<Message> ReadMessage(const std::string& path) {
  OPTFARM_ASSIGN_OR_RETURN(const std::string bytes,
                           ReadFile(path, kMaxMessageFileBytes));
  Message message;
  if (!message.ParseFromString(bytes)) {
    return absl::DataLossError(absl::StrCat(
        "'", path, "' is not a ", message.GetDescriptor()->full_name()));
  }
  return message;
}

}  // namespace

std::string TaskFolder::At(absl::string_view name) const {
  return JoinPath(path_, name);
}

absl::Status TaskFolder::Make() const {
  OPTFARM_RETURN_IF_ERROR(MakeFolders(in()));
  OPTFARM_RETURN_IF_ERROR(MakeFolders(state()));
  return MakeFolders(out());
}

absl::Status TaskFolder::WriteLease(const v1::LeasedTask& lease) const {
  return WriteFileAtomically(At("task.pb"), lease.SerializeAsString());
}

absl::StatusOr<v1::LeasedTask> TaskFolder::ReadLease() const {
  return ReadMessage<v1::LeasedTask>(At("task.pb"));
}

absl::Status TaskFolder::WriteCompletion(
    const v1::Completion& completion) const {
  return WriteFileAtomically(JoinPath(state(), "result.pb"),
                             completion.SerializeAsString());
}

absl::StatusOr<v1::Completion> TaskFolder::ReadCompletion() const {
  return ReadMessage<v1::Completion>(JoinPath(state(), "result.pb"));
}

void TaskFolder::WriteProgress(double fraction,
                               absl::string_view message) const {
  const std::string text = absl::StrFormat(
      "%.4f %s", fraction,
      message.substr(0, message.find('\n')).substr(0, kMaxProgressBytes / 2));
  const std::string fresh = JoinPath(state(), "progress.new");
  const int fd =
      ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return;
  const bool whole = ::write(fd, text.data(), text.size()) ==
                     static_cast<ssize_t>(text.size());
  ::close(fd);
  if (whole) std::rename(fresh.c_str(), JoinPath(state(), "progress").c_str());
}

bool TaskFolder::ReadProgress(double* fraction, std::string* message) const {
  const absl::StatusOr<std::string> text =
      ReadFile(JoinPath(state(), "progress"), kMaxProgressBytes);
  if (!text.ok()) return false;
  const size_t blank = text->find(' ');
  double value = 0;
  if (blank == std::string::npos ||
      !absl::SimpleAtod(absl::string_view(*text).substr(0, blank), &value)) {
    return false;
  }
  *fraction = value;
  *message = text->substr(blank + 1);
  return true;
}

void TaskFolder::AppendLog(absl::string_view line) const {
  const int fd =
      ::open(log().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return;
  const std::string text = absl::StrCat("[farm] ", line, "\n");
  [[maybe_unused]] const ssize_t n = ::write(fd, text.data(), text.size());
  ::close(fd);
}

}  // namespace optfarm::rpc
