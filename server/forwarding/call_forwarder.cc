#include "server/forwarding/call_forwarder.h"

#include <utility>

#include "absl/strings/match.h"
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
  if (lanes_ != nullptr) return absl::OkStatus();
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

grpc::ServerGenericBidiReactor* CallForwarder::CreateReactor(
    grpc::GenericCallbackServerContext* context) {
  if (!absl::StartsWith(context->method(), kServices)) {
    return AnswerCall(grpc::Status(grpc::UNIMPLEMENTED, ""));
  }
  // Otherwise two servers that take each other for the leader would send it to
  // and fro.
  if (WasForwarded(*context)) {
    return AnswerCall(grpc::Status(grpc::UNAVAILABLE,
                                   "this server does not lead: try again"));
  }
  const std::shared_ptr<LeaderLanes> now = lanes();
  if (now == nullptr) return AnswerCall(rpc::ToGrpc(Ready()));
  ++all_calls_;
  return ForwardCall(context, now);
}

}  // namespace optfarm::server
