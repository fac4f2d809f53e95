#include "server/server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "rpc/channel.h"
#include "server/admission.h"
#include "server/blob_janitor.h"
#include "server/call_door.h"
#include "server/catalog_services.h"
#include "server/data_dir.h"
#include "server/event_hub.h"
#include "server/job_service.h"
#include "server/long_polls.h"
#include "server/model_service.h"
#include "server/scheduler.h"
#include "server/ticker.h"
#include "server/work_service.h"
#include "storage/file_blob_store.h"
#include "storage/sqlite_metadata_store.h"

namespace optfarm::server {
namespace {

constexpr int kMaxThreads = 200;
constexpr absl::Duration kCleanUpInterval = absl::Hours(1);
// The ticker steps at least every ten seconds. A longer gap means that the
// machine slept, the process was stopped, or the wall clock was set.
constexpr absl::Duration kPause = absl::Seconds(20);

class ServerImpl final : public Server {
 public:
  ServerImpl(ServerOptions options, std::unique_ptr<DataDir> data_dir,
             std::unique_ptr<storage::MetadataStore> store,
             std::unique_ptr<storage::BlobStore> blobs);
  ~ServerImpl() override { Shutdown(); }

  absl::Status Listen();

  std::string address() const override { return address_; }
  void Shutdown() override;
  void Wake() override { ticker_.Wake(); }

 private:
  absl::Time Step(absl::Time now);
  void SetServing(bool serving);

  const ServerOptions options_;
  // In order of dependence: what is below uses what is above.
  const std::unique_ptr<DataDir> data_dir_;
  const std::unique_ptr<storage::MetadataStore> store_;
  const std::unique_ptr<storage::BlobStore> blobs_;
  const CallDoor door_;
  EventHub hub_;
  TransferWatch transfers_;
  BlobJanitor janitor_;
  Scheduler scheduler_;
  Admission admission_;
  Ticker ticker_;
  LongPolls polls_;
  ModelServiceImpl models_;
  WorkServiceImpl work_;
  JobServiceImpl jobs_;
  DeviceServiceImpl devices_;
  ResultServiceImpl results_;
  std::unique_ptr<grpc::Server> grpc_;
  std::string address_;
  // Of the ticker's thread.
  absl::Time next_clean_up_ = absl::InfinitePast();
  absl::Time last_step_ = absl::InfinitePast();
  absl::Mutex shutdown_mutex_;
  bool shut_down_ ABSL_GUARDED_BY(shutdown_mutex_) = false;
};

ServerImpl::ServerImpl(ServerOptions options, std::unique_ptr<DataDir> data_dir,
                       std::unique_ptr<storage::MetadataStore> store,
                       std::unique_ptr<storage::BlobStore> blobs)
    : options_(std::move(options)),
      data_dir_(std::move(data_dir)),
      store_(std::move(store)),
      blobs_(std::move(blobs)),
      door_(options_.token),
      transfers_(options_.transfers),
      janitor_(*blobs_, *store_,
               options_.max_store_bytes < std::numeric_limits<int64_t>::max()),
      scheduler_(*store_, *blobs_, options_.scheduling, OPTFARM_VERSION),
      admission_(scheduler_, *blobs_),
      ticker_(*options_.clock, [this](absl::Time now) { return Step(now); }),
      polls_(scheduler_, [this] { ticker_.Wake(); }),
      models_(door_, *blobs_, janitor_, transfers_, *options_.clock),
      work_(door_, scheduler_, polls_, *options_.clock),
      jobs_(door_, admission_, scheduler_, *store_, hub_, *options_.clock),
      devices_(door_, scheduler_, *options_.clock),
      results_(door_, *store_) {
  scheduler_.SetListener([this](const std::vector<std::string>& job_ids) {
    hub_.Notify(job_ids);
    polls_.NoteChange();
  });
}

absl::Time ServerImpl::Step(absl::Time now) {
  if (last_step_ != absl::InfinitePast() && now - last_step_ > kPause) {
    LogWarning("nothing ran for ", absl::FormatDuration(now - last_step_),
               "; leases get a new term");
    scheduler_.ForgivePause(now);
  }
  last_step_ = now;
  transfers_.CancelStalled(now);
  if (now >= next_clean_up_) {
    next_clean_up_ = now + kCleanUpInterval;
    janitor_.CleanUp(now);
  }
  const absl::Time next = scheduler_.Tick(now);
  return std::min(next, polls_.Run(now));
}

absl::Status ServerImpl::Listen() {
  OPTFARM_RETURN_IF_ERROR(scheduler_.Load(options_.clock->Now()));
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  rpc::MatchChannelLimits(&builder);
  grpc::ResourceQuota quota("optfarm-server");
  quota.SetMaxThreads(kMaxThreads);
  builder.SetResourceQuota(quota);
  // Two servers on one port would each get half of the calls.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  int port = 0;
  builder.AddListeningPort(options_.grpc_address,
                           grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&models_);
  builder.RegisterService(&work_);
  builder.RegisterService(&jobs_);
  builder.RegisterService(&devices_);
  builder.RegisterService(&results_);
  grpc_ = builder.BuildAndStart();
  if (grpc_ == nullptr) {
    return absl::UnavailableError(absl::StrCat(
        "listening on ", options_.grpc_address,
        ": the address is in use or not this machine's; give another --grpc"));
  }
  address_ = options_.grpc_address;
  if (!absl::StartsWith(address_, "unix:")) {
    address_ = absl::StrCat(address_.substr(0, address_.rfind(':')), ":", port);
  }
  SetServing(true);
  ticker_.Start();
  return absl::OkStatus();
}

void ServerImpl::SetServing(bool serving) {
  grpc::HealthCheckServiceInterface* health = grpc_->GetHealthCheckService();
  if (health == nullptr) return;
  health->SetServingStatus(serving);
  for (const char* service : {v1::ModelService::service_full_name(),
                              v1::WorkService::service_full_name(),
                              v1::JobService::service_full_name(),
                              v1::DeviceService::service_full_name(),
                              v1::ResultService::service_full_name()}) {
    health->SetServingStatus(service, serving);
  }
}

void ServerImpl::Shutdown() {
  absl::MutexLock lock(&shutdown_mutex_);
  if (std::exchange(shut_down_, true) || grpc_ == nullptr) return;
  SetServing(false);
  scheduler_.Drain();
  hub_.Close();
  // Answers held calls: a draining scheduler holds none.
  polls_.Run(options_.clock->Now());
  grpc_->Shutdown(absl::ToChronoTime(absl::Now() + options_.grace));
  grpc_->Wait();
  ticker_.Stop();
}

absl::Status CheckAddress(const ServerOptions& options) {
  // Port 0 is for listening what no port is for calling: a free one.
  std::string target = options.grpc_address;
  if (absl::EndsWith(target, ":0")) target.back() = '1';
  OPTFARM_RETURN_IF_ERROR(
      Annotate(rpc::CheckTarget(target), "the address to listen on"));
  if (IsLoopback(options.grpc_address) || !options.token.empty()) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "listening on ", options.grpc_address,
      ", which other machines can reach, needs --token_file: anybody could "
      "submit models and read results; listen on 127.0.0.1 or give a token"));
}

}  // namespace

bool IsLoopback(const std::string& address) {
  if (absl::StartsWith(address, "unix:")) return true;
  const std::string host = address.substr(0, address.rfind(':'));
  if (host == "localhost" || host == "[::1]") return true;
  // Only in dotted form: "127.example.com" is somebody's name.
  return absl::StartsWith(host, "127.") &&
         std::all_of(host.begin(), host.end(),
                     [](char c) { return c == '.' || (c >= '0' && c <= '9'); });
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(ServerOptions options) {
  OPTFARM_RETURN_IF_ERROR(CheckAddress(options));
  OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<DataDir> data_dir,
                           DataDir::Open(options.data_dir));
  OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<storage::MetadataStore> store,
                           storage::OpenSqliteMetadataStore(
                               data_dir->database(), options.clock->Now()));
  storage::FileBlobStoreOptions blob_options;
  blob_options.root = data_dir->blobs();
  blob_options.max_blob_bytes = options.max_blob_bytes;
  blob_options.max_total_bytes = options.max_store_bytes;
  blob_options.reserved_free_bytes = options.reserved_free_bytes;
  OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<storage::BlobStore> blobs,
                           storage::OpenFileBlobStore(blob_options));
  auto server =
      std::make_unique<ServerImpl>(std::move(options), std::move(data_dir),
                                   std::move(store), std::move(blobs));
  OPTFARM_RETURN_IF_ERROR(server->Listen());
  return server;
}

}  // namespace optfarm::server
