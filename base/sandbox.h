// Gives up what this process has no need of, for good: files outside some
// folders, the network, other processes, new privileges. For a process that is
// about to look at what a stranger sent. What the kernel does not know stays as
// it was; the answer says what is in force.

#ifndef OPTFARM_BASE_SANDBOX_H_
#define OPTFARM_BASE_SANDBOX_H_

#include <sched.h>

#include <string>
#include <vector>

namespace optfarm {

struct SandboxOptions {
  // Files and folders, with all below them. Those that are not there are left
  // out.
  std::vector<std::string> readable;
  std::vector<std::string> writable;
};

// What a kernel does for us.
struct SandboxForce {
  // Version of Landlock, 0: none. It keeps a process to its folders.
  int landlock = 0;
  // A list of the system calls that it may make (base/seccomp_filter.h): no
  // sockets, no new processes or programs.
  bool seccomp = false;
  // The process is in a network namespace of its own, without a network.
  bool no_network = false;

  // A child can be started in namespaces of its own for users, processes and
  // mounts, with folders that are read-only there.
  bool namespaces = false;

  bool complete() const { return landlock > 0 && seccomp; }
  // "Landlock 7, seccomp, no network namespace".
  std::string ToString() const;
  // "Landlock, seccomp" of all that there could be; empty: nothing.
  std::string Missing() const;
};

// What every program of ours reads while it runs: libraries, the machine's
// state, the time zone. Nothing below /home, /etc or /var that holds a secret.
std::vector<std::string> SystemPaths();

// Enters the sandbox. Descriptors that are open stay usable.
// REQUIRES: no other thread runs; those would stay outside.
SandboxForce EnterSandbox(const SandboxOptions& options);

// The namespaces that a child is started in.
inline constexpr int kNamespaces = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET |
                                   CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNS;

// Makes the folder and all below it read-only in this process's namespace of
// mounts, which must be its own. Calls the system alone.
bool MakeReadOnly(const char* folder);

// What EnterSandbox would bring into force here, without entering.
SandboxForce ProbeSandbox();

}  // namespace optfarm

#endif  // OPTFARM_BASE_SANDBOX_H_
