#include "rpc/participant.h"

#include <grpcpp/channel.h>
#include <signal.h>

#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/log.h"
#include "base/sandbox.h"
#include "base/service_manager.h"
#include "base/status_macros.h"
#include "base/stop_signal.h"
#include "optfarm/v1/models.grpc.pb.h"
#include "optfarm/v1/work.grpc.pb.h"
#include "rpc/synchronizer.h"

namespace optfarm::rpc {
namespace {

// The two meet in the middle of a cycle: leases go from the loop to the
// runner, news from the runner to the loop. The runner goes first at the end,
// because its threads call the loop.
struct LoopAndRunner {
  std::unique_ptr<Synchronizer> loop;
  std::unique_ptr<TaskRunner> runner;
};

SynchronizerOptions LoopOptions(const ParticipantOptions& options,
                                LoopAndRunner* parts) {
  SynchronizerOptions loop;
  loop.exit_when_idle = options.exit_when_idle;
  loop.identity.set_participant_id(NewParticipantId());
  loop.identity.set_name(options.name);
  loop.identity.set_kind(options.kind);
  loop.identity.set_build_version(options.build_version);
  loop.identity.mutable_builtin_recipes()->Add(options.builtin_recipes.begin(),
                                               options.builtin_recipes.end());
  if (options.kind == v1::SynchronizeRequest::WORKER) {
    loop.identity.set_reads_data_sources(true);
    loop.identity.set_writes_out_formats(true);
    loop.free_slots = [parts, slots = options.slots] {
      return slots - parts->runner->active();
    };
  }
  if (options.devices != nullptr) {
    loop.devices = [parts, devices = options.devices] {
      return devices(parts->runner->busy_devices());
    };
  }
  loop.on_lease = [parts](std::shared_ptr<HeldTask> task) {
    parts->runner->Start(std::move(task));
  };
  loop.on_ready = [program = options.program, name = options.name,
                   target = options.channel.target] {
    LogInfo(program, " ready server=", target, " name=", name);
  };
  loop.on_cycle = &TellServiceAlive;
  return loop;
}

}  // namespace

absl::Status RunParticipant(ParticipantOptions options) {
  HoldStopSignals();
  ::signal(SIGPIPE, SIG_IGN);
  std::optional<ScopedFolder> temporary;
  if (options.runner.work_folder.empty()) {
    OPTFARM_ASSIGN_OR_RETURN(
        options.runner.work_folder,
        MakeTemporaryFolder(absl::StrCat(options.program, "-")));
    temporary.emplace(options.runner.work_folder);
  }
  OPTFARM_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::Channel> channel,
                           MakeChannel(options.channel));
  const auto models = v1::ModelService::NewStub(channel);
  const auto work = v1::WorkService::NewStub(channel);
  LoopAndRunner parts;
  parts.loop =
      std::make_unique<Synchronizer>(work.get(), LoopOptions(options, &parts));
  options.runner.placing =
      ProbeSandbox().namespaces ? Placing::kLink : Placing::kCopy;
  options.runner.on_idle = [&parts] { parts.loop->Wake(); };
  OPTFARM_ASSIGN_OR_RETURN(parts.runner,
                           TaskRunner::Create(models.get(), options.runner));
  absl::Status status;
  if (options.take_waker) {
    options.take_waker([&parts] { parts.loop->Wake(); });
  }
  {
    const StopSignal stop([&parts] {
      TellServiceStopping();
      parts.loop->Shutdown();
    });
    // A server that is not there yet is no reason for others to wait.
    TellServiceReady();
    status = parts.loop->Run();
  }
  if (options.take_waker) options.take_waker(nullptr);
  parts.runner = nullptr;
  if (status.ok()) LogInfo(options.program, " stopped");
  return Annotate(status, absl::StrCat("joining ", options.channel.target));
}

}  // namespace optfarm::rpc
