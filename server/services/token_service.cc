#include "server/services/token_service.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "rpc/proto_time.h"
#include "server/conventions/names.h"

namespace optfarm::server {
namespace {

constexpr absl::Duration kDefaultLifetime = absl::Hours(24 * 90);
constexpr absl::Duration kShortestLifetime = absl::Minutes(1);
constexpr absl::Duration kLongestLifetime = absl::Hours(24 * 3650);

v1::Token ToProto(const storage::TokenRecord& record) {
  v1::Token token;
  token.set_token_id(record.token_id);
  token.set_name(record.name);
  token.set_project(record.project);
  for (const v1::Access::Scope scope : record.scopes) token.add_scopes(scope);
  *token.mutable_create_time() = rpc::ToTimestamp(record.create_time);
  *token.mutable_expire_time() = rpc::ToTimestamp(record.expire_time);
  if (record.revoke_time != absl::InfinitePast()) {
    *token.mutable_revoke_time() = rpc::ToTimestamp(record.revoke_time);
  }
  return token;
}

absl::Status CheckScopes(const v1::CreateTokenRequest& request) {
  if (request.scopes_size() == 0) {
    return absl::InvalidArgumentError(
        "a token without scopes may do nothing; give some of SUBMIT, READ, "
        "WORK, DEVICE, ADMIN");
  }
  for (const int scope : request.scopes()) {
    if (scope <= 0 || !v1::Access::Scope_IsValid(scope)) {
      return absl::InvalidArgumentError(
          absl::StrCat("there is no scope with number ", scope));
    }
  }
  return absl::OkStatus();
}

// The scopes of the farm see all projects; a token of one project has none.
absl::StatusOr<std::string> ProjectOf(const v1::CreateTokenRequest& request) {
  bool of_farm = false;
  for (const int scope : request.scopes()) {
    of_farm |= scope != v1::Access::SUBMIT && scope != v1::Access::READ;
  }
  if (request.project().empty()) {
    return std::string(of_farm ? "" : storage::kDefaultProject);
  }
  OPTFARM_RETURN_IF_ERROR(CheckName("project", request.project()));
  if (!of_farm) return request.project();
  return absl::InvalidArgumentError(absl::StrCat(
      "a token of the project ", request.project(),
      " may have the scopes SUBMIT and READ; WORK, DEVICE and ADMIN see every "
      "project and are given without one"));
}

}  // namespace

TokenServiceImpl::TokenServiceImpl(const CallDoor& door, AccessControl& access,
                                   Scheduler& scheduler, Clock& clock)
    : door_(door), access_(access), scheduler_(scheduler), clock_(clock) {
  AdmitUnary(door, "optfarm.v1.TokenService.WhoAmI", &Service::WhoAmI);
  AdmitUnary(door, "optfarm.v1.TokenService.CreateToken",
             &Service::CreateToken);
  AdmitUnary(door, "optfarm.v1.TokenService.ListTokens", &Service::ListTokens);
  AdmitUnary(door, "optfarm.v1.TokenService.RevokeToken",
             &Service::RevokeToken);
}

grpc::Status TokenServiceImpl::WhoAmI(grpc::ServerContext* context,
                                      const v1::WhoAmIRequest* request,
                                      v1::WhoAmIResponse* response) {
  return door_.Serve(
      *context, "optfarm.v1.TokenService.WhoAmI", [&](Call& call) {
        const Caller& caller = call.caller;
        const absl::Time now = clock_.Now();
        response->set_version(OPTFARM_VERSION);
        *response->mutable_time() = rpc::ToTimestamp(now);
        response->set_name(caller.name);
        for (int i = v1::Access::SUBMIT; i <= v1::Access::Scope_MAX; ++i) {
          if ((caller.scopes >> i & 1) == 0) continue;
          response->add_scopes(static_cast<v1::Access::Scope>(i));
        }
        if (!caller.OfFarm()) {
          response->set_project(caller.project);
        }
        if (caller.expire_time != absl::InfiniteFuture()) {
          *response->mutable_expire_time() =
              rpc::ToTimestamp(caller.expire_time);
        }
        const auto [workers, agents] =
            scheduler_.CountParticipants(now - absl::Minutes(1));
        response->set_workers(workers);
        response->set_agents(agents);
        return absl::OkStatus();
      });
}

grpc::Status TokenServiceImpl::CreateToken(
    grpc::ServerContext* context, const v1::CreateTokenRequest* request,
    v1::CreateTokenResponse* response) {
  return door_.Serve(*context, "optfarm.v1.TokenService.CreateToken",
                     [&](Call& call) {
                       const absl::Status status = Create(*request, *response);
                       call.subject = response->token().token_id();
                       return status;
                     });
}

absl::Status TokenServiceImpl::Create(const v1::CreateTokenRequest& request,
                                      v1::CreateTokenResponse& response) {
  OPTFARM_RETURN_IF_ERROR(CheckName("token", request.name()));
  OPTFARM_RETURN_IF_ERROR(CheckScopes(request));
  absl::Duration lifetime = kDefaultLifetime;
  if (request.has_lifetime())
    lifetime = rpc::FromProtoDuration(request.lifetime());
  if (lifetime < kShortestLifetime || lifetime > kLongestLifetime) {
    return absl::InvalidArgumentError(
        absl::StrCat("a lifetime of ", absl::FormatDuration(lifetime),
                     " is not within a minute and ten years"));
  }
  storage::TokenRecord record;
  record.name = request.name();
  OPTFARM_ASSIGN_OR_RETURN(record.project, ProjectOf(request));
  for (const int scope : request.scopes()) {
    record.scopes.push_back(static_cast<v1::Access::Scope>(scope));
  }
  record.expire_time = clock_.Now() + lifetime;
  OPTFARM_ASSIGN_OR_RETURN(*response.mutable_secret(), access_.Create(record));
  *response.mutable_token() = ToProto(record);
  LogInfo("token ", record.token_id, " made for ", record.name);
  return absl::OkStatus();
}

grpc::Status TokenServiceImpl::ListTokens(grpc::ServerContext* context,
                                          const v1::ListTokensRequest* request,
                                          v1::ListTokensResponse* response) {
  return door_.Serve(
      *context, "optfarm.v1.TokenService.ListTokens", [&]() -> absl::Status {
        OPTFARM_ASSIGN_OR_RETURN(
            const std::vector<storage::TokenRecord> records, access_.List());
        for (const storage::TokenRecord& record : records) {
          *response->add_tokens() = ToProto(record);
        }
        return absl::OkStatus();
      });
}

grpc::Status TokenServiceImpl::RevokeToken(
    grpc::ServerContext* context, const v1::RevokeTokenRequest* request,
    v1::Token* response) {
  return door_.Serve(
      *context, "optfarm.v1.TokenService.RevokeToken",
      [&](Call& call) -> absl::Status {
        call.subject = request->token_id();
        OPTFARM_ASSIGN_OR_RETURN(const storage::TokenRecord record,
                                 access_.Revoke(request->token_id()));
        *response = ToProto(record);
        LogInfo("token ", record.token_id, " of ", record.name, " revoked");
        return absl::OkStatus();
      });
}

}  // namespace optfarm::server
