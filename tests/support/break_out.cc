#include "tests/support/break_out.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "base/files.h"

namespace optfarm::testing {

std::vector<std::string> BreakOut(const std::string& in, const std::string& out,
                                  const std::string& secret) {
  std::vector<std::string> worked;
  const auto note = [&](bool done, const char* what) {
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
  note(::open(JoinPath(in, "model.pb").c_str(), O_WRONLY) >= 0,
       "changed its input");
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
