#include "server/services/tune_service.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/services/list_query.h"

namespace optfarm::server {
namespace {

constexpr int kTunesAPage = 50;
constexpr size_t kMaxReasonBytes = 1000;

// What a list shows of a report.
void KeepRecommended(v1::TuneReport* report) {
  for (v1::TunedDevice& device : *report->mutable_devices()) {
    device.clear_variants();
  }
  report->clear_steps();
  report->clear_warnings();
}

}  // namespace

TuneServiceImpl::TuneServiceImpl(const CallDoor& door, TuneRunner& runner,
                                 storage::TuneStore& tunes)
    : door_(door), runner_(runner), tunes_(tunes) {
  AdmitUnary(door, "optfarm.v1.TuneService.CreateTune", &Service::CreateTune);
  AdmitUnary(door, "optfarm.v1.TuneService.GetTune", &Service::GetTune);
  AdmitUnary(door, "optfarm.v1.TuneService.ListTunes", &Service::ListTunes);
  AdmitUnary(door, "optfarm.v1.TuneService.CancelTune", &Service::CancelTune);
}

grpc::Status TuneServiceImpl::CreateTune(grpc::ServerContext* context,
                                         const v1::CreateTuneRequest* request,
                                         v1::CreateTuneResponse* response) {
  return door_.Serve(*context, "optfarm.v1.TuneService.CreateTune",
                     [&](Call& call) -> absl::Status {
                       OPTFARM_ASSIGN_OR_RETURN(
                           TuneRunner::Created created,
                           runner_.Create(call.caller, *request));
                       call.subject = created.tune.tune_id();
                       *response->mutable_tune() = std::move(created.tune);
                       response->set_existed(created.existed);
                       return absl::OkStatus();
                     });
}

grpc::Status TuneServiceImpl::GetTune(grpc::ServerContext* context,
                                      const v1::GetTuneRequest* request,
                                      v1::Tune* response) {
  return door_.Serve(*context, "optfarm.v1.TuneService.GetTune",
                     [&](Call& call) -> absl::Status {
                       OPTFARM_ASSIGN_OR_RETURN(
                           *response, Find(call.caller, request->tune_id()));
                       return absl::OkStatus();
                     });
}

grpc::Status TuneServiceImpl::ListTunes(grpc::ServerContext* context,
                                        const v1::ListTunesRequest* request,
                                        v1::ListTunesResponse* response) {
  return door_.Serve(
      *context, "optfarm.v1.TuneService.ListTunes",
      [&](Call& call) { return List(call.caller, *request, *response); });
}

grpc::Status TuneServiceImpl::CancelTune(grpc::ServerContext* context,
                                         const v1::CancelTuneRequest* request,
                                         v1::Tune* response) {
  return door_.Serve(
      *context, "optfarm.v1.TuneService.CancelTune",
      [&](Call& call) -> absl::Status {
        call.subject = request->tune_id();
        if (request->reason().size() > kMaxReasonBytes) {
          return absl::InvalidArgumentError(
              absl::StrCat("reason has ", request->reason().size(),
                           " bytes; give at most ", kMaxReasonBytes));
        }
        OPTFARM_RETURN_IF_ERROR(Find(call.caller, request->tune_id()).status());
        OPTFARM_RETURN_IF_ERROR(
            runner_.Cancel(request->tune_id(), request->reason()));
        OPTFARM_ASSIGN_OR_RETURN(*response,
                                 Find(call.caller, request->tune_id()));
        return absl::OkStatus();
      });
}

absl::StatusOr<v1::Tune> TuneServiceImpl::Find(const Caller& caller,
                                               const std::string& tune_id) {
  OPTFARM_ASSIGN_OR_RETURN(storage::TuneRecord record, tunes_.Get(tune_id));
  if (!caller.Sees(record.tune.project())) return storage::NoSuchTune(tune_id);
  return std::move(record.tune);
}

absl::Status TuneServiceImpl::List(const Caller& caller,
                                   const v1::ListTunesRequest& request,
                                   v1::ListTunesResponse& response) {
  OPTFARM_ASSIGN_OR_RETURN(
      const storage::PageRequest page,
      ParsePage(request.page_size(), kTunesAPage, request.page_token()));
  OPTFARM_ASSIGN_OR_RETURN(std::vector<storage::TuneRecord> records,
                           tunes_.List(caller.OnlyProject(), page));
  for (storage::TuneRecord& record : records) {
    v1::Tune& tune = *response.add_tunes();
    tune = std::move(record.tune);
    KeepRecommended(tune.mutable_report());
  }
  if (static_cast<int>(records.size()) == page.limit) {
    response.set_next_page_token(PageToken(records.back().number));
  }
  return absl::OkStatus();
}

}  // namespace optfarm::server
