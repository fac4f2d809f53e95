#include "server/standby.h"

#include <grpcpp/client_context.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/digest.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "optfarm/v1/tokens.grpc.pb.h"
#include "rpc/channel.h"
#include "rpc/status.h"
#include "server/access/call_origin.h"
#include "server/access/method_bounds.h"
#include "server/forwarding/forwarding_metrics.h"
#include "server/grpc_door.h"
#include "server/services/http_door.h"
#include "storage/postgres/follower.h"

namespace optfarm::server {
namespace {

// For asking the leader about a token.
constexpr absl::Duration kAskLimit = absl::Seconds(5);
// Between two looks at the tokens, at transfers that stall and at requests that
// do not come.
constexpr absl::Duration kStepInterval = absl::Milliseconds(250);

SelfCheckOptions CheckOf(const ServerOptions& options) {
  SelfCheckOptions check;
  check.database = options.database;
  check.blobs = options.blobs;
  check.blob_folder =
      std::string(absl::StripPrefix(options.blobs.blobs, "file:"));
  check.clock = options.clock;
  return check;
}

FollowedAccess::Options AccessOf(const ServerOptions& options) {
  FollowedAccess::Options access;
  access.database = options.database;
  access.operator_token = options.token;
  access.needs_certificate = !options.tls.client_ca.empty();
  access.project_limits = options.project_limits;
  access.limits_by_project = options.limits_by_project;
  return access;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Standby>> Standby::Open(
    const ServerOptions& options) {
  absl::StatusOr<std::unique_ptr<storage::BlobSource>> blobs =
      OpenBlobSource(options.blobs);
  if (!blobs.ok()) {
    LogWarning("files come from the leader, for this server cannot read them: ",
               blobs.status().message());
    blobs = nullptr;
  }
  std::unique_ptr<Standby> standby(new Standby(options, *std::move(blobs)));
  OPTFARM_RETURN_IF_ERROR(standby->Listen());
  return standby;
}

Standby::Standby(const ServerOptions& options,
                 std::unique_ptr<storage::BlobSource> blobs)
    : options_(options),
      forwarder_(options.servers_ca),
      room_(options.calls),
      transfers_(options.transfers),
      access_(AccessOf(options), *options.clock),
      door_(forwarder_, access_, room_, *options.clock),
      downloads_(door_, forwarder_, std::move(blobs), transfers_,
                 *options.clock),
      results_(
          door_, access_, forwarder_,
          storage::FollowPostgres(options.database, options.results_bytes)),
      ticker_(*options.clock, [this](absl::Time now) { return Step(now); }),
      sessions_({.secure = !options.tls.certificate.empty()}, *options.clock),
      server_service_(
          [this](grpc::ServerContext& context) { return Enter(context); },
          CheckOf(options), [this] { return Role(); }) {}

Standby::~Standby() { Close(absl::ZeroDuration()); }

absl::Time Standby::Step(absl::Time now) {
  access_.Refresh();
  transfers_.CancelStalled(now);
  room_.CancelSlow(now);
  return now + kStepInterval;
}

absl::Status Standby::Listen() {
  OPTFARM_ASSIGN_OR_RETURN(
      GrpcDoor door, OpenGrpcDoor(options_, [this](grpc::ServerBuilder& with) {
        with.RegisterService(&server_service_);
        with.RegisterService(&downloads_);
        with.RegisterService(&results_);
        with.RegisterCallbackGenericService(&forwarder_);
      }));
  grpc_ = std::move(door.server);
  listener_ = std::move(door.listener);
  address_ = std::move(door.address);
  // The HTTP door's calls, and questions about tokens, go over it.
  OPTFARM_ASSIGN_OR_RETURN(inner_, rpc::MakeInnerChannel(grpc_.get()));
  held_inner_ = std::make_unique<rpc::HeldConnection>(inner_);
  SetServing(*grpc_, true);
  door.accept();
  ticker_.Start();
  return OpenHttp();
}

absl::Status Standby::OpenHttp() {
  if (options_.http_address.empty()) return absl::OkStatus();
  HttpDoorOptions door;
  door.front.address = options_.http_address;
  door.front.tls = {options_.tls.certificate, options_.tls.key,
                    options_.tls.client_ca};
  door.limits = options_.http_limits;
  door.limits.max_file_bytes = options_.max_blob_bytes;
  door.loopback_hosts_only = options_.token.empty();
  door.channel = inner_;
  door.admit_call = [this](const http::BackendCall&, const std::string& method,
                           size_t body_bytes) {
    return Permit(method, body_bytes);
  };
  door.ready = [this] { return forwarder_.Ready(); };
  door.may_read = [this](const http::RequestHead& head) {
    return MayRead(std::string(head.Header("authorization")), head.certified);
  };
  door.metrics = [this] {
    return ForwardingMetrics(
        {.leads = false,
         .open_calls = forwarder_.open_calls(),
         .sent_on = forwarder_.all_calls(),
         .served = downloads_.served() + results_.served()});
  };
  door.sessions = &sessions_;
  OPTFARM_ASSIGN_OR_RETURN(http_, OpenHttpDoor(door));
  return absl::OkStatus();
}

// Whose request it is, the leader knows: here all share one room.
absl::StatusOr<http::CallPermit> Standby::Permit(const std::string& method,
                                                 size_t body_bytes) {
  http::CallPermit permit;
  permit.bounds = BoundsOf(method);
  OPTFARM_ASSIGN_OR_RETURN(permit.room, room_.Reserve("", 3 * body_bytes));
  return permit;
}

absl::StatusOr<std::unique_ptr<CallRoom::Stay>> Standby::Enter(
    grpc::ServerContext& context) {
  const auto& metadata = context.client_metadata();
  const auto shown = metadata.find(rpc::kAuthorizationKey);
  OPTFARM_RETURN_IF_ERROR(
      MayRead(shown == metadata.end()
                  ? ""
                  : std::string(shown->second.data(), shown->second.size()),
              OriginOf(context, /*secret=*/"").certified));
  return room_.Enter(
      "", CallRoom::Served::kByThread, [&context] { context.TryCancel(); },
      options_.clock->Now());
}

ServerRole Standby::Role() const {
  ServerRole role;
  role.leads = false;
  if (const auto leader = forwarder_.leader()) {
    role.leader_address = leader->address;
    role.term = leader->epoch;
  }
  return role;
}

absl::Status Standby::MayRead(const std::string& authorization,
                              bool certified) {
  if (options_.token.empty()) return absl::OkStatus();
  // The operator's is known here, also while nobody leads.
  if (options_.tls.client_ca.empty() &&
      Sha256Hex(authorization) ==
          Sha256Hex(absl::StrCat(rpc::kBearerPrefix, options_.token))) {
    return absl::OkStatus();
  }
  grpc::ClientContext context;
  if (rpc::IsToken(authorization.substr(
          std::min(authorization.size(), sizeof(rpc::kBearerPrefix) - 1)))) {
    context.AddMetadata(rpc::kAuthorizationKey, authorization);
  }
  if (certified) context.AddMetadata(http::kCertifiedKey, "1");
  context.set_deadline(absl::ToChronoTime(absl::Now() + kAskLimit));
  v1::WhoAmIResponse who;
  OPTFARM_RETURN_IF_ERROR(rpc::FromGrpc(
      v1::TokenService::NewStub(inner_)->WhoAmI(&context, {}, &who)));
  const auto& scopes = who.scopes();
  if (std::find(scopes.begin(), scopes.end(), v1::Access::READ) !=
      scopes.end()) {
    return absl::OkStatus();
  }
  return absl::PermissionDeniedError(absl::StrCat(
      "the token '", who.name(), "' may not read: it needs the scope read"));
}

absl::Status Standby::ReloadTls() {
  if (http_ != nullptr) return http_->ReloadTls();
  return CheckTls(options_.tls);
}

void Standby::Close(absl::Duration grace) {
  if (grpc_ == nullptr) return;
  SetServing(*grpc_, false);
  if (http_ != nullptr) http_->Drain();
  held_inner_ = nullptr;
  if (listener_ != nullptr) listener_->Stop();
  grpc_->Shutdown(absl::ToChronoTime(absl::Now() + grace));
  // What still waits for the leader.
  forwarder_.SetLeader(std::nullopt);
  grpc_->Wait();
  ticker_.Stop();
  if (http_ != nullptr) http_->Stop(absl::Milliseconds(100));
  http_ = nullptr;
  inner_ = nullptr;
  grpc_ = nullptr;
  listener_ = nullptr;
}

}  // namespace optfarm::server
