#include "server/member.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/log.h"
#include "base/service_manager.h"
#include "base/status_macros.h"
#include "rpc/server_addresses.h"
#include "server/leader.h"
#include "server/standby.h"
#include "server/upkeep/database_engine.h"
#include "storage/postgres/leader_watch.h"
#include "storage/postgres/stores.h"

namespace optfarm::server {
namespace {

// A leader that is gone is missed for so long.
constexpr absl::Duration kLease = absl::Seconds(8);
// Between two looks at who leads.
constexpr absl::Duration kLookInterval = absl::Milliseconds(250);
// After a failure to begin: another server may do better.
constexpr absl::Duration kAfterFailure = absl::Seconds(3);
// What stood by ends quickly: the leader that it asked is gone.
constexpr absl::Duration kStandbyGrace = absl::Milliseconds(200);
// When the server itself ends: agents' calls wait longer than that for work,
// and find another server.
constexpr absl::Duration kLastGrace = absl::Seconds(2);

class Member final : public Server {
 public:
  Member(ServerOptions options, std::shared_ptr<DataDir> data_dir)
      : options_(std::move(options)),
        data_dir_(std::move(data_dir)),
        watch_(options_.database) {}
  ~Member() override { Shutdown(); }

  absl::Status Begin();

  std::string address() const override { return options_.grpc_address; }
  std::string http_address() const override { return options_.http_address; }
  void Shutdown() override;
  void SetProjectLimits(LimitsByProject limits) override;
  absl::Status ReloadTls() override;
  void Wake() override {
    absl::MutexLock lock(&doors_mutex_);
    if (leader_ != nullptr) leader_->Wake();
  }

 private:
  void Run();
  // Until the lease is lost, or Shutdown.
  void Lead();
  // Until the lease may be taken, or Shutdown.
  void StandBy();
  absl::Status OpenStandby() ABSL_EXCLUSIVE_LOCKS_REQUIRED(doors_mutex_);
  // False when another server was faster.
  absl::StatusOr<bool> TryToLead();
  void Learn(const storage::LeaderRecord& record);
  storage::PostgresLease::Options LeaseOptions(int64_t attempt);
  void Lose(int64_t attempt, const std::string& why);
  // What was given port 0 keeps the port that it got.
  void KeepAddresses(const std::string& grpc, const std::string& http);

  // Changed by the thread, and by Begin before it.
  ServerOptions options_;
  const std::shared_ptr<DataDir> data_dir_;
  storage::LeaderWatch watch_;
  bool watch_failed_ = false;
  std::string known_leader_;
  absl::Time next_attempt_ = absl::InfinitePast();

  // Which of them there is: one, or none in between.
  absl::Mutex doors_mutex_;
  std::unique_ptr<Server> leader_ ABSL_GUARDED_BY(doors_mutex_);
  std::unique_ptr<Standby> standby_ ABSL_GUARDED_BY(doors_mutex_);
  LimitsByProject limits_ ABSL_GUARDED_BY(doors_mutex_);

  absl::Mutex mutex_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t attempt_ ABSL_GUARDED_BY(mutex_) = 0;
  // Why it leads no longer.
  std::optional<std::string> lost_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

absl::Status Member::Begin() {
  {
    absl::MutexLock lock(&doors_mutex_);
    limits_ = options_.limits_by_project;
  }
  OPTFARM_RETURN_IF_ERROR(
      storage::PreparePostgres(options_.database, options_.clock->Now()));
  OPTFARM_ASSIGN_OR_RETURN(const bool leads, TryToLead());
  if (!leads) {
    {
      absl::MutexLock lock(&doors_mutex_);
      OPTFARM_RETURN_IF_ERROR(OpenStandby());
    }
    // Calls find the leader from the beginning.
    OPTFARM_ASSIGN_OR_RETURN(const storage::LeaderRecord record, watch_.Look());
    Learn(record);
  }
  thread_ = std::thread([this] { Run(); });
  return absl::OkStatus();
}

void Member::Run() {
  while (true) {
    bool leads;
    {
      absl::MutexLock lock(&doors_mutex_);
      leads = leader_ != nullptr;
    }
    leads ? Lead() : StandBy();
    absl::MutexLock lock(&mutex_);
    if (stop_) return;
  }
}

void Member::Lead() {
  {
    absl::MutexLock lock(&mutex_);
    const auto over = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return stop_ || lost_.has_value();
    };
    mutex_.Await(absl::Condition(&over));
    if (stop_) return;
    LogError("this server leads no longer: ", *lost_);
  }
  std::unique_ptr<Server> leader;
  {
    absl::MutexLock lock(&doors_mutex_);
    leader = std::move(leader_);
  }
  leader->Shutdown();
}

void Member::StandBy() {
  absl::Status opened;
  {
    absl::MutexLock lock(&doors_mutex_);
    if (standby_ == nullptr) opened = OpenStandby();
  }
  if (!opened.ok()) {
    LogError("opening the doors of a server that stands by, trying on: ",
             opened.message());
  }
  const absl::StatusOr<storage::LeaderRecord> record = watch_.Look();
  if (!record.ok()) {
    if (!std::exchange(watch_failed_, true)) {
      LogWarning("looking who leads: ", record.status().message());
    }
  } else {
    watch_failed_ = false;
    Learn(*record);
    if (!record->leads && absl::Now() >= next_attempt_) {
      const absl::StatusOr<bool> leads = TryToLead();
      if (leads.ok() && *leads) return;
      if (!leads.ok()) {
        next_attempt_ = absl::Now() + kAfterFailure;
        LogError("beginning to lead: ", leads.status().message());
      }
    }
  }
  TellServiceAlive();
  absl::MutexLock lock(&mutex_);
  mutex_.AwaitWithTimeout(absl::Condition(&stop_), kLookInterval);
}

void Member::Learn(const storage::LeaderRecord& record) {
  if (record.leads && known_leader_ != record.holder) {
    LogInfo("standing by; ", record.holder, " leads, at ",
            record.address.empty() ? "no address" : record.address);
  }
  known_leader_ = record.leads ? record.holder : "";
  absl::MutexLock lock(&doors_mutex_);
  if (standby_ == nullptr) return;
  standby_->SetLeader(record.leads ? std::optional(record) : std::nullopt);
}

absl::Status Member::OpenStandby() {
  ServerOptions options = options_;
  options.limits_by_project = limits_;
  OPTFARM_ASSIGN_OR_RETURN(standby_, Standby::Open(options));
  KeepAddresses(standby_->address(), standby_->http_address());
  return absl::OkStatus();
}

absl::StatusOr<bool> Member::TryToLead() {
  int64_t attempt;
  {
    absl::MutexLock lock(&mutex_);
    attempt = ++attempt_;
    lost_.reset();
  }
  LeaderTerm term;
  OPTFARM_ASSIGN_OR_RETURN(
      term.lease, storage::PostgresLease::TryToTake(LeaseOptions(attempt)));
  if (term.lease == nullptr) return false;
  term.data_dir = data_dir_;
  const int64_t epoch = term.lease->fence()->epoch();
  LogInfo("this server has the lease of the database and begins to lead");
  std::unique_ptr<Standby> standby;
  {
    absl::MutexLock lock(&doors_mutex_);
    standby = std::move(standby_);
  }
  if (standby != nullptr) standby->Close(kStandbyGrace);
  standby.reset();
  ServerOptions options = options_;
  {
    absl::MutexLock lock(&doors_mutex_);
    options.limits_by_project = limits_;
  }
  OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<Server> leader,
                           StartLeader(std::move(options), std::move(term)));
  KeepAddresses(leader->address(), leader->http_address());
  LogInfo("this server leads, term ", epoch);
  absl::MutexLock lock(&doors_mutex_);
  leader_ = std::move(leader);
  return true;
}

storage::PostgresLease::Options Member::LeaseOptions(int64_t attempt) {
  storage::PostgresLease::Options lease;
  lease.uri = options_.database;
  lease.holder = ProcessName();
  lease.address = options_.advertise;
  lease.length = kLease;
  lease.ends_by_itself = true;
  lease.on_lost = [this, attempt](const std::string& why) {
    Lose(attempt, why);
  };
  return lease;
}

void Member::Lose(int64_t attempt, const std::string& why) {
  absl::MutexLock lock(&mutex_);
  if (attempt == attempt_) lost_ = why;
}

void Member::KeepAddresses(const std::string& grpc, const std::string& http) {
  // Others read them once the thread runs, and then they stay.
  if (options_.grpc_address != grpc) options_.grpc_address = grpc;
  if (options_.http_address != http) options_.http_address = http;
}

void Member::SetProjectLimits(LimitsByProject limits) {
  absl::MutexLock lock(&doors_mutex_);
  limits_ = limits;
  if (standby_ != nullptr) standby_->SetProjectLimits(limits);
  if (leader_ != nullptr) leader_->SetProjectLimits(std::move(limits));
}

absl::Status Member::ReloadTls() {
  absl::MutexLock lock(&doors_mutex_);
  if (leader_ != nullptr) return leader_->ReloadTls();
  if (standby_ != nullptr) return standby_->ReloadTls();
  return absl::OkStatus();
}

void Member::Shutdown() {
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
  }
  if (thread_.joinable()) thread_.join();
  std::unique_ptr<Server> leader;
  std::unique_ptr<Standby> standby;
  {
    absl::MutexLock lock(&doors_mutex_);
    leader = std::move(leader_);
    standby = std::move(standby_);
  }
  if (leader != nullptr) leader->Shutdown();
  // The lease is given back.
  leader.reset();
  if (standby != nullptr) standby->Close(std::min(options_.grace, kLastGrace));
}

absl::Status CheckOptions(const ServerOptions& options) {
  OPTFARM_RETURN_IF_ERROR(
      Annotate(rpc::CheckTarget(options.advertise), "--advertise"));
  if (!storage::IsPostgresUri(options.database)) {
    return absl::InvalidArgumentError(
        "--advertise is for several servers on one database: give "
        "--database=postgresql://... too, or leave it out");
  }
  if (options.blobs.blobs.empty()) {
    return absl::InvalidArgumentError(
        "several servers need files that all of them see: give --blobs=s3://"
        "BUCKET/PREFIX, or --blobs=file:FOLDER of a file system that they "
        "share");
  }
  if (!options.tls.certificate.empty() && options.servers_ca.empty()) {
    return absl::InvalidArgumentError(
        "several servers with TLS have to know each other: give --servers_ca, "
        "the CA that signed their certificates");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> StartMember(ServerOptions options) {
  OPTFARM_RETURN_IF_ERROR(CheckOptions(options));
  OPTFARM_ASSIGN_OR_RETURN(std::shared_ptr<DataDir> data_dir,
                           DataDir::Open(options.data_dir));
  auto member =
      std::make_unique<Member>(std::move(options), std::move(data_dir));
  OPTFARM_RETURN_IF_ERROR(member->Begin());
  return member;
}

}  // namespace optfarm::server
