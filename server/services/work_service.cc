#include "server/services/work_service.h"

#include <grpcpp/security/auth_context.h>

#include <atomic>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optfarm::server {
namespace {

// One call. gRPC owns it until OnDone.
class SynchronizeCall final : public grpc::ServerUnaryReactor {
 public:
  // Who serves the call looks at `cancelled`.
  SynchronizeCall(LongPolls& polls, int64_t call,
                  std::shared_ptr<std::atomic<bool>> cancelled)
      : polls_(polls), call_(call), cancelled_(std::move(cancelled)) {}

  void OnCancel() override {
    *cancelled_ = true;
    polls_.Abandon(call_);
  }
  void OnDone() override { delete this; }

 private:
  LongPolls& polls_;
  const int64_t call_;
  const std::shared_ptr<std::atomic<bool>> cancelled_;
};

}  // namespace

absl::Status WorkServiceImpl::Admit(const grpc::CallbackServerContext& context,
                                    const v1::SynchronizeRequest& request) {
  OPTFARM_ASSIGN_OR_RETURN(
      const Caller caller,
      door_.Admit(context, "optfarm.v1.WorkService.Synchronize"));
  const bool agent = request.kind() == v1::SynchronizeRequest::AGENT;
  if (!caller.May(agent ? v1::Access::DEVICE : v1::Access::WORK)) {
    return absl::PermissionDeniedError(
        absl::StrCat("the token '", caller.name, "' may not be ",
                     agent ? "an agent: it needs the scope device"
                           : "a worker: it needs the scope work"));
  }
  if (needs_certificate_ && !context.auth_context()->IsPeerAuthenticated()) {
    return absl::UnauthenticatedError(
        "this server wants a certificate of workers and agents; give "
        "--tls_cert and --tls_key");
  }
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* WorkServiceImpl::Synchronize(
    grpc::CallbackServerContext* context, const v1::SynchronizeRequest* request,
    v1::SynchronizeResponse* response) {
  const absl::Status admitted = Admit(*context, *request);
  if (!admitted.ok()) {
    grpc::ServerUnaryReactor* refusal = context->DefaultReactor();
    refusal->Finish(CallDoor::Answer(admitted));
    return refusal;
  }
  // A caller that has hung up knows nothing of the answer; what it would have
  // been given is better kept for its next call.
  if (context->IsCancelled()) {
    grpc::ServerUnaryReactor* refusal = context->DefaultReactor();
    refusal->Finish(CallDoor::Answer(absl::CancelledError("hung up")));
    return refusal;
  }
  const int64_t call = scheduler_.BeginCall(request->participant_id());
  auto cancelled = std::make_shared<std::atomic<bool>>(false);
  auto* reactor = new SynchronizeCall(polls_, call, cancelled);
  // Once it is answered, reactor, request and response may be gone.
  queue_.Add({request, call, clock_.Now(),
              [reactor, response](
                  const absl::StatusOr<v1::SynchronizeResponse>& answer) {
                if (answer.ok()) *response = *answer;
                reactor->Finish(CallDoor::Answer(answer.status()));
              },
              cancelled});
  return reactor;
}

}  // namespace optfarm::server
