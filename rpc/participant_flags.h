// The part of the command line that workers and agents share.

#ifndef OPTFARM_RPC_PARTICIPANT_FLAGS_H_
#define OPTFARM_RPC_PARTICIPANT_FLAGS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "base/sandbox.h"
#include "rpc/channel.h"
#include "rpc/task_process.h"

namespace CLI {
class App;
}  // namespace CLI

namespace optfarm::rpc {

// Exit status for a command line that is wrong.
inline constexpr int kUsageExit = 2;

// As typed; zeros stand for defaults that depend on the machine.
struct ParticipantFlags {
  std::string server = "127.0.0.1:7070";
  std::string name;
  std::string token_file;
  ClientTls tls;
  std::string work_dir;
  int64_t cache_mb = 8192;
  int64_t memory_mb = 0;
  int64_t file_mb = 4096;
  int64_t folder_mb = 16384;
  double task_seconds = 3600;
  double cpu_seconds = 0;
  // "auto" or "require".
  std::string sandbox = "auto";
  // Hidden: folder of the task that this process is the child of.
  std::string run_task;
};

// Declares the flags. OWNERSHIP: `flags` must outlive `app`.
void DeclareParticipantFlags(CLI::App* app, ParticipantFlags* flags);

// Reads the command line. Returns true when the program should go on;
// otherwise help, version or what is wrong was printed, and the program should
// exit with `*exit_code`.
bool ParseParticipantFlags(CLI::App* app, int argc, char** argv,
                           const ParticipantFlags& flags, int* exit_code);

// How to reach the server that the flags name.
ChannelOptions ChannelFrom(const ParticipantFlags& flags);

// Looks at what the sandbox of tasks has here, and logs it.
// ERRORS: FailedPrecondition that names what is missing, where the flags
// require all of it.
absl::Status CheckSandbox(const ParticipantFlags& flags);

// The same of what a kernel was found to have.
absl::Status CheckSandbox(const ParticipantFlags& flags,
                          const SandboxForce& force);

// UNITS: slots in tasks at once, which share the machine.
TaskLimits LimitsFrom(const ParticipantFlags& flags, int slots);

// UNITS: logical CPUs that this process may use; at least 1.
int UsableCores();

// The host's name as a participant's or device's name.
std::string HostName();

}  // namespace optfarm::rpc

#endif  // OPTFARM_RPC_PARTICIPANT_FLAGS_H_
