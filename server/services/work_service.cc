#include "server/services/work_service.h"

#include <atomic>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/conventions/names.h"

namespace optfarm::server {
namespace {

constexpr char kSynchronize[] = "optfarm.v1.WorkService.Synchronize";

}  // namespace

// One call. gRPC owns it until OnDone.
class WorkServiceImpl::SynchronizeCall final
    : public grpc::ServerBidiReactor<BoundedRequest<v1::SynchronizeRequest>,
                                     v1::SynchronizeResponse> {
 public:
  SynchronizeCall(WorkServiceImpl& service,
                  grpc::CallbackServerContext& context)
      : service_(service), context_(context) {
    absl::StatusOr<std::unique_ptr<CallRoom::Stay>> stay =
        service.Enter(context);
    if (!stay.ok()) {
      Finish(CallDoor::Answer(stay.status()));
      return;
    }
    stay_ = *std::move(stay);
    request_.stay = stay_.get();
    StartRead(&request_);
  }

  void OnReadDone(bool ok) override {
    stay_->Arrived();
    const absl::Status status = Begin(ok);
    if (!status.ok()) Finish(CallDoor::Answer(status));
  }
  void OnCancel() override {
    *cancelled_ = true;
    // Nobody holds a call that has not begun.
    service_.polls_.Abandon(call_);
  }
  void OnDone() override { delete this; }

 private:
  absl::Status Begin(bool ok) {
    if (!ok) {
      return stay_->TooSlow() ? absl::DeadlineExceededError(
                                    "the request did not come in time")
                              : absl::CancelledError("no request came");
    }
    OPTFARM_RETURN_IF_ERROR(request_.status);
    OPTFARM_ASSIGN_OR_RETURN(open_, service_.Admit(context_, request_.message));
    // A caller that has hung up knows nothing of the answer; what it would have
    // been given is better kept for its next call.
    if (context_.IsCancelled()) return absl::CancelledError("hung up");
    call_ = service_.scheduler_.BeginCall(request_.message.participant_id());
    // Once it is answered, this may be gone.
    service_.queue_.Add(
        {&request_.message, call_, service_.clock_.Now(),
         [this](const absl::StatusOr<v1::SynchronizeResponse>& answer) {
           if (!answer.ok()) return Finish(CallDoor::Answer(answer.status()));
           response_ = *answer;
           StartWriteAndFinish(&response_, grpc::WriteOptions(),
                               grpc::Status::OK);
         },
         cancelled_});
    return absl::OkStatus();
  }

  WorkServiceImpl& service_;
  grpc::CallbackServerContext& context_;
  std::unique_ptr<CallRoom::Stay> stay_;
  std::unique_ptr<OpenCalls::Open> open_;
  BoundedRequest<v1::SynchronizeRequest> request_{kSynchronize};
  v1::SynchronizeResponse response_;
  std::atomic<int64_t> call_ = -1;
  // Who serves the call looks at it.
  const std::shared_ptr<std::atomic<bool>> cancelled_ =
      std::make_shared<std::atomic<bool>>(false);
};

WorkServiceImpl::WorkServiceImpl(const CallDoor& door, HolderTokens& holders,
                                 Scheduler& scheduler, LongPolls& polls,
                                 CallQueue& queue, Clock& clock)
    : door_(door),
      holders_(holders),
      scheduler_(scheduler),
      polls_(polls),
      queue_(queue),
      clock_(clock) {
  AdmitReactor<v1::SynchronizeRequest, v1::SynchronizeResponse>(
      kSynchronize, [this](grpc::CallbackServerContext* context) {
        return new SynchronizeCall(*this, *context);
      });
}

absl::StatusOr<std::unique_ptr<CallRoom::Stay>> WorkServiceImpl::Enter(
    grpc::CallbackServerContext& context) {
  return door_.Enter(context, kSynchronize, CallRoom::Served::kByReactor);
}

absl::StatusOr<std::unique_ptr<OpenCalls::Open>> WorkServiceImpl::Admit(
    const grpc::CallbackServerContext& context,
    const v1::SynchronizeRequest& request) {
  OPTFARM_ASSIGN_OR_RETURN(const Caller caller,
                           door_.Admit(context, kSynchronize));
  const bool agent = request.kind() == v1::SynchronizeRequest::AGENT;
  if (!caller.May(agent ? v1::Access::DEVICE : v1::Access::WORK)) {
    return absl::PermissionDeniedError(
        absl::StrCat("the token '", caller.name, "' may not be ",
                     agent ? "an agent: it needs the scope device"
                           : "a worker: it needs the scope work"));
  }
  // An id that is none is refused by the scheduler, in its own words.
  if (CheckName("participant_id", request.participant_id()).ok()) {
    OPTFARM_RETURN_IF_ERROR(
        holders_.Note(request.participant_id(), caller, clock_.Now()));
  }
  return door_.HoldOpen(context, caller);
}

}  // namespace optfarm::server
