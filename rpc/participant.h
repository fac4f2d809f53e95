// A worker or an agent from start to clean stop: channel, loop, runner and
// signals put together. Start here to see how the parts of this room meet.

#ifndef OPTFARM_RPC_PARTICIPANT_H_
#define OPTFARM_RPC_PARTICIPANT_H_

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "optfarm/v1/work.pb.h"
#include "rpc/channel.h"
#include "rpc/task_runner.h"

namespace optfarm::rpc {

struct ParticipantOptions {
  ChannelOptions channel;
  // "optfarm-worker": begins the ready line.
  std::string program;
  v1::SynchronizeRequest::Kind kind = v1::SynchronizeRequest::WORKER;
  // Letters, digits, '.', '_', '-'; at most 64.
  std::string name;
  std::string build_version;
  // Recipes a worker brings along.
  std::vector<v1::Recipe> builtin_recipes;
  // Ends as by SIGTERM after it had no task for so long.
  absl::Duration exit_when_idle = absl::InfiniteDuration();
  // UNITS: tasks worked on at once. Ignored for agents, whose devices decide.
  int slots = 1;
  // The agent's devices as they are, given the names of those that a task is
  // worked on for. Null: none.
  std::function<std::vector<v1::DeviceStatus>(const std::set<std::string>&)>
      devices;
  // Given, before the first call, a function that has the server called at
  // once, for when devices change; and null before that function dies. May be
  // empty.
  std::function<void(std::function<void()> wake)> take_waker;
  // Empty work_folder: a temporary one, removed at the end.
  TaskRunnerOptions runner;
};

// Takes part until SIGTERM or SIGINT, or until it had no task for too long,
// then gives back what it holds and returns OK. Logs "PROGRAM ready server=...
// name=..." after the server's first answer. A server that is not there is
// waited for. REQUIRES: the process has no other threads yet. ERRORS: what
// makes taking part impossible: a bad target, token or work folder, or a server
// that refuses us.
absl::Status RunParticipant(ParticipantOptions options);

}  // namespace optfarm::rpc

#endif  // OPTFARM_RPC_PARTICIPANT_H_
