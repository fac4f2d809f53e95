#include "base/seccomp_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <initializer_list>
#include <iterator>
#include <vector>

namespace optfarm {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#elif defined(__arm__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_ARM;
#else
constexpr uint32_t kArchitecture = 0;
#endif

// What tasks call whose arguments do not matter. `scripts/task_syscalls`
// records what they do call; around that are the other calls that the C library
// of another version or processor makes for the same functions. Everything here
// works on this process, or on files that Landlock lets it open.
constexpr uint32_t kAllowed[] = {
    // Memory.
    SYS_brk, SYS_madvise, SYS_membarrier, SYS_mincore, SYS_mlock, SYS_mprotect,
    SYS_mremap, SYS_msync, SYS_munlock, SYS_munmap, SYS_get_mempolicy,
    // Threads.
    SYS_exit, SYS_exit_group, SYS_futex, SYS_get_robust_list, SYS_getcpu,
    SYS_gettid, SYS_rseq, SYS_sched_get_priority_max,
    SYS_sched_get_priority_min, SYS_sched_getaffinity, SYS_sched_getparam,
    SYS_sched_getscheduler, SYS_sched_setaffinity, SYS_sched_yield,
    SYS_set_robust_list, SYS_set_tid_address,
    // Files.
    SYS_chdir, SYS_close,
    436,  // close_range
    SYS_copy_file_range, SYS_dup, SYS_dup3, SYS_faccessat,
    439,  // faccessat2
    SYS_fallocate, SYS_fdatasync, SYS_flock, SYS_fstatfs, SYS_fsync,
    SYS_ftruncate, SYS_getcwd, SYS_getdents64, SYS_lseek, SYS_mkdirat,
    SYS_pread64, SYS_preadv, SYS_preadv2, SYS_pwrite64, SYS_pwritev,
    SYS_pwritev2, SYS_read, SYS_readahead, SYS_readlinkat, SYS_readv,
    SYS_renameat2, SYS_sendfile, SYS_statfs, SYS_statx, SYS_umask, SYS_unlinkat,
    SYS_write, SYS_writev,
    // What waits for, reads from and writes to a descriptor that was given.
    SYS_ppoll, SYS_pselect6, SYS_recvfrom, SYS_sendto,
    // Time.
    SYS_clock_getres, SYS_clock_gettime, SYS_clock_nanosleep, SYS_getitimer,
    SYS_gettimeofday, SYS_nanosleep, SYS_setitimer, SYS_times,
    // Handlers of signals.
    SYS_restart_syscall, SYS_rt_sigaction, SYS_rt_sigpending,
    SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_rt_sigsuspend,
    SYS_rt_sigtimedwait, SYS_sigaltstack,
    // What this process and machine are.
    SYS_getegid, SYS_geteuid, SYS_getgid, SYS_getpid, SYS_getppid,
    SYS_getrandom, SYS_getrusage, SYS_getuid, SYS_sysinfo, SYS_uname,
#if defined(__x86_64__) || defined(__aarch64__)
    SYS_fadvise64, SYS_fstat, SYS_mmap, SYS_newfstatat,
#endif
#if defined(__x86_64__) || defined(__arm__)
    SYS_access, SYS_dup2, SYS_lstat, SYS_mkdir, SYS_pause, SYS_poll,
    SYS_readlink, SYS_rename, SYS_renameat, SYS_rmdir, SYS_stat, SYS_unlink,
#endif
#if defined(__x86_64__)
    SYS_alarm,
    // Threads' own memory, and the permission to use matrix tiles (AMX).
    SYS_arch_prctl, SYS_creat, SYS_getdents, SYS_getrlimit, SYS_select,
    SYS_time,
#endif
#if defined(__aarch64__)
    SYS_renameat,
#endif
#if defined(__arm__)
    SYS__llseek, SYS__newselect, SYS_arm_fadvise64_64, SYS_fstat, SYS_fstat64,
    SYS_fstatat64, SYS_fstatfs64, SYS_ftruncate64, SYS_getegid32, SYS_geteuid32,
    SYS_getgid32, SYS_getuid32, SYS_lstat64, SYS_mmap2, SYS_sendfile64,
    SYS_sigreturn, SYS_stat64, SYS_statfs64, SYS_ugetrlimit,
    // Those that tell the time in 64 bits.
    403,       // clock_gettime64
    406,       // clock_getres_time64
    407,       // clock_nanosleep_time64
    413,       // pselect6_time64
    414,       // ppoll_time64
    421,       // rt_sigtimedwait_time64
    422,       // futex_time64
    0x0f0002,  // cacheflush
    0x0f0005,  // set_tls
    0x0f0006,  // get_tls
#endif
};

// What a process asks prctl about itself.
constexpr uint32_t kPrctl[] = {
    PR_GET_DUMPABLE,
    PR_SET_NAME,
    PR_GET_NAME,
    PR_GET_NO_NEW_PRIVS,
    50,          // PR_SVE_SET_VL
    51,          // PR_SVE_GET_VL
    55,          // PR_SET_TAGGED_ADDR_CTRL
    56,          // PR_GET_TAGGED_ADDR_CTRL
    0x53564d41,  // PR_SET_VMA: names of memory
};

// Not those that have somebody else signalled when a descriptor is ready, nor
// leases of files.
constexpr uint32_t kFcntl[] = {
    F_DUPFD, F_GETFD, F_SETFD,         F_GETFL,
    F_SETFL, F_GETLK, F_SETLK,         F_SETLKW,
    12,  // F_GETLK64 and the next two, where they have numbers of their own
    13,      14,      F_DUPFD_CLOEXEC,
    36,  // F_OFD_GETLK and the next two
    37,      38,
};

// Is it a terminal, how much can be read, closing on exec.
constexpr uint32_t kIoctl[] = {TCGETS, FIONREAD, FIOCLEX, FIONCLEX};

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
constexpr size_t Argument(int index) {
  return offsetof(seccomp_data, args) + sizeof(uint64_t) * index;
}

constexpr uint32_t kRefuse = SECCOMP_RET_ERRNO | EPERM;

class FilterWriter {
 public:
  void Add(std::initializer_list<sock_filter> steps) {
    filter_.insert(filter_.end(), steps);
  }
  // Allows the call whatever its arguments.
  void Allow(uint32_t number) {
    Add({IfEqual(number, 0, 1), Return(SECCOMP_RET_ALLOW)});
  }
  // Decides about call `number`: it may be made when its argument `index`, of
  // which kernels look at 32 bits, is one of `values`.
  template <typename Values>
  void AllowWith(uint32_t number, int index, const Values& values,
                 uint32_t otherwise = kRefuse) {
    const auto count = static_cast<uint8_t>(std::size(values));
    Add({IfEqual(number, 0, static_cast<uint8_t>(count + 3)),
         Load(Argument(index))});
    uint8_t left = count;
    for (const uint32_t value : values) Add({IfEqual(value, left--, 0)});
    Add({Return(otherwise), Return(SECCOMP_RET_ALLOW)});
  }

  // Allows the call unless its flags, argument `index`, ask for an emptied file
  // that is open for reading alone: Linux before 6.2 empties it where Landlock
  // allows to read.
  void AllowOpening(uint32_t number, int index) {
    Add({IfEqual(number, 0, 5), Load(Argument(index)),
         BPF_STMT(BPF_ALU | BPF_AND | BPF_K, O_TRUNC | O_ACCMODE),
         IfEqual(O_TRUNC | O_RDONLY, 0, 1), Return(kRefuse),
         Return(SECCOMP_RET_ALLOW)});
  }

  std::vector<sock_filter> filter_;
};

// Little-endian throughout: an argument's lower half is at its begin.
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

std::vector<sock_filter> Filter() {
  FilterWriter out;
  out.Add({Load(offsetof(seccomp_data, arch)), IfEqual(kArchitecture, 1, 0),
           Return(SECCOMP_RET_KILL_PROCESS), Load(offsetof(seccomp_data, nr))});
  for (const uint32_t number : kAllowed) out.Allow(number);
  out.AllowOpening(SYS_openat, 2);
#if defined(__x86_64__) || defined(__arm__)
  out.AllowOpening(SYS_open, 1);
#endif
  // A process signals itself when it aborts, and asks for its own limits.
  const auto self = static_cast<uint32_t>(::getpid());
  out.AllowWith(SYS_tgkill, 0, std::initializer_list<uint32_t>{self});
  out.AllowWith(SYS_prlimit64, 0, std::initializer_list<uint32_t>{0, self});
  out.AllowWith(SYS_prctl, 0, kPrctl);
  out.AllowWith(SYS_ioctl, 1, kIoctl, SECCOMP_RET_ERRNO | ENOTTY);
  out.AllowWith(SYS_fcntl, 1, kFcntl);
#if defined(__arm__)
  out.AllowWith(SYS_fcntl64, 1, kFcntl);
#endif
  // Threads yes, processes no.
  out.Add({IfEqual(SYS_clone, 0, 4), Load(Argument(0)),
           BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1),
           Return(SECCOMP_RET_ALLOW), Return(kRefuse)});
  // Calls since Linux 5.1 have these numbers on all processors; clone3, whose
  // arguments cannot be seen, is one of them. Those of x32 are beyond.
  out.Add({BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 424, 0, 2),
           BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 1024, 1, 0),
           Return(SECCOMP_RET_ERRNO | ENOSYS), Return(kRefuse)});
  return out.filter_;
}

}  // namespace

bool HasSeccompFilter() { return kArchitecture != 0; }

bool EnterSeccompFilter() {
  if (!HasSeccompFilter()) return false;
  std::vector<sock_filter> filter = Filter();
  const sock_fprog program = {static_cast<unsigned short>(filter.size()),
                              filter.data()};
  return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace optfarm
