#include "rpc/task_process.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/log.h"
#include "base/subprocess.h"
#include "rpc/failure.h"
#include "rpc/task_child.h"

namespace optfarm::rpc {
namespace {

// The kernel's limit and its report of the time used count differently.
constexpr absl::Duration kCpuClockError = absl::Milliseconds(200);
// Of one task, whatever their sizes.
constexpr int kMaxFiles = 100000;

// Why the parent ended the child.
enum class Ended {
  kByItself,
  kStopped,
  kWallLimit,
  kRunLimit,
  kLogLimit,
  kFolderLimit
};

std::string Seconds(absl::Duration duration) {
  return absl::StrCat(absl::ToDoubleSeconds(duration));
}

std::string Mebibytes(uint64_t bytes) { return absl::StrCat(bytes >> 20); }

v1::Failure OverMemory(const TaskLimits& limits) {
  return UserFailure(absl::ResourceExhaustedError(absl::StrCat(
      "the task needed more memory than one task may use here "
      "(--max_memory_mb=",
      Mebibytes(limits.max_memory_bytes),
      "); use a smaller model or fewer samples, or raise the flag")));
}

v1::Failure OverWallTime(const TaskLimits& limits) {
  return UserFailure(absl::DeadlineExceededError(absl::StrCat(
      "the task took longer than one task may take here (--max_task_seconds=",
      Seconds(limits.max_wall_time),
      "); use a smaller model or fewer samples, or raise the flag")));
}

v1::Failure OverCpuTime(const TaskLimits& limits) {
  return UserFailure(absl::DeadlineExceededError(absl::StrCat(
      "the task used more CPU time than one task may use here "
      "(--max_cpu_seconds=",
      Seconds(limits.max_cpu_time),
      "); use a smaller model or fewer samples, or raise the flag")));
}

v1::Failure OverFileSize(const TaskLimits& limits) {
  return UserFailure(absl::ResourceExhaustedError(
      absl::StrCat("the task wrote a file larger than one task may write here "
                   "(--max_file_mb=",
                   Mebibytes(limits.max_file_bytes),
                   "); use a smaller model, or raise the "
                   "flag")));
}

v1::Failure OverFolderSize(const TaskLimits& limits) {
  return UserFailure(absl::ResourceExhaustedError(absl::StrCat(
      "the task wrote more than one task may write here, or ", kMaxFiles,
      " files (--max_folder_mb=", Mebibytes(limits.max_folder_bytes),
      "); use a smaller model, or raise the flag")));
}

// Adds what the files below a folder take on disk to `bytes`, and their number
// to `files`; looks no further than kMaxFiles.
void AddFolder(const std::string& path, uint64_t* bytes, int* files) {
  namespace fs = std::filesystem;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(path, error), end;
       !error && entry != end && *files < kMaxFiles; entry.increment(error)) {
    struct stat info;
    if (::lstat(entry->path().c_str(), &info) != 0) continue;
    *bytes += static_cast<uint64_t>(info.st_blocks) * 512;
    ++*files;
  }
}

class TaskProcess {
 public:
  TaskProcess(const TaskProcessOptions& options, const TaskFolder& folder)
      : options_(options), limits_(options.limits), folder_(folder) {}

  v1::Completion Run() {
    v1::Completion completion = RunChild();
    if (completion.has_failure()) {
      folder_.AppendLog(completion.failure().message());
    }
    return completion;
  }

 private:
  v1::Completion RunChild() {
    v1::Completion completion;
    absl::StatusOr<Subprocess> child = Subprocess::Start(ChildOptions());
    if (!child.ok()) {
      *completion.mutable_failure() = InternalFailure(child.status());
      return completion;
    }
    const auto [ended, exit] = Watch(&*child);
    NoteEnd(exit);
    if (ended == Ended::kStopped) {
      completion.mutable_released()->set_reason(
          "its holder was told to stop working on it");
      return completion;
    }
    const std::optional<v1::Failure> failure = WhyItFailed(ended, exit);
    if (!failure) return ReadOutcome();
    *completion.mutable_failure() = *failure;
    return completion;
  }

  SubprocessOptions ChildOptions() const {
    SubprocessOptions child;
    child.argv = options_.argv;
    child.working_folder = folder_.path();
    child.output_file = folder_.log();
    child.environment = {{"TMPDIR", folder_.state()}};
    child.max_memory_bytes = limits_.max_memory_bytes;
    child.max_cpu_time = limits_.max_cpu_time;
    child.max_file_bytes = limits_.max_file_bytes;
    child.max_open_files = limits_.max_open_files;
    child.max_processes = limits_.max_processes;
    child.without_network = options_.alone;
    child.own_namespaces = options_.alone;
    child.read_only_folder = folder_.in();
    child.clean_environment = options_.alone;
    child.die_with_parent = true;
    return child;
  }

  std::pair<Ended, SubprocessExit> Watch(Subprocess* child) {
    const absl::Time begin = options_.clock->Now();
    while (true) {
      if (const auto exit = child->Wait(options_.poll)) {
        PassProgressOn();
        return {IsFolderFull() ? Ended::kFolderLimit : Ended::kByItself, *exit};
      }
      PassProgressOn();
      const Ended ended = WhyEndIt(options_.clock->Now() - begin);
      if (ended == Ended::kByItself) continue;
      return {ended, child->Stop(absl::ZeroDuration())};
    }
  }

  // kByItself: let it go on.
  Ended WhyEndIt(absl::Duration elapsed) const {
    if (options_.should_stop && options_.should_stop()) return Ended::kStopped;
    if (elapsed > limits_.max_wall_time) return Ended::kWallLimit;
    if (elapsed > options_.run_limit) return Ended::kRunLimit;
    const absl::StatusOr<uint64_t> log_bytes = FileSize(folder_.log());
    if (log_bytes.ok() && *log_bytes > limits_.max_log_bytes) {
      return Ended::kLogLimit;
    }
    return IsFolderFull() ? Ended::kFolderLimit : Ended::kByItself;
  }

  bool IsFolderFull() const {
    if (limits_.max_folder_bytes == 0) return false;
    uint64_t bytes = 0;
    int files = 0;
    AddFolder(folder_.out(), &bytes, &files);
    AddFolder(folder_.state(), &bytes, &files);
    return bytes > limits_.max_folder_bytes || files >= kMaxFiles;
  }

  void PassProgressOn() {
    double fraction = 0;
    std::string message;
    if (options_.on_progress && folder_.ReadProgress(&fraction, &message)) {
      options_.on_progress(fraction, message);
    }
  }

  void NoteEnd(const SubprocessExit& exit) {
    const absl::StatusOr<uint64_t> log_bytes = FileSize(folder_.log());
    if (log_bytes.ok() && *log_bytes > limits_.max_log_bytes &&
        ::truncate(folder_.log().c_str(),
                   static_cast<off_t>(limits_.max_log_bytes)) == 0) {
      folder_.AppendLog("the log was cut here");
    }
    if (exit.ok()) return;
    folder_.AppendLog(absl::StrCat(
        "the task's process ended: ", exit.ToString(), ", CPU time ",
        Seconds(exit.cpu_time), " s, largest resident set ",
        Mebibytes(static_cast<uint64_t>(exit.peak_memory_bytes)), " MiB"));
  }

  // nullopt: it ended well.
  std::optional<v1::Failure> WhyItFailed(Ended ended,
                                         const SubprocessExit& exit) const {
    if (ended == Ended::kWallLimit) return OverWallTime(limits_);
    if (ended == Ended::kRunLimit) {
      return InternalFailure(absl::DeadlineExceededError(
          absl::StrCat("the attempt took longer than the job's run deadline, ",
                       Seconds(options_.run_limit), " s")));
    }
    if (ended == Ended::kFolderLimit) return OverFolderSize(limits_);
    if (ended == Ended::kLogLimit) {
      return UserFailure(absl::ResourceExhaustedError(
          absl::StrCat("the task printed more than ", limits_.max_log_bytes,
                       " bytes, the most that one task may print")));
    }
    if (exit.ok()) return std::nullopt;
    if (exit.exit_code == kOutOfMemoryExit && limits_.max_memory_bytes > 0) {
      return OverMemory(limits_);
    }
    if (exit.signal == SIGXFSZ) return OverFileSize(limits_);
    // At the hard limit the kernel sends SIGKILL.
    if ((exit.signal == SIGXCPU || exit.signal == SIGKILL) &&
        limits_.max_cpu_time > absl::ZeroDuration() &&
        exit.cpu_time >= limits_.max_cpu_time - kCpuClockError) {
      return OverCpuTime(limits_);
    }
    std::string message =
        absl::StrCat("the task's process crashed: ", exit.ToString());
    if (exit.signal == SIGKILL || exit.exit_code == kOutOfMemoryExit) {
      absl::StrAppend(&message, "; the machine may be out of memory");
    }
    return InternalFailure(absl::InternalError(message));
  }

  // The engine knows that memory ran out, but not who limits it.
  void NameMemoryLimit(v1::Completion* completion) const {
    v1::Failure* failure =
        completion->has_failure() ? completion->mutable_failure() : nullptr;
    if (failure == nullptr || failure->kind() != v1::Failure::USER ||
        failure->code() != "RESOURCE_EXHAUSTED" ||
        limits_.max_memory_bytes == 0) {
      return;
    }
    absl::StrAppend(failure->mutable_message(),
                    "; one task may use --max_memory_mb=",
                    Mebibytes(limits_.max_memory_bytes), " of memory here");
  }

  v1::Completion ReadOutcome() const {
    absl::StatusOr<v1::Completion> completion = folder_.ReadCompletion();
    if (completion.ok() &&
        completion->outcome_case() != v1::Completion::OUTCOME_NOT_SET) {
      NameMemoryLimit(&*completion);
      return *std::move(completion);
    }
    v1::Completion failed;
    *failed.mutable_failure() = InternalFailure(
        absl::InternalError(absl::StrCat("the task's process left no outcome: ",
                                         completion.status().ToString())));
    return failed;
  }

  const TaskProcessOptions& options_;
  const TaskLimits& limits_;
  const TaskFolder& folder_;
};

}  // namespace

v1::Completion RunTaskProcess(const TaskProcessOptions& options,
                              const TaskFolder& folder) {
  return TaskProcess(options, folder).Run();
}

}  // namespace optfarm::rpc
