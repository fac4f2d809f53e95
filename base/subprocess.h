// A child process with limits: no shell, its own process group, its output in
// a file or pipe, no descriptor but the first three, ended with the whole
// group.

#ifndef OPTFARM_BASE_SUBPROCESS_H_
#define OPTFARM_BASE_SUBPROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace optfarm {

struct SubprocessOptions {
  // argv[0] is the program's path; it is not searched in PATH.
  std::vector<std::string> argv;
  // Folder to run in; empty: the caller's.
  std::string working_folder;
  // stdout and stderr, appended to this file; empty: inherited.
  std::string output_file;
  // Becomes its standard input; -1: ours, or none with an output file. Stays
  // open here.
  int input_fd = -1;
  // Extra environment, replacing variables of the same name.
  std::vector<std::pair<std::string, std::string>> environment;
  // Of this process's environment the child gets only how text, time and files
  // of libraries are to be found, and what is meant for our programs
  // (OPTFARM_...) and is no token.
  bool clean_environment = false;
  // UNITS: bytes of address space; 0 = no limit.
  uint64_t max_memory_bytes = 0;
  // CPU time, rounded up to seconds; 0 = no limit.
  absl::Duration max_cpu_time;
  // UNITS: bytes of the largest file it may write; 0 = no limit.
  uint64_t max_file_bytes = 0;
  // Open descriptors; 0 = no limit.
  uint64_t max_open_files = 0;
  // Processes and threads of this process's user; 0 = no limit. Root has none.
  uint64_t max_processes = 0;
  // Puts the child into a network namespace of its own where the kernel lets
  // us; silently without effect otherwise.
  bool without_network = false;
  // Puts the child into namespaces of its own for users, processes, mounts, the
  // network and System V's queues, where the kernel lets us: it sees and
  // signals nobody else; silently without effect otherwise.
  bool own_namespaces = false;
  // With own_namespaces: a folder that the child cannot change anything in,
  // whoever its files belong to; empty: none.
  std::string read_only_folder;
  // The child is killed when this process dies, however it dies.
  bool die_with_parent = true;
};

// How a child ended.
struct SubprocessExit {
  // Exit status of a normal end; -1 when a signal ended it.
  int exit_code = -1;
  // The signal that ended it; 0 for a normal end.
  int signal = 0;
  // UNITS: bytes; highest resident set.
  int64_t peak_memory_bytes = 0;
  // User plus system time.
  absl::Duration cpu_time;

  bool ok() const { return exit_code == 0 && signal == 0; }
  // "exit code 3", "killed by signal 9 (Killed)".
  std::string ToString() const;
};

// THREADS: one thread at a time. OWNERSHIP: the destructor kills a child that
// still runs, with its group, and reaps it.
class Subprocess {
 public:
  // ERRORS: InvalidArgument without argv, NotFound when the program is not
  // there, Unavailable when it cannot be started.
  static absl::StatusOr<Subprocess> Start(const SubprocessOptions& options);

  Subprocess(Subprocess&& other) noexcept;
  Subprocess& operator=(Subprocess&& other) noexcept;
  ~Subprocess();

  pid_t pid() const { return pid_; }
  // Sends `signal` to the child's process group. No effect after its end.
  void Signal(int signal);
  // Waits up to `timeout`; nullopt when it still runs then.
  std::optional<SubprocessExit> Wait(absl::Duration timeout);
  // SIGTERM, then SIGKILL after `grace`; returns how it ended.
  SubprocessExit Stop(absl::Duration grace);

 private:
  Subprocess(pid_t pid, int pidfd, int status_pipe)
      : pid_(pid), pidfd_(pidfd), status_pipe_(status_pipe) {}
  static absl::StatusOr<Subprocess> StartOnce(const SubprocessOptions& options);
  SubprocessExit Reap();

  pid_t pid_ = -1;
  int pidfd_ = -1;
  // How the child of a child in namespaces ended; -1: it has none.
  int status_pipe_ = -1;
  std::optional<SubprocessExit> exit_;
};

// A path that starts the running program's own file, for argv[0]: also when the
// file was replaced by a newer one or removed since.
std::string OwnProgramPath();

}  // namespace optfarm

#endif  // OPTFARM_BASE_SUBPROCESS_H_
