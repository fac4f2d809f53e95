#include "tests/simulation/participant.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "rpc/proto_time.h"
#include "rpc/retry.h"
#include "server/scheduling/scheduling_policy.h"

namespace optfarm::simulation {
namespace {

constexpr absl::Duration kIdlePoll = absl::Seconds(30);
constexpr absl::Duration kHeldPoll = absl::Seconds(1);
constexpr absl::Duration kCallSlack = absl::Seconds(30);
constexpr absl::Duration kLeastPause = absl::Milliseconds(100);
constexpr absl::Duration kLongestBackoff = absl::Seconds(10);
constexpr absl::Duration kTransferTime = absl::Seconds(60);

v1::Digest DigestOf(const std::string& bytes) {
  v1::Digest digest;
  digest.set_sha256(Sha256Hex(bytes));
  digest.set_size_bytes(static_cast<int64_t>(bytes.size()));
  return digest;
}

// Workers and agents are of the farm.
server::Caller CallerOf(const std::string& name) {
  server::Caller caller;
  caller.name = name;
  caller.scopes = (1u << v1::Access::WORK) | (1u << v1::Access::DEVICE);
  return caller;
}

// What the task needs from the server.
std::vector<v1::Digest> FilesOf(const v1::LeasedTask& lease) {
  std::vector<v1::Digest> files;
  if (lease.has_optimize()) {
    files.push_back(lease.optimize().model().digest());
  }
  for (const auto& variant : lease.benchmark().variants()) {
    files.push_back(variant.model().digest());
  }
  return files;
}

}  // namespace

Participant::Participant(World& world, ServerHost& server,
                         ParticipantSettings settings)
    : world_(world), server_(server), settings_(std::move(settings)) {}

void Participant::Start() {
  ++process_;
  alive_ = true;
  id_ = absl::StrCat(settings_.name, ".", process_);
  world_.Note("joins", id_);
  held_ = std::make_unique<rpc::HeldTasks>([this] { Wake(); });
  works_.clear();
  call_ = nullptr;
  connected_ = false;
  failures_ = 0;
  CallServer();
}

void Participant::Vanish(absl::Duration away) {
  if (!alive_) return;
  world_.Note("vanishes", id_);
  alive_ = false;
  ++process_;
  if (call_ != nullptr) server_.HangUp(call_);
  call_ = nullptr;
  world_.After(away, [this] {
    if (!alive_) Start();
  });
}

void Participant::Pause(absl::Duration duration) {
  if (!alive_) return;
  world_.Note("sleeps", id_, absl::ToInt64Seconds(duration));
  paused_until_ = world_.now() + duration;
}

std::function<void()> Participant::Guarded(std::function<void()> action) {
  return [this, process = process_, action = std::move(action)] {
    if (process != process_ || !alive_) return;
    if (world_.now() >= paused_until_) return action();
    world_.After(paused_until_ - world_.now(), Guarded(action));
  };
}

void Participant::Later(absl::Duration wait, std::function<void()> action) {
  world_.After(wait, Guarded(std::move(action)));
}

v1::SynchronizeRequest Participant::BuildRequest() {
  v1::SynchronizeRequest request;
  request.set_participant_id(id_);
  request.set_name(settings_.name);
  request.set_kind(is_agent() ? v1::SynchronizeRequest::AGENT
                              : v1::SynchronizeRequest::WORKER);
  request.set_build_version("tool-1");
  request.set_reads_data_sources(true);
  request.set_writes_out_formats(true);
  held_->Fill(&request);
  const int working = request.held_size();
  if (!is_agent()) {
    request.set_free_slots(std::max(0, settings_.slots - working));
  }
  for (const std::string& device : settings_.devices) {
    v1::DeviceStatus& status = *request.add_devices();
    status.mutable_info()->set_name(device);
    status.mutable_info()->add_tags("arm");
    status.set_ready(absl::c_none_of(works_, [&](const WorkPtr& work) {
      return !work->done && work->task->lease().benchmark().device() == device;
    }));
  }
  const absl::Duration poll = !connected_    ? absl::ZeroDuration()
                              : working == 0 ? kIdlePoll
                                             : kHeldPoll;
  *request.mutable_long_poll() = rpc::ToProtoDuration(poll);
  return request;
}

void Participant::CallServer() {
  ++pause_;
  waits_for_news_ = false;
  const auto request =
      std::make_shared<const v1::SynchronizeRequest>(BuildRequest());
  const absl::Duration deadline =
      rpc::FromProtoDuration(request->long_poll()) + kCallSlack;
  const int64_t number = ++call_number_;
  const auto fail = [this, number](const absl::Status& status) {
    Guarded([this, number, status] {
      if (call_ != nullptr && call_number_ == number) TakeFailure(status);
    })();
  };
  const auto take = [this, number, request, fail](
                        const absl::StatusOr<v1::SynchronizeResponse>& result) {
    if (!result.ok()) return fail(result.status());
    Guarded([this, number, request, result] {
      if (call_ != nullptr && call_number_ == number) {
        TakeAnswer(*request, *result);
      }
    })();
  };
  call_ = server_.Call(
      deadline,
      [this, request, take](ServerProcess&, OpenCall& call,
                            const ServerHost::Answer& answer) {
        call.hang_up = server_.Synchronize(
            request,
            [answer,
             take](const absl::StatusOr<v1::SynchronizeResponse>& result) {
              answer([take, result] { take(result); });
            });
      },
      fail);
}

void Participant::TakeFailure(const absl::Status& status) {
  world_.Note("no answer", id_, static_cast<int64_t>(status.code()));
  call_ = nullptr;
  connected_ = false;
  const absl::Duration backoff =
      std::min(absl::Milliseconds(200) * (1 << std::min(failures_++, 8)),
               kLongestBackoff);
  PauseLoop(world_.random().Between(backoff / 2, backoff), false);
}

void Participant::TakeAnswer(const v1::SynchronizeRequest& request,
                             const v1::SynchronizeResponse& response) {
  world_.Note("answer", id_,
              response.new_tasks_size() * 100 + response.verdicts_size());
  call_ = nullptr;
  connected_ = true;
  failures_ = 0;
  for (auto& task : held_->Apply(request, response)) Begin(std::move(task));
  LookAtRefused(request, response);
  std::erase_if(works_, [](const WorkPtr& work) { return work->done; });
  if (call_ != nullptr) return;  // Something of this was news already.
  const absl::Duration wish =
      rpc::FromProtoDuration(response.call_again_after());
  const absl::Duration longest = request.held().empty() ? kIdlePoll : kHeldPoll;
  PauseLoop(std::clamp(wish, kLeastPause, longest), true);
}

// The part of the thread that works on a task, once there is a decision.
void Participant::LookAtRefused(const v1::SynchronizeRequest& request,
                                const v1::SynchronizeResponse& response) {
  for (int i = 0; i < response.verdicts_size(); ++i) {
    const v1::TaskVerdict& verdict = response.verdicts(i);
    if (verdict.verdict() == v1::TaskVerdict::CONTINUE) continue;
    const auto found = absl::c_find_if(works_, [&](const WorkPtr& work) {
      return work->task->lease().task_id() == verdict.task_id() &&
             work->task->lease().attempt() == verdict.attempt();
    });
    if (found == works_.end()) continue;
    const WorkPtr work = *found;
    const bool refused =
        verdict.verdict() == v1::TaskVerdict::COMPLETION_REFUSED;
    if (refused && i < request.held_size() &&
        !request.held(i).has_completion()) {
      continue;
    }
    if (refused && !verdict.missing_blobs().empty() && ++work->tries < 10) {
      UploadNext(work, 0);
      continue;
    }
    work->done = true;
    // Refused for good: the real worker would say that it failed; the attempt
    // has failed already.
    if (refused) world_.Note("refused", verdict.message());
  }
}

void Participant::Wake() {
  if (!alive_) return;
  if (call_ != nullptr) {
    server_.HangUp(call_);
    call_ = nullptr;
    Later(absl::Microseconds(100), [this] {
      if (call_ == nullptr) CallServer();
    });
  } else if (waits_for_news_) {
    CallServer();
  }
}

void Participant::PauseLoop(absl::Duration wait, bool for_news) {
  waits_for_news_ = for_news;
  Later(wait, [this, pause = ++pause_] {
    if (pause == pause_ && call_ == nullptr) CallServer();
  });
}

void Participant::Begin(std::shared_ptr<rpc::HeldTask> task) {
  world_.Note("leases", task->lease().task_id(), task->lease().attempt());
  auto work = std::make_shared<Work>();
  work->task = std::move(task);
  works_.push_back(work);
  Fetch(work, FilesOf(work->task->lease()));
}

// Everything that a lease needs must be at the server for as long as it lasts.
void Participant::Fetch(const WorkPtr& work, std::vector<v1::Digest> files) {
  if (work->task->IsDropped()) return;
  if (files.empty()) return GoOn(work, world_.random().Between(1, 5));
  const v1::Digest file = files.back();
  const ServerHost::Serve serve = [this, work, file, files](
                                      ServerProcess& process, OpenCall&,
                                      const ServerHost::Answer& answer) {
    const auto reader = process.blobs().OpenBlob(file.sha256());
    const absl::StatusOr<std::string> bytes =
        reader.ok() ? (*reader)->Read(0, 1 << 20) : reader.status();
    if (absl::IsNotFound(bytes.status()) ||
        (bytes.ok() && Sha256Hex(*bytes) != file.sha256())) {
      const auto task = process.store().GetTask(work->task->lease().task_id());
      if (task.ok() && task->state == v1::LEASED) {
        world_.Fail(absl::StrCat("a blob that task ", task->task_id,
                                 " needs is ",
                                 bytes.ok() ? "another one" : "not there"));
      }
    }
    answer([this, work, files, ok = bytes.ok()] {
      Guarded([this, work, files, ok] {
        std::vector<v1::Digest> rest = files;
        if (ok) rest.pop_back();
        Later(ok ? absl::ZeroDuration() : absl::Seconds(1),
              [this, work, rest] { Fetch(work, rest); });
      })();
    });
  };
  server_.Call(kTransferTime, serve, [this, work, files](absl::Status) {
    Guarded([this, work, files] {
      Later(absl::Seconds(1), [this, work, files] { Fetch(work, files); });
    })();
  });
}

void Participant::GoOn(const WorkPtr& work, int steps_left) {
  if (work->task->IsDropped()) return;
  if (steps_left == 0) return Finish(work);
  const bool hangs = world_.random().Chance(settings_.trouble / 50);
  const absl::Duration wait =
      hangs
          ? absl::Hours(3)
          : world_.random().Between(absl::Milliseconds(200), absl::Seconds(20));
  Later(wait, [this, work, steps_left] {
    if (work->task->IsDropped()) return;
    work->task->SetProgress(0.9 / steps_left, "working");
    GoOn(work, steps_left - 1);
  });
}

void Participant::Finish(const WorkPtr& work) {
  Random& random = world_.random();
  work->files.clear();
  work->completion.Clear();
  if (random.Chance(settings_.trouble)) {
    const int kind = random.Below(10);
    if (kind < 2) {
      work->completion.mutable_released()->set_reason("shuts down");
    } else {
      *work->completion.mutable_failure() = server::MakeFailure(
          kind < 4 ? v1::Failure::USER : v1::Failure::INTERNAL, "CODE",
          "what happened");
    }
  } else if (is_agent()) {
    MakeMeasurements(*work);
  } else {
    MakeReport(*work);
  }
  work->task->SetProgress(1, "handing over");
  UploadNext(work, 0);
}

void Participant::MakeReport(Work& work) {
  const v1::LeasedTask& lease = work.task->lease();
  v1::Report& report = *work.completion.mutable_report();
  report.set_passed(true);
  // Equal work makes equal files, whoever does it.
  const std::string optimized =
      absl::StrCat("graph of ", lease.optimize().model().digest().sha256(),
                   lease.optimize().recipe().name());
  *report.mutable_optimized_model() = DigestOf(optimized);
  v1::Artifact& artifact = *report.add_artifacts();
  artifact.set_name("optimized.pb");
  *artifact.mutable_digest() = report.optimized_model();
  v1::Artifact& log = *work.completion.add_artifacts();
  log.set_name("task.log");
  const std::string text =
      absl::StrCat("log of ", lease.task_id(), " ", lease.attempt());
  *log.mutable_digest() = DigestOf(text);
  work.files = {optimized, text};
}

void Participant::MakeMeasurements(Work& work) {
  const v1::BenchmarkTask& task = work.task->lease().benchmark();
  for (const v1::BenchmarkVariant& variant : task.variants()) {
    v1::Measurement& measurement =
        *work.completion.mutable_benchmark()->add_measurements();
    measurement.set_device(task.device());
    measurement.set_variant(variant.name());
    measurement.set_threads(1);
    measurement.set_runs(50);
    measurement.set_median_us(100 + world_.random().Below(100));
    *measurement.mutable_model() = variant.model().digest();
  }
}

void Participant::UploadNext(const WorkPtr& work, size_t next) {
  if (work->task->IsDropped()) return;
  if (next == work->files.size()) return HandOver(work);
  const bool breaks = world_.random().Chance(0.05);
  const auto again = [this, work, next](const absl::Status& status) {
    Guarded([this, work, next, status] {
      if (status.ok()) return UploadNext(work, next + 1);
      if (rpc::IsTransient(status) || absl::IsResourceExhausted(status) ||
          absl::IsDataLoss(status)) {
        Later(world_.random().Between(absl::Seconds(1), absl::Seconds(10)),
              [this, work, next] { UploadNext(work, next); });
        return;
      }
      world_.Fail(absl::StrCat("an upload fails: ", status.ToString()));
    })();
  };
  server_.Call(
      kTransferTime,
      [this, work, next, breaks, again](ServerProcess& process, OpenCall&,
                                        const ServerHost::Answer& answer) {
        const absl::Status status = process.Upload(
            CallerOf(settings_.name), work->files[next], breaks, server_.Now());
        answer([again, status] { again(status); });
      },
      again);
}

void Participant::HandOver(const WorkPtr& work) {
  world_.Note("hands over", work->task->lease().task_id(),
              work->task->lease().attempt());
  work->task->Complete(work->completion);
}

}  // namespace optfarm::simulation
