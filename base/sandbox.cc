#include "base/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <iterator>

namespace optfarm {
namespace {

// Headers may be older than the kernel: rights by their bits, ABI by ABI.
constexpr uint64_t kReadFile = 1u << 2;
constexpr uint64_t kReadFolder = 1u << 3;
constexpr uint64_t kExecute = 1u << 0;
constexpr uint64_t kRead = kReadFile | kReadFolder | kExecute;
constexpr uint64_t kOfFiles = kExecute | (1u << 1) | kReadFile | (1u << 14);
constexpr uint64_t kMakeNodes =
    (1u << 6) | (1u << 9) | (1u << 10) | (1u << 11);  // char, sock, fifo, block
constexpr uint64_t kTcp = 3;                          // bind and connect
constexpr uint64_t kScoped = 3;  // abstract sockets and signals

// struct landlock_ruleset_attr of ABI 6.
struct Ruleset {
  uint64_t files = 0;
  uint64_t network = 0;
  uint64_t scoped = 0;
};

uint64_t AllFileRights(int abi) {
  uint64_t rights = (1u << 13) - 1;
  if (abi >= 2) rights |= 1u << 13;  // link and rename between folders
  if (abi >= 3) rights |= 1u << 14;  // truncate
  if (abi >= 5) rights |= 1u << 15;  // ioctl of devices
  return rights;
}

int LandlockAbi() {
  const long abi = ::syscall(SYS_landlock_create_ruleset, nullptr, 0,
                             LANDLOCK_CREATE_RULESET_VERSION);
  return abi > 0 ? static_cast<int>(abi) : 0;
}

void Allow(int ruleset, const std::string& path, uint64_t rights) {
  const int fd = ::open(path.c_str(), O_PATH | O_CLOEXEC);
  if (fd < 0) return;
  struct stat info;
  const bool folder = ::fstat(fd, &info) == 0 && S_ISDIR(info.st_mode);
  landlock_path_beneath_attr rule = {};
  rule.allowed_access = folder ? rights : rights & kOfFiles;
  rule.parent_fd = fd;
  ::syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule,
            0);
  ::close(fd);
}

// The version in force; 0: none.
int EnterLandlock(const SandboxOptions& options) {
  const int abi = LandlockAbi();
  if (abi == 0) return 0;
  Ruleset rules;
  rules.files = AllFileRights(abi);
  size_t size = sizeof(rules.files);
  if (abi >= 4) {
    rules.network = kTcp;
    size += sizeof(rules.network);
  }
  if (abi >= 6) {
    rules.scoped = kScoped;
    size += sizeof(rules.scoped);
  }
  const int fd =
      static_cast<int>(::syscall(SYS_landlock_create_ruleset, &rules, size, 0));
  if (fd < 0) return 0;
  for (const std::string& path : options.readable) {
    Allow(fd, path, kRead & rules.files);
  }
  for (const std::string& path : options.writable) {
    Allow(fd, path, rules.files & ~(kMakeNodes | kExecute));
  }
  // Whatever prints nothing prints it there.
  Allow(fd, "/dev/null", kOfFiles & rules.files & ~kExecute);
  const bool entered = ::syscall(SYS_landlock_restrict_self, fd, 0) == 0;
  ::close(fd);
  return entered ? abi : 0;
}

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#elif defined(__arm__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_ARM;
#else
constexpr uint32_t kArchitecture = 0;
#endif

// What a task that only computes never asks for. io_uring would do the others'
// work unseen. Inputs are links to files that other tasks read: what Landlock
// does not guard of them (modes, owners, attributes, and in old versions their
// length) is out of reach too.
constexpr uint32_t kRefused[] = {
    SYS_socket,
    SYS_socketpair,
    SYS_connect,
    SYS_bind,
    SYS_listen,
    SYS_io_uring_setup,
#ifdef SYS_fork
    SYS_fork,
    SYS_vfork,
#endif
    SYS_execve,
    SYS_execveat,
    SYS_kill,
    SYS_tkill,
    SYS_rt_sigqueueinfo,
    SYS_rt_tgsigqueueinfo,
    434,  // pidfd_open
    440,  // process_madvise
    448,  // process_mrelease
    SYS_kcmp,
    SYS_setpriority,
    SYS_ioprio_set,
    SYS_sched_setscheduler,
    SYS_sched_setparam,
    SYS_sched_setattr,
    SYS_migrate_pages,
    SYS_move_pages,
    SYS_shmget,
    SYS_semget,
    SYS_msgget,
    SYS_mq_open,
#ifdef SYS_chmod
    SYS_chmod,
    SYS_chown,
    SYS_lchown,
    SYS_mknod,
#endif
#ifdef SYS_utime
    SYS_utime,
    SYS_utimes,
    SYS_futimesat,
#endif
    SYS_fchmod,
    SYS_fchmodat,
    452,  // fchmodat2
    SYS_fchown,
    SYS_fchownat,
    SYS_mknodat,
    SYS_utimensat,
    SYS_setxattr,
    SYS_lsetxattr,
    SYS_fsetxattr,
    SYS_removexattr,
    SYS_lremovexattr,
    SYS_fremovexattr,
    SYS_truncate,
#ifdef SYS_truncate64
    SYS_truncate64,
    SYS_chown32,
    SYS_fchown32,
    SYS_lchown32,
#endif
    SYS_pidfd_send_signal,
    SYS_pidfd_getfd,
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_unshare,
    SYS_setns,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_open_by_handle_at,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_sethostname,
    SYS_personality,
};

constexpr sock_filter Load(size_t offset) {
  return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset));
}
constexpr sock_filter Return(uint32_t what) {
  return BPF_STMT(BPF_RET | BPF_K, what);
}
// Skips `yes` or `no` steps.
constexpr sock_filter IfEqual(uint32_t value, uint8_t yes, uint8_t no) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no);
}

// Refuses `number` unless its first argument, a process, is one of `allowed`.
void RefuseForOthers(uint32_t number, const std::vector<uint32_t>& allowed,
                     std::vector<sock_filter>& filter) {
  const auto count = static_cast<uint8_t>(allowed.size());
  filter.push_back(IfEqual(number, 0, static_cast<uint8_t>(count + 3)));
  filter.push_back(Load(offsetof(seccomp_data, args[0])));
  for (uint8_t i = 0; i < count; ++i) {
    filter.push_back(IfEqual(allowed[i], static_cast<uint8_t>(count - i), 0));
  }
  filter.push_back(Return(SECCOMP_RET_ERRNO | EPERM));
  filter.push_back(Return(SECCOMP_RET_ALLOW));
}

std::vector<sock_filter> Filter() {
  const uint32_t refuse = SECCOMP_RET_ERRNO | EPERM;
  std::vector<sock_filter> filter = {
      Load(offsetof(seccomp_data, arch)),
      IfEqual(kArchitecture, 1, 0),
      Return(SECCOMP_RET_KILL_PROCESS),
      Load(offsetof(seccomp_data, nr)),
  };
#if defined(__x86_64__)
  // Calls of x32 have numbers of their own.
  filter.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1));
  filter.push_back(Return(refuse));
#endif
  for (const uint32_t number : kRefused) {
    filter.push_back(IfEqual(number, 0, 1));
    filter.push_back(Return(refuse));
  }
  // A process signals itself when it aborts, and asks for its own limits.
  const auto self = static_cast<uint32_t>(::getpid());
  RefuseForOthers(SYS_tgkill, {self}, filter);
  RefuseForOthers(SYS_prlimit64, {0, self}, filter);
  // Its arguments cannot be seen; without it the C library takes clone.
  filter.push_back(IfEqual(SYS_clone3, 0, 1));
  filter.push_back(Return(SECCOMP_RET_ERRNO | ENOSYS));
  // Threads yes, processes no.
  filter.push_back(IfEqual(SYS_clone, 0, 3));
  filter.push_back(Load(offsetof(seccomp_data, args[0])));
  filter.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 1, 0));
  filter.push_back(Return(refuse));
  filter.push_back(Return(SECCOMP_RET_ALLOW));
  return filter;
}

bool EnterSeccomp() {
  if (kArchitecture == 0) return false;
  std::vector<sock_filter> filter = Filter();
  const sock_fprog program = {static_cast<unsigned short>(filter.size()),
                              filter.data()};
  return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace

// Of /proc only what is this process's own and what is the machine's: Landlock
// keeps others' memory from it, and not everything else that is told of them.
std::vector<std::string> SystemPaths() {
  return {"/usr",
          "/lib",
          "/lib32",
          "/lib64",
          "/proc/self",
          "/proc/cpuinfo",
          "/proc/loadavg",
          "/proc/meminfo",
          "/proc/stat",
          "/proc/sys/kernel",
          "/proc/sys/vm",
          "/proc/version",
          "/sys",
          "/dev/urandom",
          "/dev/zero",
          "/etc/ld.so.cache",
          "/etc/ld.so.preload",
          "/etc/localtime",
          "/etc/os-release"};
}

SandboxForce EnterSandbox(const SandboxOptions& options) {
  SandboxForce force;
  // Before: asking for a namespace is what the filter refuses.
  force.no_network = ::unshare(CLONE_NEWNET) == 0;
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  force.landlock = EnterLandlock(options);
  force.seccomp = EnterSeccomp();
  return force;
}

SandboxForce ProbeSandbox() {
  SandboxForce force;
  int answer[2];
  if (::pipe2(answer, O_CLOEXEC) != 0) return force;
  const pid_t child = ::fork();
  if (child == 0) {
    // Only system calls: other threads may have held any lock.
    const pid_t inner = static_cast<pid_t>(
        ::syscall(SYS_clone,
                  SIGCHLD | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET |
                      CLONE_NEWIPC | CLONE_NEWUTS,
                  0, 0, 0, 0));
    if (inner == 0) {
      const int groups = ::open("/proc/self/setgroups", O_WRONLY | O_CLOEXEC);
      ::_exit(groups >= 0 && ::write(groups, "deny", 4) == 4 ? 0 : 1);
    }
    int ended = 1;
    if (inner > 0) ::waitpid(inner, &ended, 0);
    const char no_network = ::unshare(CLONE_NEWNET) == 0 ? 1 : 0;
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    static const sock_filter allow[] = {Return(SECCOMP_RET_ALLOW)};
    const sock_fprog program = {std::size(allow),
                                const_cast<sock_filter*>(allow)};
    const char seccomp =
        ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 ? 1 : 0;
    const char namespaces = inner > 0 && ended == 0 ? 1 : 0;
    const char parts[3] = {no_network, seccomp, namespaces};
    [[maybe_unused]] const ssize_t n = ::write(answer[1], parts, sizeof(parts));
    ::_exit(0);
  }
  ::close(answer[1]);
  char parts[3] = {0, 0, 0};
  if (child > 0 && ::read(answer[0], parts, sizeof(parts)) == 3) {
    // In namespaces of its own it has no network either.
    force.no_network = parts[0] != 0 || parts[2] != 0;
    force.seccomp = parts[1] != 0 && kArchitecture != 0;
    force.namespaces = parts[2] != 0;
  }
  ::close(answer[0]);
  if (child > 0) ::waitpid(child, nullptr, 0);
  force.landlock = LandlockAbi();
  return force;
}

}  // namespace optfarm
