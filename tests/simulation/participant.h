// A worker or an agent: the loop of rpc/synchronizer.cc over the real
// rpc/held_tasks.h, with work that is only waiting. It dies, sleeps, fails and
// gives tasks back as the seed says.

#ifndef OPTFARM_TESTS_SIMULATION_PARTICIPANT_H_
#define OPTFARM_TESTS_SIMULATION_PARTICIPANT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "rpc/held_tasks.h"
#include "tests/simulation/server_host.h"
#include "tests/simulation/world.h"

namespace optfarm::simulation {

struct ParticipantSettings {
  std::string name;
  // An agent's; a worker has none.
  std::vector<std::string> devices;
  // A worker's.
  int slots = 0;
  // Tasks that do not end well, by probability.
  double trouble = 0.2;
};

// THREADS: one thread at a time.
class Participant {
 public:
  // OWNERSHIP: all outlive it.
  Participant(World& world, ServerHost& server, ParticipantSettings settings);

  // Begins as a new process that holds nothing.
  void Start();
  // Ends without a word; a new process starts after `away`.
  void Vanish(absl::Duration away);
  // Does nothing for so long, and goes on then as if nothing had been.
  void Pause(absl::Duration duration);
  // From now on all its work ends well.
  void Behave() { settings_.trouble = 0; }

 private:
  // A task that it works on.
  struct Work {
    std::shared_ptr<rpc::HeldTask> task;
    // What it made, to be uploaded.
    std::vector<std::string> files;
    v1::Completion completion;
    int tries = 0;
    bool done = false;
  };
  using WorkPtr = std::shared_ptr<Work>;

  bool is_agent() const { return !settings_.devices.empty(); }
  // Does it later, unless the process ends before; a paused one waits.
  void Later(absl::Duration wait, std::function<void()> action);
  // Makes it do nothing once the process has ended.
  std::function<void()> Guarded(std::function<void()> action);

  v1::SynchronizeRequest BuildRequest();
  void CallServer();
  void TakeAnswer(const v1::SynchronizeRequest& request,
                  const v1::SynchronizeResponse& response);
  void TakeFailure(const absl::Status& status);
  void LookAtRefused(const v1::SynchronizeRequest& request,
                     const v1::SynchronizeResponse& response);
  // Calls at once, because there is news.
  void Wake();
  void PauseLoop(absl::Duration wait, bool for_news);

  void Begin(std::shared_ptr<rpc::HeldTask> task);
  void Fetch(const WorkPtr& work, std::vector<v1::Digest> files);
  void GoOn(const WorkPtr& work, int steps_left);
  void Finish(const WorkPtr& work);
  void MakeReport(Work& work);
  void MakeMeasurements(Work& work);
  void UploadNext(const WorkPtr& work, size_t next);
  void HandOver(const WorkPtr& work);

  World& world_;
  ServerHost& server_;
  ParticipantSettings settings_;
  int64_t process_ = 0;
  bool alive_ = false;
  absl::Time paused_until_ = absl::InfinitePast();
  std::string id_;
  std::unique_ptr<rpc::HeldTasks> held_;
  std::vector<WorkPtr> works_;
  OpenCallPtr call_;
  int64_t call_number_ = 0;
  bool connected_ = false;
  int failures_ = 0;
  // Of pauses of the loop.
  int64_t pause_ = 0;
  bool waits_for_news_ = false;
};

}  // namespace optfarm::simulation

#endif  // OPTFARM_TESTS_SIMULATION_PARTICIPANT_H_
