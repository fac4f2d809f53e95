#include "rpc/task_runner.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "rpc/failure.h"

namespace optfarm::rpc {
namespace {

// More files than any task of ours makes.
constexpr size_t kMaxArtifacts = 64;
constexpr size_t kMaxArtifactName = 128;
constexpr absl::Duration kRefusedPause = absl::Seconds(1);

std::string MediaType(absl::string_view name) {
  const std::string extension = LowerExtension(name);
  if (extension == "json") return "application/json";
  if (extension == "pb") return "application/x-tensorflow-graphdef";
  if (extension == "txt" || extension == "log") return "text/plain";
  return "application/octet-stream";
}

bool IsArtifactName(absl::string_view name) {
  return !name.empty() && name.size() <= kMaxArtifactName &&
         absl::ascii_isalnum(name[0]) &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-';
         });
}

// The plain files of a folder that a child filled. What is no plain file (a
// link could lead anywhere) or has no proper name is left out.
absl::StatusOr<std::vector<std::string>> PlainFiles(const std::string& folder) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                           ListFolder(folder));
  std::vector<std::string> paths;
  for (const std::string& name : names) {
    const std::string path = JoinPath(folder, name);
    struct stat info = {};
    if (IsArtifactName(name) && ::lstat(path.c_str(), &info) == 0 &&
        S_ISREG(info.st_mode)) {
      paths.push_back(path);
    }
  }
  if (paths.size() > kMaxArtifacts) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the task made ", paths.size(), " files, more than ", kMaxArtifacts));
  }
  return paths;
}

// A lock that ends with the process. Returns its descriptor.
absl::StatusOr<int> LockFolder(const std::string& folder) {
  const std::string path = JoinPath(folder, "lock");
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return ErrnoToStatus(errno, absl::StrCat("opening '", path, "'"));
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  ::close(fd);
  return absl::FailedPreconditionError(absl::StrCat(
      "work folder '", folder,
      "' is in use by another process; give each its own --work_dir"));
}

}  // namespace

absl::Status CheckRelativePath(absl::string_view path) {
  bool good = path.size() <= 1024;
  for (absl::string_view part : absl::StrSplit(path, '/')) {
    good = good && !part.empty() && part != "." && part != "..";
  }
  for (char c : path) good = good && !absl::ascii_iscntrl(c);
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "path '", path.substr(0, 1024),
      "' must be relative, at most 1024 bytes, without '.', '..' or empty "
      "parts"));
}

absl::StatusOr<std::unique_ptr<TaskRunner>> TaskRunner::Create(
    ModelStub* stub, TaskRunnerOptions options) {
  const std::string work = options.work_folder;
  OPTFARM_RETURN_IF_ERROR(MakeFolders(work));
  OPTFARM_ASSIGN_OR_RETURN(const int lock_fd, LockFolder(work));
  const int64_t cache_bytes = options.cache_bytes;
  std::unique_ptr<TaskRunner> runner(
      new TaskRunner(stub, std::move(options), lock_fd));
  OPTFARM_RETURN_IF_ERROR(RemoveAll(JoinPath(work, "tasks")));
  OPTFARM_RETURN_IF_ERROR(MakeFolders(JoinPath(work, "tasks")));
  OPTFARM_ASSIGN_OR_RETURN(
      runner->cache_, BlobCache::Open(JoinPath(work, "cache"), cache_bytes));
  return runner;
}

TaskRunner::~TaskRunner() {
  std::list<Worker> workers;
  {
    absl::MutexLock lock(&mutex_);
    workers.splice(workers.end(), workers_);
  }
  for (Worker& worker : workers) worker.thread.join();
  ::close(lock_fd_);
}

void TaskRunner::Start(std::shared_ptr<HeldTask> task) {
  absl::MutexLock lock(&mutex_);
  Sweep();
  Worker& worker = workers_.emplace_back();
  worker.device = task->lease().benchmark().device();
  worker.thread = std::thread([this, &worker, task = std::move(task)] {
    Run(task.get());
    {
      absl::MutexLock over_lock(&mutex_);
      worker.over = true;
    }
    if (options_.on_idle) options_.on_idle();
  });
}

int TaskRunner::active() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int>(
      std::count_if(workers_.begin(), workers_.end(),
                    [](const Worker& worker) { return !worker.over; }));
}

std::set<std::string> TaskRunner::busy_devices() const {
  absl::MutexLock lock(&mutex_);
  std::set<std::string> devices;
  for (const Worker& worker : workers_) {
    if (!worker.over) devices.insert(worker.device);
  }
  return devices;
}

void TaskRunner::Sweep() {
  for (auto it = workers_.begin(); it != workers_.end();) {
    if (it->over) {
      it->thread.join();
      it = workers_.erase(it);
    } else {
      ++it;
    }
  }
}

void TaskRunner::Run(HeldTask* task) {
  const v1::LeasedTask& lease = task->lease();
  LogInfo("task ", lease.task_id(), " attempt ", lease.attempt(), ": begins");
  const absl::StatusOr<std::string> path =
      MakeTemporaryFolder("task-", JoinPath(options_.work_folder, "tasks"));
  if (!path.ok()) {
    v1::Completion failed;
    *failed.mutable_failure() = InternalFailure(path.status());
    HandOver(task, TaskFolder(""), std::move(failed));
    return;
  }
  const ScopedFolder remover(*path);
  const TaskFolder folder(*path);
  v1::Completion completion = Work(task, folder);
  if (task->IsDropped()) return;
  HandOver(task, folder, std::move(completion));
}

v1::Completion TaskRunner::Work(HeldTask* task, const TaskFolder& folder) {
  const v1::LeasedTask& lease = task->lease();
  const auto failed = [&](const v1::Failure& failure) {
    folder.AppendLog(failure.message());
    v1::Completion completion;
    *completion.mutable_failure() = failure;
    return completion;
  };
  task->SetLogFile(folder.log());
  absl::Status made = folder.Make();
  if (made.ok()) made = folder.WriteLease(lease);
  if (!made.ok()) return failed(InternalFailure(made));
  const absl::StatusOr<TaskPlan> plan = options_.plan(lease, folder);
  if (!plan.ok()) return failed(UserFailure(plan.status()));
  const absl::Status small = CheckInputs(*plan);
  if (!small.ok()) return failed(UserFailure(small));
  task->SetProgress(0, "fetching files");
  const absl::Status fetched = Fetch(task, *plan, folder);
  if (task->ShouldStop()) {
    v1::Completion released;
    released.mutable_released()->set_reason("its holder shuts down");
    return released;
  }
  if (!fetched.ok()) return failed(InternalFailure(fetched));
  TaskProcessOptions process;
  process.argv = plan->argv;
  process.limits = plan->limits;
  process.alone = plan->alone;
  if (lease.has_run_limit()) {
    process.run_limit = absl::Seconds(lease.run_limit().seconds() + 1);
  }
  process.should_stop = [task] { return task->ShouldStop(); };
  process.on_progress = [task](double fraction, absl::string_view message) {
    task->SetProgress(fraction, message);
  };
  return RunTaskProcess(process, folder);
}

// One that is not kept in could reach the cached files themselves.
Placing TaskRunner::PlacingOf(const TaskPlan& plan) const {
  return plan.alone ? options_.placing : Placing::kLink;
}

absl::Status TaskRunner::CheckInputs(const TaskPlan& plan) const {
  const uint64_t most = plan.limits.max_folder_bytes;
  if (PlacingOf(plan) == Placing::kLink || most == 0) return absl::OkStatus();
  uint64_t bytes = 0;
  for (const TaskInput& input : plan.inputs) {
    const auto size =
        static_cast<uint64_t>(std::max<int64_t>(input.digest.size_bytes(), 0));
    bytes = size > most ? size : bytes + size;
    if (bytes <= most) continue;
    return absl::ResourceExhaustedError(absl::StrCat(
        "the task's files are larger than what one task may have on disk here "
        "(--max_folder_mb=",
        most >> 20,
        "); use a smaller model or fewer samples, or raise the flag"));
  }
  return absl::OkStatus();
}

absl::Status TaskRunner::Fetch(HeldTask* task, const TaskPlan& plan,
                               const TaskFolder& folder) {
  const TransferOptions transfer = TransferFor(task, /*until_stop=*/true);
  const Placing placing = PlacingOf(plan);
  for (const TaskInput& input : plan.inputs) {
    if (task->ShouldStop()) return absl::CancelledError("told to stop");
    OPTFARM_RETURN_IF_ERROR(CheckRelativePath(input.path));
    const std::string path = JoinPath(folder.in(), input.path);
    const size_t slash = path.rfind('/');
    OPTFARM_RETURN_IF_ERROR(MakeFolders(path.substr(0, slash)));
    OPTFARM_RETURN_IF_ERROR(Annotate(
        cache_->Place(input.digest, path, placing,
                      [&](const v1::Digest& digest, const std::string& to) {
                        return DownloadBlob(stub_, digest, to, transfer);
                      }),
        absl::StrCat("fetching '", input.path, "'")));
  }
  return absl::OkStatus();
}

void TaskRunner::HandOver(HeldTask* task, const TaskFolder& folder,
                          v1::Completion completion) {
  task->SetProgress(1, "handing the outcome over");
  Deliver(task, folder, &completion);
  for (int refusals = 1;; ++refusals) {
    if (task->IsDropped()) return;
    task->Complete(completion);
    const Decision decision = task->AwaitDecision();
    if (decision.kind != Decision::Kind::kRefused) return;
    LogWarning("task ", task->lease().task_id(),
               ": the server refused the outcome: ", decision.message);
    if (!decision.missing_blobs.empty() && refusals <= 3) {
      Deliver(task, folder, &completion);
    } else if (!completion.has_failure() && !completion.has_released()) {
      completion.Clear();
      *completion.mutable_failure() = InternalFailure(absl::InternalError(
          absl::StrCat("the server refused the outcome: ", decision.message)));
    } else {
      completion.Clear();
      completion.mutable_released()->set_reason(decision.message);
      absl::SleepFor(kRefusedPause);
    }
  }
}

void TaskRunner::Deliver(HeldTask* task, const TaskFolder& folder,
                         v1::Completion* completion) {
  if (completion->has_released()) return;
  absl::Status status;
  if (!completion->has_failure()) {
    const auto deliver = [&]() -> absl::Status {
      OPTFARM_ASSIGN_OR_RETURN(const std::vector<std::string> paths,
                               PlainFiles(folder.out()));
      OPTFARM_ASSIGN_OR_RETURN(const std::vector<v1::Artifact> artifacts,
                               UploadFiles(task, paths));
      return options_.finish(task->lease(), artifacts, completion);
    };
    status = deliver();
    if (!status.ok()) {
      folder.AppendLog(status.ToString());
      *completion->mutable_failure() = InternalFailure(status);
    }
  }
  completion->clear_artifacts();
  if (!Exists(folder.log())) return;
  const absl::StatusOr<std::vector<v1::Artifact>> log =
      UploadFiles(task, {folder.log()});
  if (log.ok()) {
    completion->mutable_artifacts()->Add(log->begin(), log->end());
  } else {
    LogWarning("task ", task->lease().task_id(),
               ": its log is lost: ", log.status().ToString());
  }
}

absl::StatusOr<std::vector<v1::Artifact>> TaskRunner::UploadFiles(
    HeldTask* task, const std::vector<std::string>& paths) {
  std::vector<UploadSource> sources;
  std::vector<v1::Artifact> artifacts;
  for (const std::string& path : paths) {
    OPTFARM_ASSIGN_OR_RETURN(const v1::Digest digest, DigestOfFile(path));
    sources.push_back({digest, path, {}});
    v1::Artifact& artifact = artifacts.emplace_back();
    artifact.set_name(BaseName(path));
    *artifact.mutable_digest() = digest;
    artifact.set_media_type(MediaType(artifact.name()));
  }
  OPTFARM_RETURN_IF_ERROR(
      UploadMissing(stub_, sources, TransferFor(task, /*until_stop=*/false))
          .status());
  return artifacts;
}

TransferOptions TaskRunner::TransferFor(HeldTask* task, bool until_stop) const {
  TransferOptions transfer = options_.transfer;
  // As long as the lease is ours there is no reason to give up.
  transfer.retry.max_attempts = 1 << 20;
  transfer.retry.give_up_after = absl::InfiniteDuration();
  // A server that is full or has too much to do: that passes, and what was
  // computed is kept until then. While files are fetched the full disk may be
  // this machine's, which another one may not have.
  transfer.retry.also = [until_stop](const absl::Status& status) {
    return absl::IsResourceExhausted(status) &&
           !(until_stop && absl::StrContains(status.message(), "disk full"));
  };
  transfer.retry.cancelled = [task, until_stop] {
    return until_stop ? task->ShouldStop() : task->IsDropped();
  };
  return transfer;
}

}  // namespace optfarm::rpc
