// The machine that the server runs on, and the way to it: starts the server,
// lets it crash, pause and come back, and carries calls over a network that
// loses, delays, repeats and reorders them.

#ifndef OPTFARM_TESTS_SIMULATION_SERVER_HOST_H_
#define OPTFARM_TESTS_SIMULATION_SERVER_HOST_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/scheduling/long_polls.h"
#include "tests/simulation/farm_rules.h"
#include "tests/simulation/server_process.h"
#include "tests/simulation/sim_disk.h"
#include "tests/simulation/world.h"

namespace optfarm::simulation {

// How bad the network is, by probability of each message.
struct NetworkFaults {
  double lost = 0;
  double twice = 0;
  // Of a message that takes up to a minute.
  double late = 0;
};

// A call on its way, from the caller's side.
struct OpenCall {
  int64_t number = 0;
  bool over = false;
  std::function<void(absl::Status)> failed;
  // Tells the server that the caller has gone.
  std::function<void()> hang_up;
};
using OpenCallPtr = std::shared_ptr<OpenCall>;

// THREADS: one thread at a time.
class ServerHost {
 public:
  // Sends an answer: a closure that runs at the caller.
  using Answer = std::function<void(std::function<void()>)>;
  // Serves a request at the server.
  using Serve = std::function<void(ServerProcess&, OpenCall&, const Answer&)>;

  // OWNERSHIP: all outlive it.
  ServerHost(World& world, SimDisk& disk, FarmRules& rules,
             const ServerSettings& settings);

  // Starts the server, now and whenever it is down.
  void Start();
  // Lets the server end now, and start again after `down`.
  void Crash(Stop how, absl::Duration down);
  // It ends with the so manyth change to the disk from now.
  void CrashAfter(int changes, Stop how, absl::Duration down);
  // Ends and starts it again in good order.
  void Restart(absl::Duration down);
  // Nothing of it runs for so long.
  void Pause(absl::Duration duration);
  // Sets the server's clock.
  void ShiftClock(absl::Duration by);
  // To be called after each step: notices that the process has ended.
  void AfterStep();

  // Calls the server. Either the answer's closure runs or `failed`, once; after
  // `deadline` at the latest.
  OpenCallPtr Call(absl::Duration deadline, Serve serve,
                   std::function<void(absl::Status)> failed);
  // The caller gives up; neither will run.
  void HangUp(const OpenCallPtr& call);

  // Serves a Synchronize call at the server, now or when there is news.
  // Returns what hangs it up.
  std::function<void()> Synchronize(
      std::shared_ptr<const v1::SynchronizeRequest> request,
      std::function<void(const absl::StatusOr<v1::SynchronizeResponse>&)>
          reply);

  bool up() const { return process_ != nullptr; }
  // Its clock.
  absl::Time Now() const { return world_.now() + clock_ahead_; }
  ServerProcess* process() { return process_.get(); }
  NetworkFaults network;

  // The disk has had no faults for a while.
  void NoteDiskFaults(bool faulty);

 private:
  absl::Duration Delay();
  void Send(std::function<void()> deliver);
  void Arrive(const OpenCallPtr& call, const Serve& serve);
  void Refuse(const OpenCallPtr& call, absl::Duration wait);
  // Runs it at the server as soon as that runs, unless it ends before.
  void AtServer(std::function<void()> action);
  void TickAfter(absl::Duration wait);
  void Tick();
  void ServeQueue();
  void NotePause();
  void End();
  void TakeStock();

  World& world_;
  SimDisk& disk_;
  FarmRules& rules_;
  const ServerSettings settings_;
  std::unique_ptr<ServerProcess> process_;
  // Counts processes, so that events of an ended one are known.
  int64_t generation_ = 0;
  int64_t tick_ = 0;
  absl::Time tick_due_ = absl::InfinitePast();
  int64_t job_count_ = 0;
  absl::Duration clock_ahead_;
  // What may be old by it may be gone.
  absl::Time furthest_clock_ = absl::InfinitePast();
  absl::Duration down_for_ = absl::Seconds(1);
  absl::Time paused_since_ = absl::InfiniteFuture();
  absl::Time paused_until_ = absl::InfinitePast();
  // Since the process that ended last began to run.
  bool was_up_ = false;
  absl::Time down_since_;
  absl::Time faulty_since_ = absl::InfiniteFuture();
  std::vector<server::IncomingCall> queue_;
  // Of those in the queue and those that are held.
  std::map<int64_t, OpenCallPtr> at_server_;
  int64_t call_count_ = 0;
};

}  // namespace optfarm::simulation

#endif  // OPTFARM_TESTS_SIMULATION_SERVER_HOST_H_
