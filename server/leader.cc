#include "server/leader.h"

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "base/files.h"
#include "base/log.h"
#include "base/service_manager.h"
#include "base/status_macros.h"
#include "rpc/channel.h"
#include "rpc/held_connection.h"
#include "server/access/access_control.h"
#include "server/access/admission.h"
#include "server/access/audit_log.h"
#include "server/access/browser_sessions.h"
#include "server/access/call_door.h"
#include "server/access/call_room.h"
#include "server/access/holder_tokens.h"
#include "server/access/method_bounds.h"
#include "server/delivery/event_hub.h"
#include "server/delivery/job_list_feed.h"
#include "server/delivery/job_lists.h"
#include "server/delivery/ticker.h"
#include "server/forwarding/forwarding_metrics.h"
#include "server/grpc_door.h"
#include "server/scheduling/call_queue.h"
#include "server/scheduling/long_polls.h"
#include "server/scheduling/scheduler.h"
#include "server/services/blob_downloads.h"
#include "server/services/catalog_services.h"
#include "server/services/farm_service.h"
#include "server/services/http_door.h"
#include "server/services/job_service.h"
#include "server/services/leader_service.h"
#include "server/services/leased_blobs.h"
#include "server/services/model_service.h"
#include "server/services/project_blobs.h"
#include "server/services/server_service.h"
#include "server/services/store_service.h"
#include "server/services/token_service.h"
#include "server/services/tune_service.h"
#include "server/services/work_service.h"
#include "server/tuning/tune_runner.h"
#include "server/upkeep/blob_engine.h"
#include "server/upkeep/blob_janitor.h"
#include "server/upkeep/data_dir.h"
#include "server/upkeep/database_engine.h"
#include "server/upkeep/metrics.h"
#include "server/upkeep/retention.h"
#include "storage/token_store.h"
#include "storage/tune_store.h"
#include "storage/webhook_store.h"

namespace optfarm::server {
namespace {

// Of calls under way when another server has taken over.
constexpr absl::Duration kLostGrace = absl::Seconds(1);
constexpr absl::Duration kCleanUpInterval = absl::Hours(1);
// Between bounded parts of one clean-up, so that others can write.
constexpr absl::Duration kCleanUpPause = absl::Seconds(1);
// The ticker steps at least every ten seconds. A longer gap means that the
// machine slept, the process was stopped, or the wall clock was set.
constexpr absl::Duration kPause = absl::Seconds(20);
// Between two looks at the tokens of open calls.
constexpr absl::Duration kExpiryInterval = absl::Seconds(10);
// Well below kPause and the unit's WatchdogSec=.
constexpr absl::Duration kUptimeInterval = absl::Seconds(5);
constexpr uint64_t kMaxUptimeBytes = 1 << 20;

// What the data folder holds, opened.
struct Stores {
  LeaderTerm term;
  std::unique_ptr<storage::BlobStore> blobs;
  Databases databases;
};

std::string HostName() {
  char name[HOST_NAME_MAX + 1] = {};
  return ::gethostname(name, sizeof(name) - 1) == 0 ? name : "localhost";
}

http::FrontOptions FrontOf(const ServerOptions& options) {
  return {options.http_address,
          {options.tls.certificate, options.tls.key, options.tls.client_ca}};
}

// Nothing where nobody would find it, or where it cannot be: the server's own
// door says why.
std::unique_ptr<http::Front> OpenStartingDoorOf(const ServerOptions& options) {
  if (options.http_address.empty() ||
      absl::EndsWith(options.http_address, ":0")) {
    return nullptr;
  }
  auto door = OpenStartingDoor(FrontOf(options), options.http_limits);
  return door.ok() ? *std::move(door) : nullptr;
}

// What other servers show; empty: there are none.
std::string SecretOf(const LeaderTerm& term) {
  return term.lease == nullptr ? "" : term.lease->secret();
}

StoreFacts FactsOf(const ServerOptions& options, const DataDir& data_dir) {
  StoreFacts facts;
  const bool bucket = absl::StartsWith(options.blobs.blobs, "s3:");
  facts.blob_engine = bucket ? "s3" : "folder";
  facts.database_engine =
      absl::StartsWith(options.database, "postgres") ? "postgresql" : "sqlite";
  if (options.max_store_bytes < std::numeric_limits<int64_t>::max()) {
    facts.max_bytes = options.max_store_bytes;
  }
  if (bucket) return facts;
  absl::string_view folder = options.blobs.blobs;
  absl::ConsumePrefix(&folder, "file:");
  facts.folder = folder.empty() ? data_dir.blobs() : std::string(folder);
  return facts;
}

class ServerImpl final : public Server {
 public:
  ServerImpl(ServerOptions options, Stores stores,
             std::unique_ptr<AccessControl> access);
  ~ServerImpl() override { Shutdown(); }

  // `starting` is closed when its address is needed; nullptr for none.
  absl::Status Listen(std::unique_ptr<http::Front> starting);

  std::string address() const override { return address_; }
  std::string http_address() const override {
    return http_ == nullptr ? "" : http_->address();
  }
  void Shutdown() override;
  void SetProjectLimits(LimitsByProject limits) override;
  absl::Status ReloadTls() override;
  void Wake() override {
    polls_.NoteNews({});
    upkeep_.Wake();
    webhooks_.Wake();
  }

 private:
  absl::Time Step(absl::Time now);
  // Deletes what is too old, a bounded part of it.
  absl::Time CleanUp(absl::Time now);
  void SetServing(bool serving);
  // Notes that the server is there, so that a later one knows how long none
  // was.
  void KeepUptime(absl::Time now, bool at_once);
  absl::StatusOr<AwayTime> ReadUptime();
  absl::Status OpenHttp();
  absl::Status Ready();
  SelfCheckOptions CheckOf();
  ServerRole Role() const;
  absl::Status MayRead(const http::RequestHead& head);
  absl::StatusOr<http::CallPermit> Permit(const http::BackendCall& call,
                                          const std::string& method,
                                          size_t body_bytes);

  const ServerOptions options_;
  // In order of dependence: what is below uses what is above.
  const LeaderTerm term_;
  const std::unique_ptr<storage::MetadataStore> store_;
  const std::unique_ptr<storage::BlobStore> blobs_;
  const std::unique_ptr<storage::TokenStore> tokens_;
  const std::unique_ptr<storage::WebhookStore> webhook_store_;
  const std::unique_ptr<storage::AuditStore> audit_store_;
  const std::unique_ptr<storage::TuneStore> tune_store_;
  const std::unique_ptr<AccessControl> access_;
  AuditLog audit_;
  ProjectLimitsTable limits_;
  CallRoom room_;
  CallDoor door_;
  EventHub hub_;
  TransferWatch transfers_;
  BlobJanitor janitor_;
  Metrics metrics_;
  Scheduler scheduler_;
  JobLists job_lists_{scheduler_, *store_};
  JobListFeed job_feed_;
  Admission admission_;
  Webhooks webhooks_;
  TraceExporter traces_;
  TuneRunner tuner_;
  Ticker ticker_;
  // Deleting a lot takes its time, and leases do not wait for it.
  Ticker upkeep_;
  LongPolls polls_;
  CallQueue call_queue_{polls_};
  HolderTokens holders_;
  LeasedBlobs leased_;
  ProjectBlobs project_blobs_;
  BlobDownloads downloads_;
  ModelServiceImpl models_;
  WorkServiceImpl work_;
  JobServiceImpl jobs_;
  DeviceServiceImpl devices_;
  ResultServiceImpl results_;
  StoreServiceImpl store_service_;
  TokenServiceImpl token_service_;
  TuneServiceImpl tune_service_;
  FarmServiceImpl farm_service_;
  ServerServiceImpl server_service_;
  LeaderServiceImpl leader_service_;
  BrowserSessions sessions_;
  // Goes after gRPC's server.
  std::unique_ptr<GrpcListener> listener_;
  std::unique_ptr<grpc::Server> grpc_;
  std::string address_;
  std::unique_ptr<http::Front> http_;
  std::unique_ptr<rpc::HeldConnection> inner_;
  std::atomic<bool> serving_ = false;
  // Of the upkeep's thread.
  absl::Time next_clean_up_ = absl::InfinitePast();
  // Of the ticker's thread.
  absl::Time next_expiry_ = absl::InfinitePast();
  absl::Time last_step_ = absl::InfinitePast();
  absl::Time uptime_kept_ = absl::InfinitePast();
  absl::Mutex shutdown_mutex_;
  bool shut_down_ ABSL_GUARDED_BY(shutdown_mutex_) = false;
};

ServerImpl::ServerImpl(ServerOptions options, Stores stores,
                       std::unique_ptr<AccessControl> access)
    : options_(std::move(options)),
      term_(std::move(stores.term)),
      store_(std::move(stores.databases.metadata)),
      blobs_(std::move(stores.blobs)),
      tokens_(std::move(stores.databases.tokens)),
      webhook_store_(std::move(stores.databases.webhooks)),
      audit_store_(std::move(stores.databases.audit)),
      tune_store_(std::move(stores.databases.tunes)),
      access_(std::move(access)),
      audit_(*audit_store_),
      limits_(options_.project_limits, {}),
      room_(options_.calls),
      door_(*access_, audit_, limits_, room_, *options_.clock,
            !options_.tls.client_ca.empty(), SecretOf(term_)),
      hub_(options_.watches),
      transfers_(options_.transfers),
      janitor_(*blobs_, *store_,
               options_.max_store_bytes < std::numeric_limits<int64_t>::max()),
      scheduler_(*store_, *blobs_, options_.scheduling, OPTFARM_VERSION),
      job_feed_(options_.lists,
                [this](const std::string& job_id) {
                  return job_lists_.Read(job_id);
                }),
      admission_(scheduler_, *blobs_, *store_, limits_),
      webhooks_(options_.webhooks, *webhook_store_, *store_, *options_.clock),
      traces_(options_.traces, *store_, *options_.clock),
      tuner_(admission_, scheduler_, *store_, *tune_store_, *access_, traces_,
             *options_.clock),
      ticker_(*options_.clock, [this](absl::Time now) { return Step(now); }),
      upkeep_(*options_.clock, [this](absl::Time now) { return CleanUp(now); }),
      polls_(scheduler_, [this] { ticker_.Wake(); }),
      leased_(holders_, scheduler_, *store_, options_.clock->Now(),
              options_.scheduling.lease),
      project_blobs_(*blobs_, *store_, *tune_store_, janitor_, limits_,
                     *options_.clock),
      downloads_(door_, *blobs_, *store_, transfers_, leased_, *options_.clock),
      models_(door_, *blobs_, *store_, janitor_, transfers_, limits_,
              downloads_, project_blobs_, *options_.clock),
      work_(door_, holders_, scheduler_, polls_, call_queue_, *options_.clock),
      jobs_(door_, admission_, webhooks_, scheduler_, *store_, hub_,
            *options_.clock),
      devices_(door_, scheduler_, *options_.clock),
      results_(door_, *store_),
      store_service_(door_, *store_, *audit_store_, *blobs_, *term_.data_dir,
                     std::move(stores.databases.database_file),
                     *options_.clock),
      token_service_(door_, *access_, scheduler_, *options_.clock),
      tune_service_(door_, tuner_, *tune_store_),
      farm_service_(door_,
                    {*access_, limits_, scheduler_, *store_, *blobs_, janitor_,
                     job_lists_, job_feed_},
                    FactsOf(options_, *term_.data_dir), *options_.clock),
      server_service_(
          [this](grpc::ServerContext& context) {
            return door_.Enter(context, kGetServer);
          },
          CheckOf(), [this] { return Role(); }),
      leader_service_(door_, downloads_, SecretOf(term_)),
      sessions_({.secure = !options_.tls.certificate.empty()},
                *options_.clock) {
  scheduler_.SetObserver(
      [this](const storage::WriteBatch& batch, absl::Duration time) {
        metrics_.NoteCommit(batch, time);
        traces_.NoteCommit(batch);
      });
  scheduler_.SetListener([this](const SchedulerNews& news) {
    polls_.NoteNews(news);
    const std::vector<std::string>& job_ids = news.changed_jobs;
    if (job_ids.empty()) return;
    hub_.Notify(job_ids);
    job_feed_.Notify(job_ids);
    webhooks_.Notify(job_ids);
    tuner_.Notify(job_ids);
  });
}

void ServerImpl::SetProjectLimits(LimitsByProject limits) {
  for (const auto& [project, change] : limits_.Replace(std::move(limits))) {
    LogInfo("limits of the project ", project, ": ", change);
    storage::AuditRecord record;
    record.time = options_.clock->Now();
    record.actor = "operator";
    record.project = project;
    record.method = "ProjectLimits";
    record.subject = project;
    record.outcome = absl::StatusCodeToString(absl::StatusCode::kOk);
    record.message = change;
    audit_.Add(record);
  }
}

absl::Status ServerImpl::ReloadTls() {
  if (options_.tls.certificate.empty()) return absl::OkStatus();
  if (http_ != nullptr) return http_->ReloadTls();
  return CheckTls(options_.tls);
}

absl::Time ServerImpl::Step(absl::Time now) {
  const absl::Duration gap = last_step_ == absl::InfinitePast()
                                 ? absl::ZeroDuration()
                                 : now - last_step_;
  if (gap > kPause || gap < -kPause) {
    LogWarning("nothing ran for ", absl::FormatDuration(gap),
               "; leases get a new term, and no deadline counts the time");
    scheduler_.ForgivePause(last_step_, now);
  }
  last_step_ = now;
  KeepUptime(now, /*at_once=*/gap > kPause || gap < -kPause);
  transfers_.CancelStalled(now);
  room_.CancelSlow(now);
  if (now >= next_expiry_) {
    next_expiry_ = now + kExpiryInterval;
    access_->open_calls().EndExpired(now);
  }
  const absl::Time next = scheduler_.Tick(now);
  TellServiceAlive();
  return std::min({next, polls_.Run(now), now + kUptimeInterval});
}

absl::Time ServerImpl::CleanUp(absl::Time now) {
  if (now < next_clean_up_) return next_clean_up_;
  next_clean_up_ = now + kCleanUpInterval;
  const bool more_blobs = janitor_.CleanUp(now);
  if (const absl::Status status =
          audit_store_->Forget(now - options_.retention.audit);
      !status.ok()) {
    LogWarning("letting go of old audit entries: ", status.message());
  }
  // Never is before everything.
  if (const absl::Status status =
          tune_store_->Forget(now - options_.retention.jobs);
      !status.ok()) {
    LogWarning("letting go of old tunes: ", status.message());
  }
  if (LetGo(*store_, options_.retention, now) || more_blobs) {
    next_clean_up_ = now + kCleanUpPause;
  }
  return next_clean_up_;
}

void ServerImpl::KeepUptime(absl::Time now, bool at_once) {
  if (!at_once && now >= uptime_kept_ && now - uptime_kept_ < kUptimeInterval) {
    return;
  }
  uptime_kept_ = now;
  const std::string text = scheduler_.Away(now).ToText();
  if (term_.lease != nullptr) return term_.lease->LeaveNote(text);
  const absl::Status status =
      WriteFileAtomically(term_.data_dir->uptime(), text);
  if (!status.ok())
    LogWarning("noting that the server runs: ", status.message());
}

absl::StatusOr<AwayTime> ServerImpl::ReadUptime() {
  absl::StatusOr<std::string> text = absl::NotFoundError("");
  if (term_.lease == nullptr) {
    text = ReadFile(term_.data_dir->uptime(), kMaxUptimeBytes);
  } else if (!term_.lease->found_note().empty()) {
    text = term_.lease->found_note();
  }
  if (absl::IsNotFound(text.status())) return AwayTime();
  // A disk that cannot be read now may be again; deadlines that counted an
  // outage would fail work that is done.
  if (!text.ok()) {
    return Annotate(text.status(), "reading when the server ran last");
  }
  absl::StatusOr<AwayTime> away = AwayTime::FromText(*text);
  if (away.ok()) return *std::move(away);
  LogWarning(
      "reading when the server ran last, so that deadlines leave out "
      "the time since: ",
      away.status().message());
  return AwayTime();
}

absl::Status ServerImpl::Listen(std::unique_ptr<http::Front> starting) {
  SetProjectLimits(options_.limits_by_project);
  OPTFARM_ASSIGN_OR_RETURN(AwayTime away, ReadUptime());
  OPTFARM_RETURN_IF_ERROR(
      scheduler_.Load(options_.clock->Now(), std::move(away)));
  OPTFARM_ASSIGN_OR_RETURN(
      GrpcDoor door, OpenGrpcDoor(options_, [this](grpc::ServerBuilder& with) {
        with.RegisterService(&models_);
        with.RegisterService(&work_);
        with.RegisterService(&jobs_);
        with.RegisterService(&devices_);
        with.RegisterService(&results_);
        with.RegisterService(&store_service_);
        with.RegisterService(&token_service_);
        with.RegisterService(&tune_service_);
        with.RegisterService(&farm_service_);
        with.RegisterService(&server_service_);
        if (term_.lease != nullptr) with.RegisterService(&leader_service_);
      }));
  grpc_ = std::move(door.server);
  listener_ = std::move(door.listener);
  address_ = std::move(door.address);
  if (listener_ != nullptr) {
    door_.SetNoteToken([listener = listener_.get()](absl::string_view name) {
      listener->NoteToken(name);
    });
  }
  door.accept();
  starting = nullptr;
  OPTFARM_RETURN_IF_ERROR(OpenHttp());
  OPTFARM_RETURN_IF_ERROR(webhooks_.Start());
  OPTFARM_RETURN_IF_ERROR(traces_.Start(
      {options_.advertise.empty() ? HostName() : options_.advertise,
       OPTFARM_VERSION}));
  OPTFARM_RETURN_IF_ERROR(tuner_.Start());
  SetServing(true);
  ticker_.Start();
  upkeep_.Start();
  return absl::OkStatus();
}

absl::Status ServerImpl::OpenHttp() {
  if (options_.http_address.empty()) return absl::OkStatus();
  HttpDoorOptions door;
  door.front = FrontOf(options_);
  door.limits = options_.http_limits;
  door.limits.max_file_bytes = options_.max_blob_bytes;
  door.loopback_hosts_only = !access_->wants_token();
  OPTFARM_ASSIGN_OR_RETURN(door.channel, rpc::MakeInnerChannel(grpc_.get()));
  inner_ = std::make_unique<rpc::HeldConnection>(door.channel);
  door.admit_call = [this](const http::BackendCall& call,
                           const std::string& method, size_t body_bytes) {
    return Permit(call, method, body_bytes);
  };
  door.ready = [this] { return Ready(); };
  door.may_read = [this](const http::RequestHead& head) {
    return MayRead(head);
  };
  door.metrics = [this] {
    const absl::Time now = options_.clock->Now();
    std::string text = metrics_.Text(
        scheduler_.Numbers(now), scheduler_.CountDevices(now), polls_.counts());
    if (term_.lease != nullptr) text += ForwardingMetrics({.leads = true});
    return text + traces_.Metrics();
  };
  door.sessions = &sessions_;
  OPTFARM_ASSIGN_OR_RETURN(http_, OpenHttpDoor(door));
  return absl::OkStatus();
}

absl::StatusOr<http::CallPermit> ServerImpl::Permit(
    const http::BackendCall& call, const std::string& method,
    size_t body_bytes) {
  CallHead head;
  for (const auto& [name, value] : call.metadata) {
    if (name == rpc::kAuthorizationKey) head.authorization = value;
    if (name == http::kPeerKey) head.peer = value;
    head.certified |= name == http::kCertifiedKey;
  }
  http::CallPermit permit;
  permit.bounds = BoundsOf(method);
  // The text, what it is read into, and the message's bytes.
  OPTFARM_ASSIGN_OR_RETURN(permit.room,
                           door_.Reserve(head, method, 3 * body_bytes));
  return permit;
}

absl::Status ServerImpl::MayRead(const http::RequestHead& head) {
  OPTFARM_ASSIGN_OR_RETURN(const Caller caller,
                           access_->Identify(head.Header("authorization")));
  if (!options_.tls.client_ca.empty()) {
    OPTFARM_RETURN_IF_ERROR(
        access_->CheckCertificate(caller, "", head.certified));
  }
  if (caller.May(v1::Access::READ)) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      "the token '", caller.name, "' may not read: it needs the scope read"));
}

absl::Status ServerImpl::Ready() {
  if (!serving_) return absl::UnavailableError("the server starts or stops");
  // The cheapest question that the database has to be read for.
  return store_->FindClientRequest("").status();
}

SelfCheckOptions ServerImpl::CheckOf() {
  SelfCheckOptions check;
  check.database = options_.database;
  check.blobs = options_.blobs;
  check.blob_folder = FactsOf(options_, *term_.data_dir).folder;
  check.ask_database = [this] { return Ready(); };
  check.clock = options_.clock;
  return check;
}

ServerRole ServerImpl::Role() const {
  ServerRole role;
  if (term_.lease == nullptr) return role;
  role.leader_address = options_.advertise;
  role.term = term_.lease->fence()->epoch();
  role.leads = !term_.lease->fence()->is_lost();
  return role;
}

void ServerImpl::SetServing(bool serving) {
  serving_ = serving;
  server::SetServing(*grpc_, serving);
}

void ServerImpl::Shutdown() {
  absl::MutexLock lock(&shutdown_mutex_);
  if (std::exchange(shut_down_, true) || grpc_ == nullptr) return;
  SetServing(false);
  scheduler_.Drain();
  hub_.Close();
  job_feed_.Close();
  // Answers held calls: a draining scheduler holds none.
  polls_.Run(options_.clock->Now(), /*all=*/true);
  if (http_ != nullptr) http_->Drain();
  if (listener_ != nullptr) listener_->Stop();
  inner_.reset();
  const bool lost = term_.lease != nullptr && term_.lease->fence()->is_lost();
  grpc_->Shutdown(
      absl::ToChronoTime(absl::Now() + (lost ? kLostGrace : options_.grace)));
  grpc_->Wait();
  // Calls have ended; what is left are clients that do not read.
  if (http_ != nullptr) http_->Stop(absl::Seconds(1));
  ticker_.Stop();
  upkeep_.Stop();
  tuner_.Stop();
  webhooks_.Stop();
  // No job ends any more.
  traces_.Stop();
}

absl::StatusOr<Stores> OpenStores(const ServerOptions& options,
                                  LeaderTerm term) {
  Stores stores;
  if (term.data_dir == nullptr) {
    OPTFARM_ASSIGN_OR_RETURN(term.data_dir, DataDir::Open(options.data_dir));
  }
  const DataDir& data_dir = *term.data_dir;
  OPTFARM_ASSIGN_OR_RETURN(
      stores.databases, OpenDatabases({options.database, options.results_bytes,
                                       options.on_database_lost, term.lease},
                                      data_dir, options.clock->Now()));
  BlobEngineOptions blobs = options.blobs;
  if (term.lease != nullptr) {
    blobs.term = absl::StrCat("term ", term.lease->fence()->epoch());
  }
  OPTFARM_ASSIGN_OR_RETURN(
      stores.blobs, OpenBlobs(blobs,
                              {options.max_blob_bytes, options.max_store_bytes,
                               options.reserved_free_bytes},
                              data_dir));
  stores.term = std::move(term);
  return stores;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> StartLeader(ServerOptions options,
                                                    LeaderTerm term) {
  std::unique_ptr<http::Front> starting = OpenStartingDoorOf(options);
  Stores stores;
  OPTFARM_ASSIGN_OR_RETURN(stores, OpenStores(options, std::move(term)));
  OPTFARM_ASSIGN_OR_RETURN(
      std::unique_ptr<AccessControl> access,
      AccessControl::Load(options.token, *stores.databases.tokens,
                          *options.clock));
  auto server = std::make_unique<ServerImpl>(
      std::move(options), std::move(stores), std::move(access));
  OPTFARM_RETURN_IF_ERROR(server->Listen(std::move(starting)));
  return server;
}

}  // namespace optfarm::server
