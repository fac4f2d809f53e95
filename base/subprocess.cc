#include "base/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
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

extern char** environ;

namespace optfarm {
namespace {

// Everything the child needs between fork and exec, prepared before the fork:
// after it only async-signal-safe calls are allowed.
struct Prepared {
  std::vector<std::string> environment_strings;
  std::vector<char*> argv;
  std::vector<char*> environment;
};

Prepared Prepare(const SubprocessOptions& options) {
  Prepared p;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const absl::string_view text(*entry);
    const bool replaced = std::any_of(
        options.environment.begin(), options.environment.end(),
        [&](const auto& kv) {
          return absl::StartsWith(text, absl::StrCat(kv.first, "="));
        });
    if (!replaced) p.environment_strings.emplace_back(text);
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

// Runs in the child. Writes errno to `error_pipe` and exits when it fails.
[[noreturn]] void ExecChild(const SubprocessOptions& options,
                            const Prepared& prepared, pid_t parent,
                            int error_pipe) {
  ::setpgid(0, 0);
  if (options.die_with_parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);
  }
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
  if (ok && !options.working_folder.empty()) {
    ok = ::chdir(options.working_folder.c_str()) == 0;
  }
  if (options.without_network) ::unshare(CLONE_NEWNET);
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
  if (ok)
    ::execve(prepared.argv[0], prepared.argv.data(),
             prepared.environment.data());
  const int error = errno;
  [[maybe_unused]] ssize_t n = ::write(error_pipe, &error, sizeof(error));
  ::_exit(127);
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
  const std::string what = absl::StrCat("starting '", options.argv[0], "'");
  const Prepared prepared = Prepare(options);
  int error_pipe[2];
  if (::pipe2(error_pipe, O_CLOEXEC) != 0) return ErrnoToStatus(errno, what);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) ExecChild(options, prepared, parent, error_pipe[1]);
  const int fork_error = errno;
  ::close(error_pipe[1]);
  if (pid < 0) {
    ::close(error_pipe[0]);
    return ErrnoToStatus(fork_error, what);
  }
  ::setpgid(pid, pid);
  int child_error = 0;
  ssize_t n;
  do {
    n = ::read(error_pipe[0], &child_error, sizeof(child_error));
  } while (n < 0 && errno == EINTR);
  ::close(error_pipe[0]);
  if (n > 0) {
    ::waitpid(pid, nullptr, 0);
    return ErrnoToStatus(child_error, what);
  }
  const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  return Subprocess(pid, pidfd);
}

Subprocess::Subprocess(Subprocess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pidfd_(std::exchange(other.pidfd_, -1)),
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
