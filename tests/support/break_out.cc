#include "tests/support/break_out.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <functional>

#include "absl/strings/str_cat.h"
#include "base/files.h"

namespace optfarm::testing {
namespace {

// The descriptors beyond the first three that are open to the secret.
bool HoldsOpen(const std::string& secret) {
  for (int fd = 3; fd < 1024; ++fd) {
    char target[4096];
    const ssize_t n = ::readlink(absl::StrCat("/proc/self/fd/", fd).c_str(),
                                 target, sizeof(target));
    if (n > 0 && secret == std::string(target, static_cast<size_t>(n))) {
      return true;
    }
  }
  return false;
}

// What it can do to the process that started it, and to any other.
void ReachFor(pid_t other, const std::function<void(bool, const char*)>& note) {
  siginfo_t info = {};
  info.si_code = SI_QUEUE;
  rlimit limit = {};
  note(::syscall(SYS_tgkill, other, other, 0) == 0, "could signal a thread");
  note(::syscall(SYS_tkill, other, 0) == 0, "could signal a thread by its id");
  note(::syscall(SYS_rt_sigqueueinfo, other, 0, &info) == 0,
       "could queue a signal");
  note(::syscall(SYS_rt_tgsigqueueinfo, other, other, 0, &info) == 0,
       "could queue a signal to a thread");
  note(::syscall(SYS_prlimit64, other, RLIMIT_NOFILE, nullptr, &limit) == 0,
       "read the limits of another process");
  note(::ptrace(PTRACE_ATTACH, other, nullptr, nullptr) == 0,
       "traced another process");
  note(::syscall(434, other, 0) >= 0, "got hold of another process");
  note(::syscall(SYS_process_vm_readv, other, nullptr, 0, nullptr, 0, 0) == 0,
       "reached the memory of another process");
  note(::setpriority(PRIO_PROCESS, static_cast<id_t>(other), 19) == 0,
       "slowed another process down");
}

// Calls that no task needs, each with arguments that another process of this
// user could make it with.
void CallTheKernel(const std::function<void(bool, const char*)>& note) {
  char text[256] = {};
  int two[2];
  note(::syscall(425, 1, text) >= 0, "made an io_uring");
  note(::syscall(SYS_bpf, 0, text, sizeof(text)) >= 0 || errno == EINVAL,
       "reached bpf");
  // KEYCTL_GET_KEYRING_ID of the session's, for which one would be made.
  note(::syscall(SYS_keyctl, 0, -3, 1) >= 0, "reached keys");
  note(::syscall(SYS_userfaultfd, 1) >= 0, "handles faults of pages");
  note(::syscall(SYS_perf_event_open, text, 0, -1, -1, 0) >= 0 ||
           errno == EINVAL || errno == EFAULT,
       "reached counters of performance");
  note(::mount("none", "/tmp", "tmpfs", 0, nullptr) == 0, "mounted");
  note(::umount2("/proc", MNT_DETACH) == 0, "unmounted");
  note(::syscall(SYS_shmget, 0, 4096, 0600) >= 0, "made shared memory");
  note(::syscall(SYS_memfd_create, "x", 0) >= 0, "made a file of memory");
  note(::syscall(SYS_inotify_init1, 0) >= 0, "watches files");
  note(::syscall(SYS_personality, 0x0040000) >= 0, "changed what it is");
  note(::syscall(SYS_quotactl, 0, "/", 0, nullptr) >= 0 || errno == ENODEV,
       "reached quotas");
  note(::syscall(SYS_pipe2, two, 0) == 0, "made a pipe");
  note(::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0, "made itself readable");
  note(::prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0) == 0, "may outlive the worker");
  // What libraries try is told to be unknown: they do without.
  note(::syscall(1000) == 0 || errno != ENOSYS, "cannot ask for new calls");
  note(::syscall(435, text, 0) == 0 || errno != ENOSYS,
       "cannot do without clone3");
#if defined(__x86_64__)
  // ARCH_REQ_XCOMP_PERM for AMX: where there is none, an error of its own.
  note(::syscall(SYS_arch_prctl, 0x1023, 18) != 0 &&
           (errno == EPERM || errno == ENOSYS),
       "lost the tiles of AMX");
#endif
}

// Its input, which others read.
void SpoilInput(const std::string& input,
                const std::function<void(bool, const char*)>& note) {
  note(::open(input.c_str(), O_WRONLY) >= 0, "changed its input");
  note(::open(input.c_str(), O_RDONLY | O_TRUNC) >= 0, "emptied what it read");
  note(::chmod(input.c_str(), 0) == 0, "locked its input for others");
  note(::truncate(input.c_str(), 0) == 0, "emptied its input");
  note(::utimensat(AT_FDCWD, input.c_str(), nullptr, 0) == 0,
       "touched its input");
  note(::unlink(input.c_str()) == 0, "removed its input");
  const int fd = ::open(input.c_str(), O_RDONLY);
  note(fd < 0, "cannot read its input");
  note(::fchmod(fd, 0) == 0, "locked its open input");
  note(::fsetxattr(fd, "user.x", "x", 1, 0) == 0, "marked its input");
  // Signals of a descriptor go to whom it belongs.
  note(::fcntl(fd, F_SETOWN, ::getppid()) == 0, "gave a descriptor away");
  note(::fcntl(fd, F_SETLEASE, F_RDLCK) == 0, "holds a lease of its input");
  ::close(fd);
}

}  // namespace

std::vector<std::string> BreakOut(const std::string& in, const std::string& out,
                                  const std::string& secret) {
  std::vector<std::string> worked;
  const std::function<void(bool, const char*)> note = [&](bool done,
                                                          const char* what) {
    if (done) worked.emplace_back(what);
  };
  note(::socket(AF_INET, SOCK_STREAM, 0) >= 0, "opened a TCP socket");
  note(::socket(AF_INET, SOCK_DGRAM, 0) >= 0, "opened a UDP socket");
  note(::socket(AF_UNIX, SOCK_STREAM, 0) >= 0, "opened a local socket");
  note(ReadFile(secret).ok(), "read the token");
  note(ReadFile("/etc/passwd").ok(), "read /etc/passwd");
  note(ReadFile(absl::StrCat("/proc/", ::getppid(), "/environ")).ok(),
       "read the environment of the worker");
  note(ReadFile("/proc/1/cmdline").ok(), "read what others were started with");
  note(!ReadFile("/proc/self/status").ok(), "lost sight of itself");
  note(::open(secret.c_str(), O_WRONLY | O_TRUNC) >= 0, "wrote the token");
  note(::truncate(secret.c_str(), 0) == 0, "emptied the token");
  note(::unlink(secret.c_str()) == 0, "removed the token");
  note(WriteFileAtomically("/tmp/optfarm-broke-out", "x").ok(), "wrote /tmp");
  SpoilInput(JoinPath(in, "model.pb"), note);
  CallTheKernel(note);
#if defined(__x86_64__)
  // ARCH_GET_XCOMP_SUPP: kernels that do not know it say EINVAL.
  uint64_t features = 0;
  note(::syscall(SYS_arch_prctl, 0x1021, &features) != 0 && errno == EPERM,
       "may not ask for the processor's matrix unit");
#endif
  note(HoldsOpen(secret), "inherited the open token");
  note(std::getenv(kForeignVariable) != nullptr,
       "read what the worker was started with");
  rlimit processes = {};
  note(::getrlimit(RLIMIT_NPROC, &processes) != 0 ||
           processes.rlim_cur == RLIM_INFINITY,
       "may start threads without end");
  ReachFor(::getppid(), note);
  // The process that started the first one of a namespace cannot be named from
  // within; without namespaces it is getppid.
  if (const char* starter = std::getenv(kStarterVariable)) {
    ReachFor(static_cast<pid_t>(std::atoi(starter)), note);
  }
  note(::symlink(secret.c_str(), JoinPath(out, "link").c_str()) == 0,
       "made a link to the token");
  note(::link(secret.c_str(), JoinPath(out, "token").c_str()) == 0,
       "linked the token into its results");
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  note(child > 0, "started a process");
  char shell[] = "/bin/true";
  char* const argv[] = {shell, nullptr};
  // Would not come back.
  ::execve(shell, argv, nullptr);
  note(::kill(::getppid(), 0) == 0, "could end the worker");
  note(::unshare(CLONE_NEWUSER) == 0, "made a user namespace");
  note(::chroot("/") == 0, "changed its root");
  note(::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1, "may get privileges");
  return worked;
}

}  // namespace optfarm::testing
