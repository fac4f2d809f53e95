#include "client_cli/command/standard_streams.h"

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/files.h"
#include "base/status_macros.h"

namespace optfarm::client_cli {
namespace {

constexpr size_t kChunk = 1 << 20;
constexpr uint64_t kMostBytes = uint64_t{4} << 30;

absl::Status WriteAll(int fd, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoToStatus(errno, "writing standard output");
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> StandardStreams::FileNamed(
    const std::string& name) {
  if (folder_.empty()) {
    OPTFARM_ASSIGN_OR_RETURN(folder_, MakeTemporaryFolder("optctl_"));
    cleanup_ = std::make_unique<InterruptCleanup>(folder_);
  }
  return JoinPath(folder_, name);
}

absl::StatusOr<std::string> StandardStreams::ReadInput() {
  if (!input_.empty()) {
    return absl::FailedPreconditionError(
        "standard input can be read once; '-' is given twice");
  }
  if (::isatty(in_) != 0) {
    return absl::FailedPreconditionError(
        "'-' is standard input, and that is a terminal; pipe a file into it");
  }
  OPTFARM_ASSIGN_OR_RETURN(input_, FileNamed("stdin"));
  OPTFARM_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(input_));
  std::vector<char> chunk(kChunk);
  uint64_t total = 0;
  while (true) {
    const ssize_t got = ::read(in_, chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoToStatus(errno, "reading standard input");
    if (got == 0) break;
    total += static_cast<uint64_t>(got);
    if (total > kMostBytes) {
      return absl::ResourceExhaustedError(
          "standard input has more than 4 GB; give a file");
    }
    OPTFARM_RETURN_IF_ERROR(
        file.Append({chunk.data(), static_cast<size_t>(got)}));
  }
  OPTFARM_RETURN_IF_ERROR(file.Commit());
  return input_;
}

absl::StatusOr<std::string> StandardStreams::MakeOutput() {
  if (has_output()) {
    return absl::FailedPreconditionError(
        "one file can go to standard output; '-' is given twice");
  }
  OPTFARM_ASSIGN_OR_RETURN(output_, FileNamed("stdout.pb"));
  return output_;
}

absl::Status StandardStreams::CopyOutput() {
  if (!Exists(output_)) return absl::OkStatus();
  OPTFARM_ASSIGN_OR_RETURN(SequentialFile file, SequentialFile::Open(output_));
  std::vector<char> chunk(kChunk);
  while (true) {
    OPTFARM_ASSIGN_OR_RETURN(const size_t got,
                             file.Read(chunk.data(), chunk.size()));
    if (got == 0) return absl::OkStatus();
    OPTFARM_RETURN_IF_ERROR(WriteAll(out_, {chunk.data(), got}));
  }
}

}  // namespace optfarm::client_cli
