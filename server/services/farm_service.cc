#include "server/services/farm_service.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "rpc/proto_time.h"
#include "server/conventions/names.h"
#include "server/services/list_query.h"

namespace optfarm::server {
namespace {

constexpr char kWatchJobs[] = "optfarm.v1.FarmService.WatchJobs";
constexpr int kMostVerdicts = 200;
constexpr int kStatesAPage = 100;
constexpr int kProjectsAPage = 100;
constexpr int kParticipantsAPage = 200;
constexpr absl::Duration kParticipantsSince = absl::Hours(1);

// Valid tokens by project.
std::map<std::string, int> CountTokens(
    const std::vector<storage::TokenRecord>& tokens, absl::Time now) {
  std::map<std::string, int> count;
  for (const storage::TokenRecord& token : tokens) {
    const bool valid =
        token.revoke_time == absl::InfinitePast() && token.expire_time > now;
    if (valid && !token.project.empty()) ++count[token.project];
  }
  return count;
}

int CountOf(const std::map<std::string, int>& counts, const std::string& name) {
  const auto found = counts.find(name);
  return found == counts.end() ? 0 : found->second;
}

// Page tokens of projects are names: a list by name has no numbers.
absl::StatusOr<int> ProjectPage(const v1::ListProjectsRequest& request) {
  OPTFARM_ASSIGN_OR_RETURN(const storage::PageRequest page,
                           ParsePage(request.page_size(), kProjectsAPage, ""));
  if (!request.page_token().empty()) {
    OPTFARM_RETURN_IF_ERROR(CheckName("page_token", request.page_token()));
  }
  return page.limit;
}

}  // namespace

FarmServiceImpl::FarmServiceImpl(const CallDoor& door, const FarmParts& parts,
                                 StoreFacts facts, Clock& clock)
    : door_(door), farm_(parts), facts_(std::move(facts)), clock_(clock) {
  AdmitUnary(door, "optfarm.v1.FarmService.ListVerdicts",
             &Service::ListVerdicts);
  AdmitReactor<v1::WatchJobsRequest, v1::JobListEvent>(
      kWatchJobs,
      [this](grpc::CallbackServerContext* context) { return Watch(*context); });
  AdmitUnary(door, "optfarm.v1.FarmService.ListDeviceHistory",
             &Service::ListDeviceHistory);
  AdmitUnary(door, "optfarm.v1.FarmService.ListProjects",
             &Service::ListProjects);
  AdmitUnary(door, "optfarm.v1.FarmService.GetStoreUsage",
             &Service::GetStoreUsage);
  AdmitUnary(door, "optfarm.v1.FarmService.ListParticipants",
             &Service::ListParticipants);
}

grpc::Status FarmServiceImpl::ListVerdicts(
    grpc::ServerContext* context, const v1::ListVerdictsRequest* request,
    v1::ListVerdictsResponse* response) {
  return door_.Serve(
      *context, "optfarm.v1.FarmService.ListVerdicts",
      [&](Call& call) { return Verdicts(call.caller, *request, *response); });
}

absl::Status FarmServiceImpl::Verdicts(const Caller& caller,
                                       const v1::ListVerdictsRequest& request,
                                       v1::ListVerdictsResponse& response) {
  if (request.job_ids().empty() || request.job_ids_size() > kMostVerdicts) {
    return absl::InvalidArgumentError(absl::StrCat(request.job_ids_size(),
                                                   " job_ids; give 1 to ",
                                                   kMostVerdicts, " of them"));
  }
  for (const std::string& job_id : request.job_ids()) {
    absl::StatusOr<v1::Job> job = farm_.lists.Read(job_id);
    if (absl::IsNotFound(job.status())) continue;
    OPTFARM_RETURN_IF_ERROR(job.status());
    if (!caller.Sees(job->project())) continue;
    v1::JobVerdicts& found = *response.add_jobs();
    found.set_job_id(job_id);
    *found.mutable_verdicts() = std::move(*job->mutable_verdicts());
  }
  return absl::OkStatus();
}

JobListReactor* FarmServiceImpl::Watch(grpc::CallbackServerContext& context) {
  return StartJobListWatch(
      door_.Enter(context, kWatchJobs, CallRoom::Served::kByReactor),
      [this, &context]() -> absl::StatusOr<AdmittedWatch> {
        OPTFARM_ASSIGN_OR_RETURN(const Caller caller,
                                 door_.Admit(context, kWatchJobs));
        return AdmittedWatch{caller.Room(), door_.HoldOpen(context, caller)};
      },
      farm_.feed);
}

grpc::Status FarmServiceImpl::ListDeviceHistory(
    grpc::ServerContext* context, const v1::ListDeviceHistoryRequest* request,
    v1::ListDeviceHistoryResponse* response) {
  return door_.Serve(
      *context, "optfarm.v1.FarmService.ListDeviceHistory",
      [&](Call& call) { return History(call.caller, *request, *response); });
}

absl::Status FarmServiceImpl::History(
    const Caller& caller, const v1::ListDeviceHistoryRequest& request,
    v1::ListDeviceHistoryResponse& response) {
  OPTFARM_ASSIGN_OR_RETURN(
      const storage::PageRequest page,
      ParsePage(request.page_size(), kStatesAPage, request.page_token()));
  OPTFARM_ASSIGN_OR_RETURN(
      const std::vector<storage::DeviceStateRecord> states,
      farm_.scheduler.DeviceHistory(request.name(), page, clock_.Now(),
                                    caller.OnlyProject()));
  for (const storage::DeviceStateRecord& state : states) {
    v1::DeviceStateChange& change = *response.add_changes();
    *change.mutable_time() = rpc::ToTimestamp(state.time);
    change.set_state(state.state);
    change.set_reason(state.reason);
  }
  if (static_cast<int>(states.size()) == page.limit) {
    response.set_next_page_token(PageToken(states.back().number));
  }
  return absl::OkStatus();
}

grpc::Status FarmServiceImpl::ListProjects(
    grpc::ServerContext* context, const v1::ListProjectsRequest* request,
    v1::ListProjectsResponse* response) {
  return door_.Serve(*context, "optfarm.v1.FarmService.ListProjects",
                     [&] { return Projects(*request, *response); });
}

absl::Status FarmServiceImpl::Projects(const v1::ListProjectsRequest& request,
                                       v1::ListProjectsResponse& response) {
  OPTFARM_ASSIGN_OR_RETURN(const int limit, ProjectPage(request));
  const std::string& after = request.page_token();
  const absl::Time now = clock_.Now();
  OPTFARM_ASSIGN_OR_RETURN(const auto all_tokens, farm_.access.List());
  const std::map<std::string, int> tokens = CountTokens(all_tokens, now);
  const std::vector<std::string> limited = farm_.limits.WithOwn();
  // One more than asked for tells whether there is a next page.
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<std::string> stored,
                           farm_.store.ListProjects(after, limit + 1));
  std::set<std::string> names(stored.begin(), stored.end());
  names.insert(limited.begin(), limited.end());
  for (const auto& [name, count] : tokens) names.insert(name);
  const std::map<std::string, int> live = farm_.scheduler.LiveJobsByProject();
  for (auto name = names.upper_bound(after); name != names.end(); ++name) {
    if (response.projects_size() == limit) {
      response.set_next_page_token(response.projects(limit - 1).name());
      break;
    }
    OPTFARM_ASSIGN_OR_RETURN(v1::Project project, Describe(*name, now));
    project.set_live_jobs(CountOf(live, *name));
    project.set_tokens(CountOf(tokens, *name));
    project.set_own_limits(
        std::binary_search(limited.begin(), limited.end(), *name));
    *response.add_projects() = std::move(project);
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::Project> FarmServiceImpl::Describe(
    const std::string& project, absl::Time now) {
  OPTFARM_ASSIGN_OR_RETURN(
      const storage::ProjectUsage usage,
      farm_.store.GetProjectUsage(project, now - absl::Hours(24)));
  const ProjectLimits limits = farm_.limits.Of(project);
  v1::Project described;
  described.set_name(project);
  described.set_bytes(usage.bytes);
  described.set_max_bytes(limits.max_bytes);
  described.set_max_live_jobs(limits.max_live_jobs);
  described.set_jobs_a_day(usage.jobs);
  described.set_max_jobs_a_day(limits.max_jobs_a_day);
  described.set_max_calls_per_second(limits.calls_per_second);
  return described;
}

grpc::Status FarmServiceImpl::GetStoreUsage(
    grpc::ServerContext* context, const v1::GetStoreUsageRequest* /*request*/,
    v1::StoreUsage* response) {
  return door_.Serve(*context, "optfarm.v1.FarmService.GetStoreUsage", [&] {
    Usage(*response);
    return absl::OkStatus();
  });
}

void FarmServiceImpl::Usage(v1::StoreUsage& usage) {
  const storage::BlobUsage blobs = farm_.blobs.Usage();
  const BlobJanitor::Evictions evictions = farm_.janitor.evictions();
  usage.set_blob_engine(facts_.blob_engine);
  usage.set_database_engine(facts_.database_engine);
  usage.set_blobs(blobs.blobs);
  usage.set_blob_bytes(blobs.blob_bytes);
  usage.set_staged_bytes(blobs.staged_bytes);
  usage.set_max_bytes(facts_.max_bytes);
  if (!facts_.folder.empty()) {
    std::error_code error;
    const auto space = std::filesystem::space(facts_.folder, error);
    if (!error) usage.set_free_bytes(static_cast<int64_t>(space.available));
  }
  usage.set_evicts(farm_.janitor.may_evict());
  usage.set_evicted_bytes(evictions.bytes);
  usage.set_evictions(evictions.rounds);
  if (evictions.last != absl::InfinitePast()) {
    *usage.mutable_last_eviction_time() = rpc::ToTimestamp(evictions.last);
  }
}

grpc::Status FarmServiceImpl::ListParticipants(
    grpc::ServerContext* context, const v1::ListParticipantsRequest* request,
    v1::ListParticipantsResponse* response) {
  return door_.Serve(*context, "optfarm.v1.FarmService.ListParticipants",
                     [&] { return Participants(*request, *response); });
}

absl::Status FarmServiceImpl::Participants(
    const v1::ListParticipantsRequest& request,
    v1::ListParticipantsResponse& response) {
  // The page token counts those that were sent already.
  OPTFARM_ASSIGN_OR_RETURN(
      const storage::PageRequest page,
      ParsePage(request.page_size(), kParticipantsAPage, request.page_token()));
  const std::vector<Scheduler::KnownParticipant> known =
      farm_.scheduler.Participants(clock_.Now() - kParticipantsSince);
  const int64_t total = static_cast<int64_t>(known.size());
  const int64_t end = std::min<int64_t>(total, page.before + page.limit);
  for (int64_t i = page.before; i < end; ++i) {
    const Scheduler::KnownParticipant& one = known[static_cast<size_t>(i)];
    v1::Participant& participant = *response.add_participants();
    participant.set_participant_id(one.record.participant_id);
    participant.set_name(one.record.name);
    participant.set_kind(one.record.kind == v1::SynchronizeRequest::WORKER
                             ? v1::Participant::WORKER
                             : v1::Participant::AGENT);
    participant.set_build_version(one.record.build_version);
    *participant.mutable_first_seen() = rpc::ToTimestamp(one.record.first_seen);
    *participant.mutable_last_seen() = rpc::ToTimestamp(one.record.last_seen);
    participant.set_tasks(one.tasks);
  }
  if (end < total) response.set_next_page_token(PageToken(end));
  return absl::OkStatus();
}

}  // namespace optfarm::server
