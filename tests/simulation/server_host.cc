#include "tests/simulation/server_host.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rpc/proto_time.h"

namespace optfarm::simulation {
namespace {

// Ticker's longest wait.
constexpr absl::Duration kLongestTick = absl::Seconds(10);
// Pauses that deadlines do not count (server/server.cc).
constexpr absl::Duration kForgivenPause = absl::Seconds(20);

}  // namespace

ServerHost::ServerHost(World& world, SimDisk& disk, FarmRules& rules,
                       const ServerSettings& settings)
    : world_(world),
      disk_(disk),
      rules_(rules),
      settings_(settings),
      down_since_(world.now()) {}

void ServerHost::Start() {
  const int64_t generation = ++generation_;
  ServerHooks hooks;
  hooks.committed = [this](const storage::WriteBatch& batch,
                           const absl::Status& status) {
    rules_.Committed(batch, status);
  };
  hooks.next_job_id = [this] { return absl::StrCat("j", ++job_count_); };
  hooks.wake = [this, generation] {
    if (generation == generation_) TickAfter(absl::ZeroDuration());
  };
  auto process =
      ServerProcess::Start(disk_, settings_, std::move(hooks), Now());
  if (disk_.stopped()) return;  // AfterStep sees it.
  if (!process.ok()) {
    world_.Note("server does not start",
                absl::StatusCodeToString(process.status().code()));
    const bool faulty = faulty_since_ != absl::InfiniteFuture();
    if (absl::IsDataLoss(process.status()) ||
        absl::IsInternal(process.status()) || !faulty) {
      world_.Fail(absl::StrCat("the server does not start: ",
                               process.status().ToString()));
    }
    world_.After(absl::Seconds(5), [this, generation] {
      if (generation == generation_ && !up()) Start();
    });
    return;
  }
  process_ = *std::move(process);
  was_up_ = true;
  world_.Note("server starts", "", generation);
  rules_.up_time().NoteGap(down_since_, world_.now(), true);
  TakeStock();
  TickAfter(absl::ZeroDuration());
}

// Looks at what survived, with a disk that works meanwhile.
void ServerHost::TakeStock() {
  const DiskFaults faults = std::exchange(disk_.faults, DiskFaults());
  rules_.Restarted(process_->store());
  disk_.faults = faults;
}

void ServerHost::End() {
  ++generation_;
  ++tick_;
  tick_due_ = absl::InfinitePast();
  world_.Note("server ends", "", generation_);
  NotePause();
  process_.reset();
  if (std::exchange(was_up_, false)) down_since_ = world_.now();
  paused_until_ = absl::InfinitePast();
  queue_.clear();
  for (const auto& [number, call] : std::exchange(at_server_, {})) {
    // Some callers see the connection break, others wait for their deadline.
    if (world_.random().Chance(0.8)) Refuse(call, Delay());
  }
  disk_.StartAgain();
  const int64_t generation = generation_;
  world_.After(down_for_, [this, generation] {
    if (generation == generation_ && !up()) Start();
  });
}

void ServerHost::AfterStep() {
  if (disk_.stopped()) End();
}

void ServerHost::Crash(Stop how, absl::Duration down) {
  if (!up()) return;
  down_for_ = down;
  disk_.StopNow(how);
}

void ServerHost::CrashAfter(int changes, Stop how, absl::Duration down) {
  down_for_ = down;
  disk_.StopAfter(changes, how);
}

void ServerHost::Restart(absl::Duration down) {
  if (!up() || world_.now() < paused_until_) return;
  process_->Drain(Now());
  if (disk_.stopped()) return;
  // Its destructors use the disk in good order.
  process_.reset();
  down_for_ = down;
  disk_.StopNow(Stop::kProcess);
}

void ServerHost::Pause(absl::Duration duration) {
  if (!up() || world_.now() < paused_until_) return;
  world_.Note("server pauses", "", absl::ToInt64Seconds(duration));
  paused_until_ = world_.now() + duration;
  paused_since_ = world_.now();
  const int64_t generation = generation_;
  world_.After(duration, [this, generation] {
    if (generation == generation_) NotePause();
  });
}

// It ends, whether or not the process goes on.
void ServerHost::NotePause() {
  if (paused_since_ == absl::InfiniteFuture()) return;
  const bool forgiven =
      world_.now() - paused_since_ > kForgivenPause + kLongestTick;
  rules_.up_time().NoteGap(paused_since_, world_.now(), forgiven);
  paused_since_ = absl::InfiniteFuture();
}

void ServerHost::ShiftClock(absl::Duration by) {
  world_.Note("clock is set", "", absl::ToInt64Seconds(by));
  clock_ahead_ += by;
  // It may be taken for time away, and the time since for none.
  rules_.up_time().NoteGap(world_.now() - absl::AbsDuration(by),
                           world_.now() + absl::AbsDuration(by), false);
  TickAfter(absl::Seconds(1));
}

void ServerHost::NoteDiskFaults(bool faulty) {
  if (faulty) {
    faulty_since_ = std::min(faulty_since_, world_.now());
  } else if (faulty_since_ != absl::InfiniteFuture()) {
    rules_.up_time().NoteGap(faulty_since_, world_.now(), false);
    faulty_since_ = absl::InfiniteFuture();
  }
}

void ServerHost::TickAfter(absl::Duration wait) {
  // Who wakes it a second time changes nothing.
  if (tick_due_ <= world_.now() + wait && tick_due_ >= world_.now()) return;
  const int64_t tick = ++tick_;
  tick_due_ = world_.now() + wait;
  world_.After(wait, [this, tick] {
    if (tick != tick_ || !up()) return;
    tick_due_ = absl::InfinitePast();
    if (world_.now() < paused_until_) {
      TickAfter(paused_until_ - world_.now());
    } else {
      Tick();
    }
  });
}

void ServerHost::Tick() {
  const int64_t tick = tick_;
  furthest_clock_ = std::max(furthest_clock_, Now());
  rules_.SetKeptSince(furthest_clock_ - settings_.retention.jobs);
  const absl::Time next = process_->Step(Now());
  world_.Note("tick");
  if (disk_.stopped()) return;
  const bool well = faulty_since_ == absl::InfiniteFuture();
  if (well) rules_.CheckDeadlines();
  // Whoever woke it meanwhile has set the next one.
  if (tick == tick_) {
    TickAfter(std::clamp(next - Now(), absl::ZeroDuration(), kLongestTick));
  }
}

absl::Duration ServerHost::Delay() {
  Random& random = world_.random();
  if (random.Chance(network.late)) {
    return random.Between(absl::Milliseconds(10), absl::Minutes(1));
  }
  return random.Between(absl::Microseconds(200), absl::Milliseconds(5));
}

void ServerHost::Send(std::function<void()> deliver) {
  if (world_.random().Chance(network.twice)) world_.After(Delay(), deliver);
  if (world_.random().Chance(network.lost)) return;
  world_.After(Delay(), std::move(deliver));
}

void ServerHost::Refuse(const OpenCallPtr& call, absl::Duration wait) {
  world_.After(wait, [call] {
    if (std::exchange(call->over, true)) return;
    call->failed(absl::UnavailableError("the connection broke"));
  });
}

OpenCallPtr ServerHost::Call(absl::Duration deadline, Serve serve,
                             std::function<void(absl::Status)> failed) {
  auto call = std::make_shared<OpenCall>();
  call->number = ++call_count_;
  call->failed = std::move(failed);
  Send([this, call, serve = std::move(serve)] { Arrive(call, serve); });
  world_.After(deadline, [this, call] {
    if (call->over) return;
    HangUp(call);
    call->failed(absl::DeadlineExceededError("no answer in time"));
  });
  return call;
}

void ServerHost::HangUp(const OpenCallPtr& call) {
  call->over = true;
  Send([this, call] {
    AtServer([call] {
      if (call->hang_up) call->hang_up();
    });
  });
}

void ServerHost::AtServer(std::function<void()> action) {
  if (!up()) return;
  if (world_.now() >= paused_until_) return action();
  const int64_t generation = generation_;
  world_.After(paused_until_ - world_.now(),
               [this, generation, action = std::move(action)] {
                 if (generation == generation_) AtServer(action);
               });
}

void ServerHost::Arrive(const OpenCallPtr& call, const Serve& serve) {
  if (!up()) return Refuse(call, Delay());
  at_server_[call->number] = call;
  const int64_t generation = generation_;
  const Answer answer = [this, call,
                         generation](std::function<void()> at_caller) {
    // A process that has ended says nothing more.
    if (generation != generation_ || disk_.stopped()) return;
    at_server_.erase(call->number);
    Send([call, at_caller = std::move(at_caller)] {
      if (!std::exchange(call->over, true)) at_caller();
    });
  };
  AtServer([this, call, serve, answer] { serve(*process_, *call, answer); });
}

std::function<void()> ServerHost::Synchronize(
    std::shared_ptr<const v1::SynchronizeRequest> request,
    std::function<void(const absl::StatusOr<v1::SynchronizeResponse>&)> reply) {
  server::IncomingCall call;
  call.request = request.get();
  call.number = process_->scheduler().BeginCall(request->participant_id());
  call.time = Now();
  const auto hung_up = std::make_shared<std::atomic<bool>>(false);
  call.hung_up = hung_up;
  call.reply = [this, request, reply = std::move(reply)](
                   const absl::StatusOr<v1::SynchronizeResponse>& answer) {
    if (disk_.stopped()) return;
    if (answer.ok()) {
      rules_.Answered(*request, *answer);
      for (const v1::LeasedTask& lease : answer->new_tasks()) {
        rules_.Promised(
            lease.task_id(), lease.attempt(),
            rpc::FromTimestamp(lease.lease_deadline()) - clock_ahead_);
      }
      for (const v1::TaskVerdict& verdict : answer->verdicts()) {
        if (!verdict.has_lease_deadline()) continue;
        rules_.Promised(
            verdict.task_id(), verdict.attempt(),
            rpc::FromTimestamp(verdict.lease_deadline()) - clock_ahead_);
      }
    }
    reply(answer);
  };
  const int64_t number = call.number;
  const int64_t generation = generation_;
  queue_.push_back(std::move(call));
  if (queue_.size() == 1) {
    world_.After(
        world_.random().Between(absl::Microseconds(1), absl::Milliseconds(2)),
        [this, generation] {
          if (generation == generation_) ServeQueue();
        });
  }
  return [this, hung_up, number, generation] {
    *hung_up = true;
    if (generation == generation_) process_->polls().Abandon(number);
  };
}

void ServerHost::ServeQueue() {
  AtServer([this] {
    if (!queue_.empty()) process_->polls().Serve(std::exchange(queue_, {}));
  });
}

}  // namespace optfarm::simulation
