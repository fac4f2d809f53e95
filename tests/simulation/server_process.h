// The server as one process without threads and doors: the real stores on a
// simulated disk, scheduler, held calls, admission and upkeep, put together and
// stepped as server/server.cc does.

#ifndef OPTFARM_TESTS_SIMULATION_SERVER_PROCESS_H_
#define OPTFARM_TESTS_SIMULATION_SERVER_PROCESS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/access/access_control.h"
#include "server/access/admission.h"
#include "server/access/project_limits.h"
#include "server/scheduling/long_polls.h"
#include "server/scheduling/scheduler.h"
#include "server/upkeep/blob_janitor.h"
#include "server/upkeep/retention.h"
#include "storage/blob_store.h"
#include "tests/simulation/sim_disk.h"
#include "tests/simulation/sim_file_system.h"
#include "tests/simulation/watched_store.h"

namespace optfarm::simulation {

struct ServerSettings {
  server::SchedulingOptions scheduling;
  server::RetentionOptions retention;
  // Of every project.
  server::ProjectLimits limits;
  // UNITS: bytes.
  int64_t max_store_bytes = std::numeric_limits<int64_t>::max();
};

// What a process tells whoever runs it.
struct ServerHooks {
  WatchedStore::Watch committed;
  std::function<std::string()> next_job_id;
  // Step is to be called soon.
  std::function<void()> wake;
};

// THREADS: one thread at a time.
class ServerProcess {
 public:
  // Opens the folder and takes over its jobs. OWNERSHIP: the disk outlives it.
  // ERRORS: those of the stores.
  static absl::StatusOr<std::unique_ptr<ServerProcess>> Start(
      SimDisk& disk, const ServerSettings& settings, ServerHooks hooks,
      absl::Time now);

  // What the ticker and the upkeep do; returns when to do it again.
  absl::Time Step(absl::Time now);
  // Answers held calls and gives no more work.
  void Drain(absl::Time now);

  // What the services do with a call that was let in.
  absl::StatusOr<server::SubmitResult> Submit(
      const server::Caller& caller, const v1::SubmitJobRequest& request,
      absl::Time now);
  // Takes the bytes from where an earlier try stopped; with `breaks`, the
  // connection breaks before the last one.
  absl::Status Upload(const server::Caller& caller, const std::string& bytes,
                      bool breaks, absl::Time now);

  server::Scheduler& scheduler() { return *scheduler_; }
  server::LongPolls& polls() { return *polls_; }
  storage::MetadataStore& store() { return *store_; }
  storage::BlobStore& blobs() { return *blobs_; }

 private:
  ServerProcess(SimDisk& disk, const ServerSettings& settings,
                ServerHooks hooks);
  absl::Status Open(absl::Time now);
  void KeepUptime(absl::Time now, bool at_once);
  void CleanUp(absl::Time now);
  absl::StatusOr<server::AwayTime> ReadUptime();

  SimDisk& disk_;
  const ServerSettings settings_;
  const ServerHooks hooks_;
  SimFileSystem files_;
  server::ProjectLimitsTable limits_;
  std::unique_ptr<storage::MetadataStore> store_;
  std::unique_ptr<storage::BlobStore> blobs_;
  std::unique_ptr<server::BlobJanitor> janitor_;
  std::unique_ptr<server::Scheduler> scheduler_;
  std::unique_ptr<server::Admission> admission_;
  std::unique_ptr<server::LongPolls> polls_;
  absl::Time last_step_ = absl::InfinitePast();
  absl::Time uptime_kept_ = absl::InfinitePast();
  absl::Time next_clean_up_ = absl::InfinitePast();
};

// Where a server keeps everything on its disk.
inline constexpr char kDataFolder[] = "/data";

}  // namespace optfarm::simulation

#endif  // OPTFARM_TESTS_SIMULATION_SERVER_PROCESS_H_
