#include "server/forwarding/call_forwarder.h"

#include <utility>

#include "absl/strings/match.h"
#include "base/status_macros.h"
#include "rpc/status.h"
#include "server/access/call_origin.h"
#include "server/forwarding/forwarded_call.h"

namespace optfarm::server {
namespace {

constexpr char kServices[] = "/optfarm.v1.";

}  // namespace

void CallForwarder::SetLeader(
    const std::optional<storage::LeaderRecord>& leader) {
  std::shared_ptr<LeaderLanes> before;
  {
    absl::MutexLock lock(&mutex_);
    const bool same = leader_.has_value() == leader.has_value() &&
                      (!leader || leader->epoch == leader_->epoch);
    if (same) return;
    before = std::move(lanes_);
    leader_ = leader;
    lanes_ = nullptr;
    if (leader && !leader->address.empty()) {
      rpc::ChannelOptions channel;
      channel.target = leader->address;
      channel.tls.ca = ca_;
      lanes_ =
          std::make_shared<LeaderLanes>(std::move(channel), leader->secret);
    }
  }
  if (before != nullptr) before->BreakOff();
}

absl::Status CallForwarder::Ready() const {
  absl::MutexLock lock(&mutex_);
  return lanes_ != nullptr ? absl::OkStatus() : WhyNobody();
}

absl::Status CallForwarder::WhyNobody() const {
  if (!leader_) {
    return absl::UnavailableError(
        "no server leads this farm at the moment: try again in a few seconds");
  }
  return absl::UnavailableError(
      "the server that has the database takes no calls of others: stop it, "
      "or give it --advertise");
}

std::optional<storage::LeaderRecord> CallForwarder::leader() const {
  absl::MutexLock lock(&mutex_);
  return leader_;
}

std::shared_ptr<LeaderLanes> CallForwarder::lanes() const {
  absl::MutexLock lock(&mutex_);
  return lanes_;
}

int CallForwarder::open_calls() const {
  const std::shared_ptr<LeaderLanes> now = lanes();
  return now == nullptr ? 0 : now->open_calls();
}

// Otherwise two servers that take each other for the leader would send calls to
// and fro.
absl::StatusOr<std::shared_ptr<LeaderLanes>> CallForwarder::LanesFor(
    const grpc::ServerContextBase& context) const {
  if (WasForwarded(context)) {
    return absl::UnavailableError("this server does not lead: try again");
  }
  absl::MutexLock lock(&mutex_);
  if (lanes_ == nullptr) return WhyNobody();
  return lanes_;
}

absl::StatusOr<std::unique_ptr<LeaderLanes::Place>> CallForwarder::Enter(
    const grpc::ServerContextBase& context) const {
  OPTFARM_ASSIGN_OR_RETURN(const auto to, LanesFor(context));
  return EnterFor(context, *to);
}

grpc::ServerGenericBidiReactor* CallForwarder::CreateReactor(
    grpc::GenericCallbackServerContext* context) {
  if (!absl::StartsWith(context->method(), kServices)) {
    return AnswerCall(grpc::Status(grpc::UNIMPLEMENTED, ""));
  }
  const auto to = LanesFor(*context);
  if (!to.ok()) return AnswerCall(rpc::ToGrpc(to.status()));
  ++all_calls_;
  return ForwardCall(context, *to);
}

}  // namespace optfarm::server
