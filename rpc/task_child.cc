#include "rpc/task_child.h"

#include <unistd.h>

#include <cstring>
#include <exception>
#include <new>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "base/sandbox.h"
#include "base/subprocess.h"
#include "rpc/failure.h"

namespace optfarm::rpc {
namespace {

// Progress is a file; more often than this nobody looks.
constexpr absl::Duration kProgressInterval = absl::Milliseconds(100);

[[noreturn]] void EndOutOfMemory() {
  static constexpr char kText[] = "out of memory\n";
  [[maybe_unused]] const ssize_t n =
      ::write(STDERR_FILENO, kText, sizeof(kText) - 1);
  ::_exit(kOutOfMemoryExit);
}

// A thread's stack is memory too: without room for it this is what is thrown.
bool IsOutOfMemory(const std::system_error& error) {
  return error.code() == std::errc::resource_unavailable_try_again ||
         error.code() == std::errc::not_enough_memory;
}

// std::bad_alloc in a thread or across a noexcept border ends here.
[[noreturn]] void Terminate() {
  try {
    if (std::current_exception() != nullptr) throw;
  } catch (const std::bad_alloc&) {
    EndOutOfMemory();
  } catch (const std::system_error& error) {
    if (IsOutOfMemory(error)) EndOutOfMemory();
    LogError("uncaught exception: ", error.what());
  } catch (const std::exception& error) {
    LogError("uncaught exception: ", error.what());
  } catch (...) {
    LogError("uncaught exception of unknown type");
  }
  std::abort();
}

// The task's inputs are links to files that other tasks get, too.
void Enclose(const TaskFolder& folder) {
  SandboxOptions options;
  options.readable = SystemPaths();
  options.readable.push_back(folder.path());
  options.readable.push_back(OwnProgramPath());
  options.writable = {folder.out(), folder.state()};
  const SandboxForce force = EnterSandbox(options);
  if (!force.complete()) LogWarning("the sandbox is weak: ", force.ToString());
}

absl::StatusOr<v1::Completion> GuardedWork(const v1::LeasedTask& lease,
                                           const TaskFolder& folder,
                                           ChildWork work) {
  absl::Time last_written = absl::InfinitePast();
  const ChildProgress progress = [&](double fraction,
                                     absl::string_view message) {
    const absl::Time now = absl::Now();
    if (now - last_written < kProgressInterval) return;
    last_written = now;
    folder.WriteProgress(fraction, message);
  };
  // The tree's own code throws nothing; libraries below it may.
  try {
    return work(lease, folder, progress);
  } catch (const std::bad_alloc&) {
    EndOutOfMemory();
  } catch (const std::system_error& error) {
    if (IsOutOfMemory(error)) EndOutOfMemory();
    return absl::InternalError(
        absl::StrCat("a library threw an exception: ", error.what()));
  } catch (const std::exception& error) {
    return absl::InternalError(
        absl::StrCat("a library threw an exception: ", error.what()));
  }
}

}  // namespace

int RunTaskChild(const std::string& path, ChildWork work,
                 ChildSandbox sandbox) {
  std::set_new_handler(&EndOutOfMemory);
  std::set_terminate(&Terminate);
  const TaskFolder folder(path);
  // On a phone nobody has made it.
  MakeFolders(folder.state()).IgnoreError();
  // Before anything of the task is looked at.
  if (sandbox == ChildSandbox::kFull) Enclose(folder);
  const absl::StatusOr<v1::LeasedTask> lease = folder.ReadLease();
  if (!lease.ok()) {
    LogError("reading the task: ", lease.status().ToString());
    return 2;
  }
  absl::StatusOr<v1::Completion> completion = GuardedWork(*lease, folder, work);
  if (!completion.ok()) {
    LogError("the task failed: ", completion.status().ToString());
    v1::Completion failed;
    *failed.mutable_failure() = EngineFailure(completion.status());
    completion = std::move(failed);
  }
  const absl::Status written = folder.WriteCompletion(*completion);
  if (!written.ok()) {
    LogError("writing the outcome: ", written.ToString());
    return 3;
  }
  return 0;
}

}  // namespace optfarm::rpc
