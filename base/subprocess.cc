#include "base/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/files.h"
#include "base/sandbox.h"

extern char** environ;

namespace optfarm {
namespace {

// Everything the child needs between fork and exec, prepared before the fork:
// after it only async-signal-safe calls are allowed.
struct Prepared {
  // "1000 1000 1\n": the one user, or group, that a namespace has.
  std::string user_map;
  std::string group_map;
  std::vector<std::string> environment_strings;
  std::vector<char*> argv;
  std::vector<char*> environment;
};

// What a child with a clean environment gets of ours.
bool IsForEverybody(absl::string_view variable) {
  for (const absl::string_view name :
       {"PATH=", "LANG=", "TZ=", "LD_LIBRARY_PATH=", "ASAN_OPTIONS=",
        "TSAN_OPTIONS=", "UBSAN_OPTIONS=", "LC_", "QEMU_"}) {
    if (absl::StartsWith(variable, name)) return true;
  }
  return absl::StartsWith(variable, "OPTFARM_") &&
         !absl::StartsWith(variable, "OPTFARM_TOKEN");
}

Prepared Prepare(const SubprocessOptions& options) {
  Prepared p;
  p.user_map = absl::StrCat(::geteuid(), " ", ::geteuid(), " 1\n");
  p.group_map = absl::StrCat(::getegid(), " ", ::getegid(), " 1\n");
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const absl::string_view text(*entry);
    const bool replaced = std::any_of(
        options.environment.begin(), options.environment.end(),
        [&](const auto& kv) {
          return absl::StartsWith(text, absl::StrCat(kv.first, "="));
        });
    if (replaced || (options.clean_environment && !IsForEverybody(text))) {
      continue;
    }
    p.environment_strings.emplace_back(text);
  }
  for (const auto& [key, value] : options.environment) {
    p.environment_strings.push_back(absl::StrCat(key, "=", value));
  }
  for (std::string& s : p.environment_strings)
    p.environment.push_back(s.data());
  p.environment.push_back(nullptr);
  for (const std::string& s : options.argv) {
    p.argv.push_back(const_cast<char*>(s.c_str()));
  }
  p.argv.push_back(nullptr);
  return p;
}

void SetLimit(int resource, uint64_t value) {
  // Where the kernel counts in 32 bits, more than those is no limit.
  const rlim_t most =
      value < RLIM_INFINITY ? static_cast<rlim_t>(value) : RLIM_INFINITY;
  const struct rlimit limit = {most, most};
  ::setrlimit(static_cast<__rlimit_resource>(resource), &limit);
}

// What of a child's start belongs to both ends of its pipes.
struct ChildPipes {
  // errno of a start that failed.
  int error = -1;
  // With namespaces: how the child ended.
  int status = -1;
};

// Tells the parent why there is no child.
[[noreturn]] void GiveUp(const ChildPipes& pipes, int error) {
  [[maybe_unused]] ssize_t n = ::write(pipes.error, &error, sizeof(error));
  ::_exit(127);
}

bool WriteText(const char* path, const char* text, size_t size) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool written = ::write(fd, text, size) == static_cast<ssize_t>(size);
  ::close(fd);
  return written;
}

// fork, with namespaces for the child. What it runs until exec may use system
// calls alone.
pid_t Fork(int namespaces) {
#if defined(__s390x__)
#error "clone takes its arguments in another order here"
#endif
  return static_cast<pid_t>(
      ::syscall(SYS_clone, SIGCHLD | namespaces, 0, 0, 0, 0));
}

// Runs in the first process of new namespaces. The first process is special:
// signals that it does not handle do not end it. So it has a child, as which it
// returns, waits for it, tells how it ended and ends.
void EnterNamespaces(const SubprocessOptions& options, const Prepared& prepared,
                     const ChildPipes& pipes) {
  // Without a user a process can make no files.
  if (!WriteText("/proc/self/setgroups", "deny", 4) ||
      !WriteText("/proc/self/uid_map", prepared.user_map.data(),
                 prepared.user_map.size()) ||
      !WriteText("/proc/self/gid_map", prepared.group_map.data(),
                 prepared.group_map.size())) {
    GiveUp(pipes, errno);
  }
  // What is mounted here is no concern of others.
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      (!options.read_only_folder.empty() &&
       !MakeReadOnly(options.read_only_folder.c_str()))) {
    GiveUp(pipes, errno);
  }
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  const pid_t child = Fork(0);
  if (child == 0) return;
  if (child < 0) GiveUp(pipes, errno);
  ::close(pipes.error);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  [[maybe_unused]] ssize_t n = ::write(pipes.status, &status, sizeof(status));
  ::_exit(0);
}

// Whatever is open beyond the first three is this process's own business.
void CloseOnExec() {
#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif
  constexpr long kCloseRange = 436;
  constexpr unsigned kFirst = STDERR_FILENO + 1;
  if (::syscall(kCloseRange, kFirst, ~0U, CLOSE_RANGE_CLOEXEC) == 0) return;
  rlimit limit = {};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const int end = static_cast<int>(std::min<rlim_t>(limit.rlim_cur, 1 << 16));
  for (int fd = kFirst; fd < end; ++fd) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
}

// Runs in the child. Writes errno to the pipe and exits when it fails.
[[noreturn]] void ExecChild(const SubprocessOptions& options,
                            const Prepared& prepared, pid_t parent,
                            const ChildPipes& pipes) {
  ::setpgid(0, 0);
  if (options.die_with_parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    // From within a namespace the parent cannot be seen.
    if (!options.own_namespaces && ::getppid() != parent) ::_exit(127);
  }
  if (options.own_namespaces) EnterNamespaces(options, prepared, pipes);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  bool ok = true;
  if (!options.output_file.empty()) {
    const int fd = ::open(options.output_file.c_str(),
                          O_WRONLY | O_CREAT | O_APPEND, 0600);
    ok = fd >= 0 && ::dup2(fd, STDOUT_FILENO) >= 0 &&
         ::dup2(fd, STDERR_FILENO) >= 0;
    if (fd > STDERR_FILENO) ::close(fd);
    const int null_fd = ::open("/dev/null", O_RDONLY);
    if (null_fd >= 0) {
      ::dup2(null_fd, STDIN_FILENO);
      if (null_fd > STDERR_FILENO) ::close(null_fd);
    }
  }
  if (ok && options.input_fd >= 0) {
    ok = ::dup2(options.input_fd, STDIN_FILENO) >= 0;
  }
  if (ok && !options.working_folder.empty()) {
    ok = ::chdir(options.working_folder.c_str()) == 0;
  }
  if (options.without_network && !options.own_namespaces) {
    ::unshare(CLONE_NEWNET);
  }
  SetLimit(RLIMIT_CORE, 0);
  if (options.max_memory_bytes > 0) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    // A sanitizer reserves terabytes of addresses before main begins.
    SetLimit(RLIMIT_AS, options.max_memory_bytes);
#endif
  }
  if (options.max_cpu_time > absl::ZeroDuration()) {
    SetLimit(RLIMIT_CPU, static_cast<uint64_t>(absl::ToInt64Seconds(absl::Ceil(
                             options.max_cpu_time, absl::Seconds(1)))));
  }
  if (options.max_file_bytes > 0)
    SetLimit(RLIMIT_FSIZE, options.max_file_bytes);
  if (options.max_open_files > 0) {
    SetLimit(RLIMIT_NOFILE, options.max_open_files);
  }
  if (options.max_processes > 0) {
    SetLimit(RLIMIT_NPROC, options.max_processes);
  }
  const int error = errno;
  CloseOnExec();
  errno = error;
  if (ok)
    ::execve(prepared.argv[0], prepared.argv.data(),
             prepared.environment.data());
  GiveUp(pipes, errno);
}

}  // namespace

std::string SubprocessExit::ToString() const {
  if (signal == 0) return absl::StrCat("exit code ", exit_code);
  return absl::StrCat("killed by signal ", signal, " (", strsignal(signal),
                      ")");
}

absl::StatusOr<Subprocess> Subprocess::Start(const SubprocessOptions& options) {
  if (options.argv.empty()) {
    return absl::InvalidArgumentError("starting a process without a program");
  }
  absl::StatusOr<Subprocess> started = StartOnce(options);
  if (started.ok() || !options.own_namespaces) return started;
  // Where namespaces are not for us; another trouble comes again.
  SubprocessOptions plain = options;
  plain.own_namespaces = false;
  return StartOnce(plain);
}

absl::StatusOr<Subprocess> Subprocess::StartOnce(
    const SubprocessOptions& options) {
  const std::string what = absl::StrCat("starting '", options.argv[0], "'");
  const Prepared prepared = Prepare(options);
  int error_pipe[2];
  if (::pipe2(error_pipe, O_CLOEXEC) != 0) return ErrnoToStatus(errno, what);
  int status_pipe[2] = {-1, -1};
  if (options.own_namespaces && ::pipe2(status_pipe, O_CLOEXEC) != 0) {
    const int error = errno;
    ::close(error_pipe[0]);
    ::close(error_pipe[1]);
    return ErrnoToStatus(error, what);
  }
  const ChildPipes pipes = {error_pipe[1], status_pipe[1]};
  const pid_t parent = ::getpid();
  const pid_t pid = options.own_namespaces ? Fork(kNamespaces) : ::fork();
  if (pid == 0) ExecChild(options, prepared, parent, pipes);
  int error = pid < 0 ? errno : 0;
  ::close(error_pipe[1]);
  if (status_pipe[1] >= 0) ::close(status_pipe[1]);
  if (pid > 0) {
    ::setpgid(pid, pid);
    ssize_t n;
    do {
      n = ::read(error_pipe[0], &error, sizeof(error));
    } while (n < 0 && errno == EINTR);
    if (error != 0) ::waitpid(pid, nullptr, 0);
  }
  ::close(error_pipe[0]);
  if (error != 0) {
    if (status_pipe[0] >= 0) ::close(status_pipe[0]);
    return ErrnoToStatus(error, what);
  }
  const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  return Subprocess(pid, pidfd, status_pipe[0]);
}

Subprocess::Subprocess(Subprocess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pidfd_(std::exchange(other.pidfd_, -1)),
      status_pipe_(std::exchange(other.status_pipe_, -1)),
      exit_(std::move(other.exit_)) {}

Subprocess& Subprocess::operator=(Subprocess&& other) noexcept {
  if (this != &other) {
    this->~Subprocess();
    new (this) Subprocess(std::move(other));
  }
  return *this;
}

Subprocess::~Subprocess() {
  if (pid_ > 0 && !exit_) {
    Signal(SIGKILL);
    Reap();
  }
  if (pidfd_ >= 0) ::close(pidfd_);
  if (status_pipe_ >= 0) ::close(status_pipe_);
}

void Subprocess::Signal(int signal) {
  if (pid_ > 0 && !exit_) ::kill(-pid_, signal);
}

SubprocessExit Subprocess::Reap() {
  int status = 0;
  struct rusage usage = {};
  pid_t reaped;
  do {
    reaped = ::wait4(pid_, &status, 0, &usage);
  } while (reaped < 0 && errno == EINTR);
  // Unless the first process was ended itself, before it could say anything.
  int told = 0;
  if (status_pipe_ >= 0 &&
      ::read(status_pipe_, &told, sizeof(told)) == sizeof(told)) {
    status = told;
  }
  SubprocessExit result;
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  result.peak_memory_bytes = int64_t{usage.ru_maxrss} * 1024;
  result.cpu_time = absl::DurationFromTimeval(usage.ru_utime) +
                    absl::DurationFromTimeval(usage.ru_stime);
  // Grandchildren share the group; none may outlive the child.
  ::kill(-pid_, SIGKILL);
  exit_ = result;
  return result;
}

std::optional<SubprocessExit> Subprocess::Wait(absl::Duration timeout) {
  if (exit_) return exit_;
  const absl::Time deadline = absl::Now() + timeout;
  while (true) {
    const absl::Duration left =
        std::max(deadline - absl::Now(), absl::ZeroDuration());
    const int64_t ms = std::min<int64_t>(
        absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1))),
        60'000);
    struct pollfd p = {pidfd_, POLLIN, 0};
    if (::poll(&p, 1, static_cast<int>(ms)) > 0) return Reap();
    if (absl::Now() >= deadline) return std::nullopt;
  }
}

SubprocessExit Subprocess::Stop(absl::Duration grace) {
  Signal(SIGTERM);
  if (std::optional<SubprocessExit> done = Wait(grace)) return *done;
  Signal(SIGKILL);
  return Reap();
}

std::string OwnProgramPath() { return "/proc/self/exe"; }

}  // namespace optfarm
