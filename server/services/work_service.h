// WorkService: the pull call of workers and agents, held open when there is
// nothing to say. Asynchronous, so that a held call costs no thread.

#ifndef OPTFARM_SERVER_SERVICES_WORK_SERVICE_H_
#define OPTFARM_SERVER_SERVICES_WORK_SERVICE_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "optfarm/v1/work.grpc.pb.h"
#include "server/access/admitted_service.h"
#include "server/access/call_door.h"
#include "server/access/holder_tokens.h"
#include "server/scheduling/call_queue.h"
#include "server/scheduling/long_polls.h"
#include "server/scheduling/scheduler.h"

namespace optfarm::server {

// THREADS: safe.
class WorkServiceImpl final
    : public AdmittedService<v1::WorkService::CallbackService> {
 public:
  // OWNERSHIP: all outlive the service.
  WorkServiceImpl(const CallDoor& door, HolderTokens& holders,
                  Scheduler& scheduler, LongPolls& polls, CallQueue& queue,
                  Clock& clock);

 private:
  class SynchronizeCall;

  // What is known before the request.
  absl::StatusOr<std::unique_ptr<CallRoom::Stay>> Enter(
      grpc::CallbackServerContext& context);
  // What keeps the call open no longer than its token is good.
  absl::StatusOr<std::unique_ptr<OpenCalls::Open>> Admit(
      const grpc::CallbackServerContext& context,
      const v1::SynchronizeRequest& request);

  const CallDoor& door_;
  HolderTokens& holders_;
  Scheduler& scheduler_;
  LongPolls& polls_;
  CallQueue& queue_;
  Clock& clock_;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SERVICES_WORK_SERVICE_H_
