#include "server/access/call_door.h"

#include <grpcpp/server_context.h>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "http/backend.h"
#include "http/url_text.h"
#include "rpc/channel.h"
#include "rpc/status.h"

namespace optfarm::server {

namespace {

// Where the call came from. A call over HTTP comes from within; the door that
// took it says who is behind it.
std::string PeerOf(const grpc::ServerContextBase& context) {
  const std::string peer(context.peer());
  if (!absl::StartsWith(peer, "fd:")) {
    // The brackets of an IPv6 address come escaped.
    return http::PercentDecode(peer, false).value_or(peer);
  }
  const auto& metadata = context.client_metadata();
  const auto found = metadata.find(http::kPeerKey);
  if (found == metadata.end()) return peer;
  return std::string(found->second.data(), found->second.size());
}

storage::AuditRecord RecordOf(const grpc::ServerContextBase& context,
                              absl::string_view method, const Caller& caller,
                              const absl::Status& status, absl::Time now) {
  storage::AuditRecord record;
  record.time = now;
  record.actor = caller.name;
  record.token_id = caller.token_id;
  record.project = caller.project;
  record.peer = PeerOf(context);
  absl::ConsumePrefix(&method, "optfarm.v1.");
  record.method = std::string(method);
  record.outcome = absl::StatusCodeToString(status.code());
  record.message = std::string(status.message());
  return record;
}

}  // namespace

absl::StatusOr<Caller> CallDoor::Admit(const grpc::ServerContextBase& context,
                                       const std::string& method) const {
  const absl::Time now = clock_.Now();
  const auto& metadata = context.client_metadata();
  // The first one counts, so that nobody can try many in one call.
  const auto found = metadata.find(rpc::kAuthorizationKey);
  const absl::string_view authorization =
      found == metadata.end()
          ? absl::string_view()
          : absl::string_view(found->second.data(), found->second.size());
  absl::StatusOr<Caller> caller = access_.Identify(authorization);
  absl::Status status = caller.status();
  if (status.ok()) status = access_.Check(*caller, method);
  if (status.ok() && !caller->OfFarm()) {
    status = rate_.Take(caller->project, now);
  }
  if (status.ok()) return caller;
  Caller unknown;
  unknown.project.clear();
  audit_.AddRefusal(
      RecordOf(context, method, caller.ok() ? *caller : unknown, status, now));
  return status;
}

void CallDoor::NoteDone(const grpc::ServerContextBase& context,
                        const std::string& method, const Call& call,
                        const absl::Status& status) const {
  if (!access_.IsAudited(method)) return;
  const Caller& caller = call.caller;
  // Workers and agents fetch and bring files all day.
  const bool program = caller.OfFarm() && !caller.May(v1::Access::ADMIN);
  if (program && status.ok()) return;
  storage::AuditRecord record =
      RecordOf(context, method, caller, status, clock_.Now());
  record.subject = call.subject;
  audit_.Add(record);
}

grpc::Status CallDoor::Answer(const absl::Status& status) {
  if (status.code() == absl::StatusCode::kInternal ||
      status.code() == absl::StatusCode::kUnknown ||
      status.code() == absl::StatusCode::kDataLoss) {
    LogError("answering a call with ", status.ToString());
  }
  return rpc::ToGrpc(status);
}

}  // namespace optfarm::server
