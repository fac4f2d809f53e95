#include "server/forwarding/forwarded_call.h"

#include <grpcpp/support/client_callback.h>

#include <atomic>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/synchronization/mutex.h"
#include "http/backend.h"
#include "rpc/status.h"
#include "server/access/call_origin.h"

namespace optfarm::server {
namespace {

// What gRPC writes itself, and what only a server may say.
bool IsOurs(absl::string_view key) {
  return absl::StartsWith(key, "grpc-") || key == "user-agent" ||
         key == "content-type" || key == "te" || key == http::kPeerKey ||
         key == http::kCertifiedKey || key == kForwardedKey;
}

void CopyMetadata(const grpc::ServerContextBase& from,
                  const std::string& secret, grpc::ClientContext& to) {
  for (const auto& [key, value] : from.client_metadata()) {
    const std::string name(key.data(), key.size());
    if (!IsOurs(name)) {
      to.AddMetadata(name, std::string(value.data(), value.size()));
    }
  }
  const CallOrigin origin = OriginOf(from, "");
  to.AddMetadata(http::kPeerKey, origin.peer);
  if (origin.certified) to.AddMetadata(http::kCertifiedKey, "1");
  to.AddMetadata(kForwardedKey, secret);
}

// Deletes itself when both ends are done.
//
// The leader's end is held open twice, by the requests and by the answers:
// each starts operations from the other end's reactions. Both holds are gone
// when no more of them will be started, and then gRPC says what came of it.
class Forwarded {
 public:
  Forwarded(grpc::GenericCallbackServerContext* context,
            std::unique_ptr<LeaderLanes::Place> place)
      : context_(*context),
        place_(std::move(place)),
        inbound_(*this),
        outbound_(*this) {}

  grpc::ServerGenericBidiReactor* Begin() {
    place_->stub().PrepareBidiStreamingCall(
        &place_->context(), context_.method(), grpc::StubOptions(), &outbound_);
    outbound_.AddMultipleHolds(2);
    inbound_.StartRead(&request_);
    outbound_.StartCall();
    return &inbound_;
  }

 private:
  // Towards the caller.
  class Inbound final : public grpc::ServerGenericBidiReactor {
   public:
    explicit Inbound(Forwarded& call) : call_(call) {}
    void OnReadDone(bool ok) override { call_.TakeRequest(ok); }
    void OnWriteDone(bool ok) override {
      if (ok) {
        call_.outbound_.StartRead(&call_.answer_);
      } else {
        call_.place_->context().TryCancel();
        call_.EndAnswers();
      }
    }
    void OnCancel() override { call_.place_->context().TryCancel(); }
    void OnDone() override { call_.LeaveOne(); }

   private:
    Forwarded& call_;
  };

  // Towards the leader.
  class Outbound final
      : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
   public:
    explicit Outbound(Forwarded& call) : call_(call) {}
    void OnReadInitialMetadataDone(bool ok) override {
      if (ok) {
        call_.CopyInitialMetadata();
        call_.inbound_.StartSendInitialMetadata();
      }
      StartRead(&call_.answer_);
    }
    void OnWriteDone(bool ok) override { call_.NoteRequestSent(ok); }
    void OnWritesDoneDone(bool) override { call_.NoteRequestSent(false); }
    void OnReadDone(bool ok) override {
      if (ok) {
        call_.inbound_.StartWrite(&call_.answer_);
      } else {
        call_.EndAnswers();
      }
    }
    void OnDone(const grpc::Status& status) override { call_.Finish(status); }

   private:
    Forwarded& call_;
  };

  void CopyInitialMetadata() {
    for (const auto& [key, value] :
         place_->context().GetServerInitialMetadata()) {
      context_.AddInitialMetadata(std::string(key.data(), key.size()),
                                  std::string(value.data(), value.size()));
    }
  }

  // A request has come, or there are no more.
  void TakeRequest(bool ok) {
    absl::MutexLock lock(&mutex_);
    if (!requests_held_) return;
    sending_ = true;
    if (ok) {
      outbound_.StartWrite(&request_);
    } else {
      outbound_.StartWritesDone();
    }
  }

  // `more`: the next may come.
  void NoteRequestSent(bool more) {
    bool release = false;
    {
      absl::MutexLock lock(&mutex_);
      sending_ = false;
      if (more && !answers_ended_) {
        inbound_.StartRead(&request_);
      } else {
        release = std::exchange(requests_held_, false);
      }
    }
    if (release) outbound_.RemoveHold();
  }

  void EndAnswers() {
    bool release = false;
    {
      absl::MutexLock lock(&mutex_);
      answers_ended_ = true;
      // The leader is done; the caller's next request is for nobody.
      if (!sending_) release = std::exchange(requests_held_, false);
    }
    if (release) outbound_.RemoveHold();
    outbound_.RemoveHold();
  }

  void Finish(const grpc::Status& status) {
    for (const auto& [key, value] :
         place_->context().GetServerTrailingMetadata()) {
      const std::string name(key.data(), key.size());
      if (IsOurs(name)) continue;
      context_.AddTrailingMetadata(name,
                                   std::string(value.data(), value.size()));
    }
    const bool broken_off = status.error_code() == grpc::CANCELLED &&
                            place_->leader_is_gone() && !context_.IsCancelled();
    inbound_.Finish(broken_off ? rpc::ToGrpc(place_->Outcome(status)) : status);
    LeaveOne();
  }

  void LeaveOne() {
    if (--ends_ == 0) delete this;
  }

  grpc::GenericCallbackServerContext& context_;
  const std::unique_ptr<LeaderLanes::Place> place_;
  Inbound inbound_;
  Outbound outbound_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer answer_;
  std::atomic<int> ends_ = 2;
  absl::Mutex mutex_;
  // Of the two holds, that of the requests.
  bool requests_held_ ABSL_GUARDED_BY(mutex_) = true;
  bool sending_ ABSL_GUARDED_BY(mutex_) = false;
  bool answers_ended_ ABSL_GUARDED_BY(mutex_) = false;
};

class Answered final : public grpc::ServerGenericBidiReactor {
 public:
  explicit Answered(const grpc::Status& status) { Finish(status); }
  void OnDone() override { delete this; }
};

}  // namespace

absl::StatusOr<std::unique_ptr<LeaderLanes::Place>> EnterFor(
    const grpc::ServerContextBase& context, LeaderLanes& leader) {
  // With the caller's deadline, and cancelled with its call.
  std::shared_ptr<grpc::ClientContext> onward =
      grpc::ClientContext::FromServerContext(context);
  CopyMetadata(context, leader.secret(), *onward);
  return leader.Enter(std::move(onward));
}

grpc::ServerGenericBidiReactor* ForwardCall(
    grpc::GenericCallbackServerContext* context,
    const std::shared_ptr<LeaderLanes>& leader) {
  absl::StatusOr<std::unique_ptr<LeaderLanes::Place>> place =
      EnterFor(*context, *leader);
  if (!place.ok()) return AnswerCall(rpc::ToGrpc(place.status()));
  return (new Forwarded(context, *std::move(place)))->Begin();
}

grpc::ServerGenericBidiReactor* AnswerCall(const grpc::Status& status) {
  return new Answered(status);
}

}  // namespace optfarm::server
