#include "rpc/participant_flags.h"

#include <sched.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "rpc/channel.h"
#include "rpc/server_addresses.h"
#include "rpc/synchronizer.h"

namespace optfarm::rpc {
namespace {

constexpr int64_t kMebibyte = int64_t{1} << 20;
// Products with kMebibyte stay far from overflow.
constexpr int64_t kMaxMebibytes = int64_t{1} << 30;
constexpr double kMaxSeconds = 30 * 86400;
// Less would not even start a child.
constexpr int64_t kLeastDefaultMemoryMb = 1024;

int64_t MachineMebibytes() {
  return int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGE_SIZE) /
         kMebibyte;
}

// A task's process has another working directory.
std::string AbsolutePath(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return error ? path : absolute.string();
}

absl::Status Check(const ParticipantFlags& flags) {
  if (!flags.name.empty() && CleanName(flags.name) != flags.name) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--name '", flags.name,
        "' must be a letter or digit, then letters, digits, '.', '_' or '-', "
        "at most 64 in all"));
  }
  return CheckServers(flags.server);
}

}  // namespace

void DeclareParticipantFlags(CLI::App* app, ParticipantFlags* flags) {
  app->set_version_flag("--version", OPTFARM_VERSION);
  app->add_option("--server", flags->server,
                  "Address of the server, HOST:PORT; of several "
                  "HOST:PORT,HOST:PORT")
      ->capture_default_str();
  app->add_option("--name", flags->name,
                  "Name in lists and logs; default: the host's name");
  app->add_option("--token_file", flags->token_file,
                  "File whose first line is the bearer token");
  app->add_option("--tls_ca", flags->tls.ca,
                  "PEM file of the CA that signed the server's certificate; "
                  "enables TLS");
  app->add_option("--tls_cert", flags->tls.certificate,
                  "PEM file of the client certificate, if the server requires "
                  "one");
  app->add_option("--tls_key", flags->tls.key, "PEM file of its key");
  app->add_option("--work_dir", flags->work_dir,
                  "Folder for tasks and the blob cache, one for each process; "
                  "default: a temporary one")
      ->transform(&AbsolutePath);
  app->add_option("--cache_mb", flags->cache_mb, "Size of the blob cache, MiB")
      ->check(CLI::Range(int64_t{0}, kMaxMebibytes))
      ->capture_default_str();
  app->add_option("--max_memory_mb", flags->memory_mb,
                  "Address space limit of one task, MiB; 0: three quarters of "
                  "the machine's memory, divided by the tasks that run at "
                  "once; -1: no limit")
      ->check(CLI::Range(int64_t{-1}, kMaxMebibytes))
      ->capture_default_str();
  app->add_option("--max_task_seconds", flags->task_seconds,
                  "Wall time limit of one task, seconds")
      ->check(CLI::Range(0.1, kMaxSeconds))
      ->capture_default_str();
  app->add_option("--max_cpu_seconds", flags->cpu_seconds,
                  "CPU time limit of one task, seconds; 0: --max_task_seconds "
                  "times the cores")
      ->check(CLI::Range(0.0, kMaxSeconds))
      ->capture_default_str();
  app->add_option("--max_file_mb", flags->file_mb,
                  "Largest file a task may write, MiB")
      ->check(CLI::Range(int64_t{1}, kMaxMebibytes))
      ->capture_default_str();
  app->add_option("--max_folder_mb", flags->folder_mb,
                  "All that a task may write together, MiB")
      ->check(CLI::Range(int64_t{1}, kMaxMebibytes))
      ->capture_default_str();
  app->add_option("--sandbox", flags->sandbox,
                  "auto: keep tasks in by what the kernel has, and say what it "
                  "lacks; require: take no work where something is missing")
      ->check(CLI::IsMember({"auto", "require"}))
      ->capture_default_str();
  // How the program starts itself again for one task.
  app->add_option("--run_task", flags->run_task)->group("");
}

bool ParseParticipantFlags(CLI::App* app, int argc, char** argv,
                           const ParticipantFlags& flags, int* exit_code) {
  try {
    app->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    *exit_code = app->exit(error) == 0 ? 0 : kUsageExit;
    return false;
  }
  const absl::Status status = Check(flags);
  if (status.ok()) return true;
  std::cerr << status.message() << "\n";
  *exit_code = kUsageExit;
  return false;
}

ChannelOptions ChannelFrom(const ParticipantFlags& flags) {
  ChannelOptions options;
  options.target = flags.server;
  options.token_file = flags.token_file;
  options.tls = flags.tls;
  return options;
}

absl::Status CheckSandbox(const ParticipantFlags& flags) {
  return CheckSandbox(flags, ProbeSandbox());
}

absl::Status CheckSandbox(const ParticipantFlags& flags,
                          const SandboxForce& force) {
  LogInfo("tasks are kept in by ", force.ToString());
  const std::string missing = force.Missing();
  if (missing.empty()) return absl::OkStatus();
  if (flags.sandbox == "require") {
    return absl::FailedPreconditionError(
        absl::StrCat("--sandbox=require: this machine lacks ", missing,
                     "; no work is taken. Run it on Linux 5.13 or newer with "
                     "Landlock and user namespaces, or give --sandbox=auto"));
  }
  LogError("THE SANDBOX IS NOT COMPLETE: this machine lacks ", missing,
           ". A model that breaks out of its task could reach what this user "
           "may; --sandbox=require takes no work here");
  return absl::OkStatus();
}

TaskLimits LimitsFrom(const ParticipantFlags& flags, int slots) {
  TaskLimits limits;
  const int64_t memory_mb =
      flags.memory_mb == 0
          ? std::max(kLeastDefaultMemoryMb, MachineMebibytes() / 4 * 3 / slots)
          : std::max<int64_t>(0, flags.memory_mb);
  limits.max_memory_bytes = static_cast<uint64_t>(memory_mb * kMebibyte);
  limits.max_wall_time = absl::Seconds(flags.task_seconds);
  limits.max_cpu_time = flags.cpu_seconds > 0
                            ? absl::Seconds(flags.cpu_seconds)
                            : limits.max_wall_time * UsableCores();
  limits.max_file_bytes = static_cast<uint64_t>(flags.file_mb * kMebibyte);
  limits.max_folder_bytes = static_cast<uint64_t>(flags.folder_mb * kMebibyte);
  return limits;
}

int UsableCores() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

std::string HostName() {
  char host[256] = {};
  ::gethostname(host, sizeof(host) - 1);
  return CleanName(host);
}

}  // namespace optfarm::rpc
