#include "tests/simulation/simulation.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/simulation/client.h"
#include "tests/simulation/farm_rules.h"
#include "tests/simulation/participant.h"
#include "tests/simulation/server_host.h"
#include "tests/simulation/server_process.h"
#include "tests/simulation/sim_disk.h"
#include "tests/simulation/sim_sqlite.h"
#include "tests/simulation/world.h"

namespace optfarm::simulation {
namespace {

constexpr int kLiveJobsOfProject = 8;
// Simulated time in which faults come, and the longest until all has ended
// after that: a job may take two hours.
constexpr absl::Duration kTrouble = absl::Minutes(40);
constexpr absl::Duration kPeace = absl::Hours(3);
// An end that is not reached by then is a loop.
constexpr int64_t kMaxSteps = 5'000'000;

// A disk on which a server has made its empty stores, so that not every seed
// has to.
const SimDisk& FreshDisk() {
  static const std::unique_ptr<SimDisk> fresh = [] {
    auto disk = std::make_unique<SimDisk>(1, kDataFolder);
    UseForSqlite(disk.get(), 1);
    ServerHooks hooks;
    hooks.committed = [](const storage::WriteBatch&, const absl::Status&) {};
    hooks.wake = [] {};
    const auto process =
        ServerProcess::Start(*disk, ServerSettings(), hooks, absl::UnixEpoch());
    if (!process.ok()) std::abort();
    return disk;
  }();
  return *fresh;
}

ServerSettings SettingsOf(Random& random) {
  ServerSettings settings;
  settings.scheduling.run_limit = absl::Minutes(30);
  settings.scheduling.queue_limit = absl::Hours(1);
  settings.scheduling.job_limit = absl::Hours(2);
  settings.scheduling.max_live_jobs = random.Chance(0.2) ? 12 : 1000;
  settings.limits.max_live_jobs = kLiveJobsOfProject;
  if (random.Chance(0.3)) settings.retention.jobs = absl::Hours(1);
  return settings;
}

class Simulation {
 public:
  Simulation(uint64_t seed, size_t notes)
      : world_(seed, notes),
        // Some begin with nothing.
        disk_(seed % 16 == 0 ? std::make_unique<SimDisk>(seed, kDataFolder)
                             : FreshDisk().Copy(seed)),
        settings_(SettingsOf(world_.random())),
        rules_(world_, settings_.scheduling, kLiveJobsOfProject),
        server_(world_, *disk_, rules_, settings_) {
    UseForSqlite(disk_.get(), seed);
  }

  SimulationResult Run();

 private:
  void MakeParties();
  void PlanFaults();
  void Fault();
  void SetNetwork(const NetworkFaults& faults);
  void FaultOfServer();
  void FaultOfDisk();
  void FaultOfParties();
  void Heal();
  void FreeDevices();
  bool AllDone() const;
  void CheckEnd();
  absl::Duration Some(absl::Duration least, absl::Duration most) {
    return world_.random().Between(least, most);
  }

  World world_;
  const std::unique_ptr<SimDisk> disk_;
  const ServerSettings settings_;
  FarmRules rules_;
  ServerHost server_;
  std::vector<std::string> devices_;
  std::vector<std::unique_ptr<Participant>> participants_;
  std::vector<std::unique_ptr<Client>> clients_;
  bool peace_ = false;
  int crashes_ = 0;
};

void Simulation::MakeParties() {
  Random& random = world_.random();
  const int workers = random.Between(1, 3);
  for (int i = 0; i < workers; ++i) {
    ParticipantSettings settings;
    settings.name = absl::StrCat("worker-", i);
    settings.slots = random.Between(1, 3);
    participants_.push_back(
        std::make_unique<Participant>(world_, server_, settings));
  }
  const int agents = random.Between(1, 2);
  for (int i = 0; i < agents; ++i) {
    ParticipantSettings settings;
    settings.name = absl::StrCat("agent-", i);
    const int devices = random.Between(1, 2);
    for (int k = 0; k < devices; ++k) {
      settings.devices.push_back(absl::StrCat("phone-", i, "-", k));
    }
    devices_.insert(devices_.end(), settings.devices.begin(),
                    settings.devices.end());
    participants_.push_back(
        std::make_unique<Participant>(world_, server_, settings));
  }
  std::vector<std::string> asked = devices_;
  for (const char* project : {"default", "red", "blue"}) {
    clients_.push_back(
        std::make_unique<Client>(world_, server_, rules_, project, asked));
  }
}

void Simulation::PlanFaults() {
  if (peace_) return;
  world_.After(Some(absl::Seconds(5), absl::Minutes(3)), [this] {
    if (peace_) return;
    Fault();
    PlanFaults();
  });
}

void Simulation::Fault() {
  switch (world_.random().Below(4)) {
    case 0:
      return FaultOfServer();
    case 1:
      return FaultOfDisk();
    case 2:
      return FaultOfParties();
    default:
      break;
  }
  NetworkFaults bad;
  Random& random = world_.random();
  bad.lost = random.Chance(0.5) ? 0.1 : random.Chance(0.3) ? 1.0 : 0.02;
  bad.twice = random.Chance(0.5) ? 0.05 : 0;
  bad.late = random.Chance(0.5) ? 0.1 : 0;
  SetNetwork(bad);
  world_.After(Some(absl::Seconds(2), absl::Minutes(2)), [this, bad] {
    if (bad.lost < 1 || peace_) return SetNetwork(NetworkFaults());
    // Who was cut off for longer than a lease comes back, and the answers that
    // tell it what became of its tasks are lost too.
    NetworkFaults better;
    better.lost = 0.5;
    SetNetwork(better);
    world_.After(Some(absl::Seconds(2), absl::Minutes(1)),
                 [this] { SetNetwork(NetworkFaults()); });
  });
}

void Simulation::SetNetwork(const NetworkFaults& faults) {
  world_.Note("network", "", static_cast<int64_t>(faults.lost * 100));
  server_.network = faults;
}

void Simulation::FaultOfServer() {
  Random& random = world_.random();
  const Stop how = random.Chance(0.7) ? Stop::kPower : Stop::kProcess;
  const absl::Duration down =
      random.Chance(0.2) ? Some(absl::Minutes(5), absl::Hours(1))
                         : Some(absl::Milliseconds(100), absl::Seconds(30));
  const int kind = random.Below(10);
  world_.Note("fault of the server", "", kind);
  if (kind < 5) {
    ++crashes_;
    // Often within the next commit.
    server_.CrashAfter(random.Between(1, random.Chance(0.5) ? 15 : 200), how,
                       down);
  } else if (kind < 7) {
    ++crashes_;
    server_.Crash(how, down);
  } else if (kind == 7) {
    server_.Restart(down);
  } else if (kind == 8) {
    server_.Pause(Some(absl::Seconds(1), absl::Seconds(90)));
  } else {
    const absl::Duration by = Some(absl::Minutes(1), absl::Hours(1));
    server_.ShiftClock(random.Chance(0.5) ? by : -by);
  }
}

void Simulation::FaultOfDisk() {
  Random& random = world_.random();
  DiskFaults faults;
  const int kind = random.Below(4);
  if (kind == 0) faults.full = true;
  if (kind == 1) faults.sync = random.Chance(0.5) ? 0.1 : 0.7;
  if (kind == 2) faults.write = 0.02;
  if (kind == 3) faults.read = faults.write = faults.sync = 0.01;
  world_.Note("fault of the disk", "", kind);
  server_.NoteDiskFaults(true);
  disk_->faults = faults;
  world_.After(Some(absl::Milliseconds(100), absl::Minutes(2)), [this] {
    disk_->faults = DiskFaults();
    server_.NoteDiskFaults(false);
  });
}

void Simulation::FaultOfParties() {
  Random& random = world_.random();
  Participant& one = *participants_[static_cast<size_t>(
      random.Below(static_cast<int>(participants_.size())))];
  if (random.Chance(0.5)) {
    one.Vanish(Some(absl::Milliseconds(100), absl::Minutes(3)));
  } else {
    one.Pause(Some(absl::Seconds(1), absl::Minutes(2)));
  }
}

void Simulation::Heal() {
  world_.Note("peace");
  peace_ = true;
  disk_->faults = DiskFaults();
  server_.NoteDiskFaults(false);
  server_.network = NetworkFaults();
  for (const auto& participant : participants_) participant->Behave();
  FreeDevices();
}

// An operator looks after the devices every now and then.
void Simulation::FreeDevices() {
  for (const std::string& device : devices_) {
    if (!server_.up()) break;
    v1::ChangeDeviceRequest change;
    change.set_name(device);
    change.set_change(v1::ChangeDeviceRequest::ENABLE);
    server_.process()
        ->scheduler()
        .ChangeDevice(change, server_.Now())
        .status()
        .IgnoreError();
  }
  world_.After(absl::Minutes(10), [this] { FreeDevices(); });
}

bool Simulation::AllDone() const {
  return std::all_of(clients_.begin(), clients_.end(), [](const auto& client) {
    return client->open_jobs() == 0;
  });
}

void Simulation::CheckEnd() {
  if (!AllDone()) {
    std::string live;
    for (const auto& [job_id, job] : rules_.record().jobs()) {
      if (server::HasEnded(job.state)) continue;
      absl::StrAppend(&live, " ", job_id);
    }
    return world_.Fail(absl::StrCat(
        "not all jobs have ended in peace, and been seen to:", live));
  }
  // What is durable now is what it must be.
  server_.Crash(Stop::kPower, absl::ZeroDuration());
  server_.AfterStep();
  while (!server_.up() && !world_.failed() && world_.Step()) {
    server_.AfterStep();
  }
}

SimulationResult Simulation::Run() {
  MakeParties();
  server_.Start();
  for (const auto& participant : participants_) participant->Start();
  for (const auto& client : clients_) {
    client->Submit(world_.random().Between(3, 10));
  }
  PlanFaults();
  const absl::Time begin = world_.now();
  world_.After(kTrouble, [this] { Heal(); });
  const absl::Time end = begin + kTrouble + kPeace;
  while (!world_.failed() && world_.now() < end &&
         !(peace_ && AllDone() && server_.up())) {
    world_.Step();
    server_.AfterStep();
    if (world_.steps() > kMaxSteps) world_.Fail("there is no end of it");
  }
  if (!world_.failed()) CheckEnd();
  SimulationResult result;
  result.failure = world_.failure();
  if (world_.failed()) result.notes = world_.LastNotes();
  result.digest = world_.digest();
  result.steps = world_.steps();
  result.commits = rules_.commits();
  result.refused_commits = rules_.refused();
  result.crashes = crashes_;
  for (const auto& client : clients_) result.jobs += client->done_jobs();
  result.seconds = absl::ToInt64Seconds(world_.now() - begin);
  return result;
}

}  // namespace

SimulationResult Simulate(uint64_t seed, size_t notes) {
  FreshDisk();
  return Simulation(seed, notes).Run();
}

}  // namespace optfarm::simulation
