// The command line of optfarm-agent.

#ifndef OPTFARM_DEVICE_AGENT_FLAGS_H_
#define OPTFARM_DEVICE_AGENT_FLAGS_H_

#include <optional>
#include <string>
#include <vector>

#include "device_agent/quiet_gate.h"
#include "rpc/participant_flags.h"
#include "rpc/task_child.h"

namespace optfarm::device_agent {

struct Flags {
  rpc::ParticipantFlags shared;
  // "local" or "adb".
  std::string driver = "local";
  // UNITS: threads; empty: the engine's default.
  std::vector<int> threads;
  QuietLimits quiet;
  // UNITS: seconds a benchmark waits, before its first run, for a quiet device,
  // where the job does not say.
  double cool_down_seconds = 60;
  // "", "big" or numbers with commas; where the job does not say.
  std::string cpus;
  // Program that starts a benchmark's process, given the agent's path and
  // flags; empty: the kernel does.
  std::string launcher;
  // Runtimes to measure with beside Optfarm's, "onnxruntime:FILE".
  std::vector<std::string> engines;
  // Benchmarks run without base/sandbox.h.
  bool no_sandbox = false;
  // Pools and other words to choose the devices by.
  std::vector<std::string> tags;

  // The rest is about --driver=adb.
  std::string adb = "adb";
  // Folder with optfarm-agent-arm64-v8a and so on: what runs on the phones.
  std::string phone_programs;
  // Asks Android for a fixed clock while it measures.
  bool fixed_performance = false;
  // Hidden: the phone that the child process measures on.
  std::string serial;
};

// Reads the command line; defaults that depend on the machine are filled in.
// Returns nullopt, when there is nothing left to do but to exit with
// `*exit_code` (2: wrong usage).
std::optional<Flags> ParseFlags(int argc, char** argv, int* exit_code);

// How far the process of a task is kept in. One that drives a phone talks to
// adb.
rpc::ChildSandbox SandboxFor(const Flags& flags);

}  // namespace optfarm::device_agent

#endif  // OPTFARM_DEVICE_AGENT_FLAGS_H_
