#include "base/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <iterator>

#include "base/seccomp_filter.h"

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

#ifndef MOUNT_ATTR_RDONLY
#define MOUNT_ATTR_RDONLY 1
#endif
#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif
// struct mount_attr.
struct MountAttributes {
  uint64_t set = 0;
  uint64_t clear = 0;
  uint64_t propagation = 0;
  uint64_t user_namespace = 0;
};
constexpr long kMountSetattr = 442;

// A process of new namespaces, which may call the system alone: can it do in
// there what a task's start does?
bool NamespacesServe() {
  const int groups = ::open("/proc/self/setgroups", O_WRONLY | O_CLOEXEC);
  return groups >= 0 && ::write(groups, "deny", 4) == 4 &&
         ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         MakeReadOnly("/usr");
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
  force.seccomp = EnterSeccompFilter();
  return force;
}

bool MakeReadOnly(const char* folder) {
  MountAttributes attributes;
  attributes.set = MOUNT_ATTR_RDONLY;
  return ::mount(folder, folder, nullptr, MS_BIND | MS_REC, nullptr) == 0 &&
         ::syscall(kMountSetattr, AT_FDCWD, folder, AT_RECURSIVE, &attributes,
                   sizeof(attributes)) == 0;
}

SandboxForce ProbeSandbox() {
  SandboxForce force;
  int answer[2];
  if (::pipe2(answer, O_CLOEXEC) != 0) return force;
  const pid_t child = ::fork();
  if (child == 0) {
    // Only system calls: other threads may have held any lock.
    const pid_t inner = static_cast<pid_t>(
        ::syscall(SYS_clone, SIGCHLD | kNamespaces, 0, 0, 0, 0));
    if (inner == 0) {
      ::_exit(NamespacesServe() ? 0 : 1);
    }
    int ended = 1;
    if (inner > 0) ::waitpid(inner, &ended, 0);
    const char no_network = ::unshare(CLONE_NEWNET) == 0 ? 1 : 0;
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    static const sock_filter allow[] = {
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
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
    force.seccomp = parts[1] != 0 && HasSeccompFilter();
    force.namespaces = parts[2] != 0;
  }
  ::close(answer[0]);
  if (child > 0) ::waitpid(child, nullptr, 0);
  force.landlock = LandlockAbi();
  return force;
}

}  // namespace optfarm
