#include "tests/simulation/client.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "rpc/proto_time.h"
#include "rpc/retry.h"
#include "server/scheduling/job_spec_check.h"
#include "server/scheduling/scheduling_policy.h"

namespace optfarm::simulation {
namespace {

constexpr absl::Duration kCallTime = absl::Seconds(20);

}  // namespace

Client::Client(World& world, ServerHost& server, FarmRules& rules,
               std::string project, std::vector<std::string> devices)
    : world_(world),
      server_(server),
      rules_(rules),
      devices_(std::move(devices)) {
  caller_.name = absl::StrCat("client-of-", project);
  caller_.scopes = (1u << v1::Access::SUBMIT) | (1u << v1::Access::READ);
  caller_.project = std::move(project);
}

void Client::Submit(int jobs) {
  if (jobs == 0) return;
  TrySubmit(MakeJob());
  world_.After(world_.random().Between(absl::Seconds(1), absl::Minutes(4)),
               [this, jobs] { Submit(jobs - 1); });
}

Client::JobPtr Client::MakeJob() {
  Random& random = world_.random();
  auto job = std::make_shared<Job>();
  ++open_jobs_;
  job->request.set_client_request_id(
      absl::StrCat("request-", caller_.project, "-", ++made_));
  job->model =
      absl::StrCat("a model ", random.Below(4), " ", std::string(200, 'x'));
  v1::JobSpec& spec = *job->request.mutable_spec();
  spec.mutable_model()->set_name("model.pb");
  v1::Digest& digest = *spec.mutable_model()->mutable_digest();
  digest.set_sha256(Sha256Hex(job->model));
  digest.set_size_bytes(static_cast<int64_t>(job->model.size()));
  v1::Recipe& recipe = *spec.mutable_recipe();
  recipe.set_name(random.Chance(0.5) ? "int8" : "strip");
  recipe.set_transform_string("remove_nodes(op=Identity)");
  for (const std::string& device : devices_) {
    if (random.Chance(0.4)) spec.mutable_benchmark()->add_devices(device);
  }
  // One that it does not measure anyway.
  const bool all =
      spec.benchmark().devices_size() == static_cast<int>(devices_.size());
  if (!all && random.Chance(0.3)) {
    spec.mutable_benchmark()->add_devices("any:arm");
  }
  spec.set_no_cache(random.Chance(0.7));
  if (random.Chance(0.3)) {
    *spec.mutable_deadlines()->mutable_queue() = rpc::ToProtoDuration(
        random.Between(absl::Minutes(2), absl::Minutes(60)));
  }
  if (random.Chance(0.3)) {
    *spec.mutable_deadlines()->mutable_run() = rpc::ToProtoDuration(
        random.Between(absl::Minutes(1), absl::Minutes(20)));
  }
  if (random.Chance(0.3)) {
    *spec.mutable_deadlines()->mutable_job() =
        rpc::ToProtoDuration(random.Between(absl::Minutes(3), absl::Hours(2)));
  }
  if (random.Chance(0.3)) spec.set_max_attempts(random.Between(1, 6));
  return job;
}

absl::Duration Client::Wait(const JobPtr& job) {
  const absl::Duration longest = std::min(
      absl::Seconds(1 << std::min(job->tries++, 5)), absl::Seconds(20));
  return world_.random().Between(absl::Milliseconds(200), longest);
}

void Client::TrySubmit(const JobPtr& job) {
  const auto take = [this,
                     job](const absl::StatusOr<server::SubmitResult>& result) {
    TakeAnswer(job, result);
  };
  server_.Call(
      kCallTime,
      [this, job, take](ServerProcess& process, OpenCall&,
                        const ServerHost::Answer& answer) {
        const auto result =
            process.Submit(caller_, job->request, server_.Now());
        if (result.ok()) {
          rules_.Accepted(server::OfProject(caller_.project,
                                            job->request.client_request_id()),
                          result->job_id);
        }
        answer([take, result] { take(result); });
      },
      [take](const absl::Status& status) { take(status); });
}

void Client::TakeAnswer(const JobPtr& job,
                        const absl::StatusOr<server::SubmitResult>& result) {
  if (result.ok()) {
    world_.Note("accepted", result->job_id);
    job->job_id = result->job_id;
    job->tries = 0;
    if (world_.random().Chance(0.08)) {
      world_.After(world_.random().Between(absl::Seconds(1), absl::Minutes(2)),
                   [this, job] { TryCancel(job); });
    }
    return Watch(job);
  }
  const absl::Status& status = result.status();
  world_.Note("not accepted", job->request.client_request_id(),
              static_cast<int64_t>(status.code()));
  if (absl::IsFailedPrecondition(status)) return Upload(job);
  // A device is not known before its agent has called.
  if (!rpc::IsTransient(status) && !absl::IsResourceExhausted(status) &&
      !absl::IsNotFound(status)) {
    world_.Fail(absl::StrCat("a submit fails: ", status.ToString()));
  }
  world_.After(Wait(job), [this, job] { TrySubmit(job); });
}

void Client::Upload(const JobPtr& job) {
  const bool breaks = world_.random().Chance(0.1);
  const auto take = [this, job](const absl::Status& status) {
    if (status.ok()) return TrySubmit(job);
    if (!rpc::IsTransient(status) && !absl::IsResourceExhausted(status) &&
        !absl::IsDataLoss(status)) {
      world_.Fail(absl::StrCat("an upload fails: ", status.ToString()));
    }
    world_.After(Wait(job), [this, job] { Upload(job); });
  };
  server_.Call(
      kCallTime,
      [this, job, breaks, take](ServerProcess& process, OpenCall&,
                                const ServerHost::Answer& answer) {
        const absl::Status status =
            process.Upload(caller_, job->model, breaks, server_.Now());
        answer([take, status] { take(status); });
      },
      take);
}

void Client::TryCancel(const JobPtr& job) {
  const auto take = [this, job](const absl::Status& status) {
    world_.Note("cancelled", job->job_id, static_cast<int64_t>(status.code()));
    if (absl::IsNotFound(status) && rules_.MayBeGone(job->job_id)) return;
    if (absl::IsNotFound(status)) {
      world_.Fail(absl::StrCat("job ", job->job_id,
                               " cannot be cancelled: ", status.ToString()));
    }
    if (!status.ok()) {
      world_.After(Wait(job), [this, job] { TryCancel(job); });
    }
  };
  server_.Call(
      kCallTime,
      [this, job, take](ServerProcess& process, OpenCall&,
                        const ServerHost::Answer& answer) {
        const absl::Status status =
            process.scheduler().Cancel(job->job_id, "", server_.Now());
        answer([take, status] { take(status); });
      },
      take);
}

void Client::Watch(const JobPtr& job) {
  const auto again = [this, job](const absl::Status& status) {
    if (absl::IsNotFound(status) && rules_.MayBeGone(job->job_id)) {
      return SeenToItsEnd(job);
    }
    if (absl::IsNotFound(status)) {
      world_.Fail(
          absl::StrCat("job ", job->job_id, " is lost: ", status.ToString()));
    }
    world_.After(Wait(job), [this, job] { Watch(job); });
  };
  const int64_t after = job->seen;
  const int limit = world_.random().Between(1, 50);
  server_.Call(
      kCallTime,
      [this, job, after, limit, again](ServerProcess& process, OpenCall&,
                                       const ServerHost::Answer& answer) {
        const auto stored = process.store().GetJob(job->job_id);
        auto events = process.store().ReadEvents(job->job_id, after, limit,
                                                 /*with_logs=*/true);
        if (!stored.ok() || !events.ok()) {
          const absl::Status status =
              stored.ok() ? events.status() : stored.status();
          answer([again, status] { again(status); });
          return;
        }
        rules_.SawEvents(job->job_id, after, *events);
        answer([this, job, found = *std::move(events)] {
          TakeEvents(job, found);
        });
      },
      again);
}

void Client::SeenToItsEnd(const JobPtr& job) {
  world_.Note("seen to its end", job->job_id, job->seen);
  --open_jobs_;
  ++done_jobs_;
}

void Client::TakeEvents(const JobPtr& job,
                        const std::vector<v1::JobEvent>& events) {
  bool ended = false;
  for (const v1::JobEvent& event : events) {
    if (event.sequence() != job->seen + 1 || ended) {
      world_.Fail(absl::StrCat("who watches job ", job->job_id, " sees event ",
                               event.sequence(), " after ", job->seen));
    }
    job->seen = event.sequence();
    ended |=
        event.has_job_state() && server::HasEnded(event.job_state().state());
  }
  if (ended) return SeenToItsEnd(job);
  job->tries = 0;
  world_.After(
      world_.random().Between(absl::Milliseconds(100), absl::Seconds(15)),
      [this, job] { Watch(job); });
}

}  // namespace optfarm::simulation
