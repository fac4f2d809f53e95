#include "server/access/call_door.h"

#include <grpcpp/server_context.h>

#include <utility>

#include "absl/strings/strip.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "rpc/channel.h"
#include "rpc/status.h"
#include "server/access/call_origin.h"

namespace optfarm::server {

namespace {

storage::AuditRecord RecordOf(const std::string& peer, absl::string_view method,
                              const Caller& caller, const absl::Status& status,
                              absl::Time now) {
  storage::AuditRecord record;
  record.time = now;
  record.actor = caller.name;
  record.token_id = caller.token_id;
  record.project = caller.project;
  record.peer = peer;
  absl::ConsumePrefix(&method, "optfarm.v1.");
  record.method = std::string(method);
  record.outcome = absl::StatusCodeToString(status.code());
  record.message = std::string(status.message());
  return record;
}

}  // namespace

CallHead HeadOf(const grpc::ServerContextBase& context,
                const std::string& secret) {
  CallHead head;
  const auto& metadata = context.client_metadata();
  // The first one counts, so that nobody can try many in one call.
  const auto found = metadata.find(rpc::kAuthorizationKey);
  if (found != metadata.end()) {
    head.authorization.assign(found->second.data(), found->second.size());
  }
  CallOrigin origin = OriginOf(context, secret);
  head.peer = std::move(origin.peer);
  head.certified = origin.certified;
  return head;
}

absl::StatusOr<Caller> CallDoor::Screen(const CallHead& head,
                                        const std::string& method) const {
  absl::StatusOr<Caller> caller = access_.Identify(head.authorization);
  absl::Status status = caller.status();
  if (status.ok()) status = access_.Check(*caller, method);
  if (status.ok() && needs_certificate_) {
    status = access_.CheckCertificate(*caller, method, head.certified);
  }
  if (status.ok()) return caller;
  Caller unknown;
  unknown.project.clear();
  NoteRefusal(head, method, caller.ok() ? *caller : unknown, status,
              clock_.Now());
  return status;
}

absl::StatusOr<Caller> CallDoor::ScreenCall(
    const grpc::ServerContextBase& context, const CallHead& head,
    const std::string& method) const {
  absl::StatusOr<Caller> caller = Screen(head, method);
  if (caller.ok() && note_token_ != nullptr) {
    const std::string name(context.peer());
    note_token_(name);
  }
  return caller;
}

absl::StatusOr<Caller> CallDoor::Screen(const grpc::ServerContextBase& context,
                                        const std::string& method) const {
  return ScreenCall(context, HeadOf(context, secret_), method);
}

absl::StatusOr<std::unique_ptr<CallRoom::Stay>> CallDoor::Enter(
    grpc::ServerContextBase& context, const std::string& method,
    CallRoom::Served served) const {
  OPTFARM_ASSIGN_OR_RETURN(const Caller caller, Screen(context, method));
  return room_.Enter(
      caller.Room(), served, [&context] { context.TryCancel(); }, clock_.Now());
}

absl::StatusOr<std::unique_ptr<CallRoom::Stay>> CallDoor::Reserve(
    const CallHead& head, const std::string& method, size_t bytes) const {
  OPTFARM_ASSIGN_OR_RETURN(const Caller caller, Screen(head, method));
  return room_.Reserve(caller.Room(), bytes);
}

absl::StatusOr<Caller> CallDoor::Admit(const grpc::ServerContextBase& context,
                                       const std::string& method) const {
  const CallHead head = HeadOf(context, secret_);
  OPTFARM_ASSIGN_OR_RETURN(Caller caller, ScreenCall(context, head, method));
  if (caller.OfFarm()) return caller;
  const absl::Time now = clock_.Now();
  const absl::Status status = rate_.Take(caller.project, now);
  if (status.ok()) return caller;
  NoteRefusal(head, method, caller, status, now);
  return status;
}

std::unique_ptr<OpenCalls::Open> CallDoor::HoldOpen(
    const grpc::ServerContextBase& context, const Caller& caller) const {
  return access_.open_calls().Begin(caller.token_id, caller.expire_time,
                                    [&context] { context.TryCancel(); });
}

void CallDoor::NoteRefusal(const CallHead& head, const std::string& method,
                           const Caller& caller, const absl::Status& status,
                           absl::Time now) const {
  audit_.AddRefusal(RecordOf(head.peer, method, caller, status, now));
}

void CallDoor::NoteDone(const grpc::ServerContextBase& context,
                        const std::string& method, const Call& call,
                        const absl::Status& status) const {
  if (!access_.IsAudited(method)) return;
  const Caller& caller = call.caller;
  // Workers and agents fetch and bring files all day.
  const bool program = caller.OfFarm() && !caller.May(v1::Access::ADMIN);
  if (program && status.ok()) return;
  storage::AuditRecord record = RecordOf(OriginOf(context, secret_).peer,
                                         method, caller, status, clock_.Now());
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
