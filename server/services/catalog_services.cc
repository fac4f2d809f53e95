#include "server/services/catalog_services.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/conventions/names.h"
#include "server/delivery/job_view.h"
#include "server/services/list_query.h"

namespace optfarm::server {
namespace {

constexpr int kDevicesAPage = 200;

}  // namespace

DeviceServiceImpl::DeviceServiceImpl(const CallDoor& door, Scheduler& scheduler,
                                     Clock& clock)
    : door_(door), scheduler_(scheduler), clock_(clock) {
  AdmitUnary(door, "optfarm.v1.DeviceService.ListDevices",
             &Service::ListDevices);
  AdmitUnary(door, "optfarm.v1.DeviceService.GetDevice", &Service::GetDevice);
  AdmitUnary(door, "optfarm.v1.DeviceService.ChangeDevice",
             &Service::ChangeDevice);
  AdmitUnary(door, "optfarm.v1.DeviceService.DeleteDevice",
             &Service::DeleteDevice);
}

grpc::Status DeviceServiceImpl::ListDevices(
    grpc::ServerContext* context, const v1::ListDevicesRequest* request,
    v1::ListDevicesResponse* response) {
  return door_.Serve(
      *context, "optfarm.v1.DeviceService.ListDevices",
      [&](Call& call) -> absl::Status {
        OPTFARM_ASSIGN_OR_RETURN(const storage::PageRequest page,
                                 ParsePage(request->page_size(), kDevicesAPage,
                                           request->page_token()));
        // The page token counts the devices that were sent already.
        std::vector<v1::Device> devices =
            scheduler_.Devices(clock_.Now(), call.caller.OnlyProject());
        const int64_t total = static_cast<int64_t>(devices.size());
        const int64_t end = std::min<int64_t>(total, page.before + page.limit);
        for (int64_t i = page.before; i < end; ++i) {
          *response->add_devices() = std::move(devices[static_cast<size_t>(i)]);
        }
        if (end < total) response->set_next_page_token(PageToken(end));
        return absl::OkStatus();
      });
}

grpc::Status DeviceServiceImpl::GetDevice(grpc::ServerContext* context,
                                          const v1::GetDeviceRequest* request,
                                          v1::Device* response) {
  return door_.Serve(*context, "optfarm.v1.DeviceService.GetDevice",
                     [&](Call& call) -> absl::Status {
                       OPTFARM_ASSIGN_OR_RETURN(
                           *response,
                           scheduler_.FindDevice(request->name(), clock_.Now(),
                                                 call.caller.OnlyProject()));
                       return absl::OkStatus();
                     });
}

grpc::Status DeviceServiceImpl::ChangeDevice(
    grpc::ServerContext* context, const v1::ChangeDeviceRequest* request,
    v1::Device* response) {
  return door_.Serve(*context, "optfarm.v1.DeviceService.ChangeDevice",
                     [&](Call& call) -> absl::Status {
                       call.subject = request->name();
                       OPTFARM_ASSIGN_OR_RETURN(
                           *response,
                           scheduler_.ChangeDevice(*request, clock_.Now()));
                       return absl::OkStatus();
                     });
}

grpc::Status DeviceServiceImpl::DeleteDevice(
    grpc::ServerContext* context, const v1::DeleteDeviceRequest* request,
    v1::Device* response) {
  return door_.Serve(
      *context, "optfarm.v1.DeviceService.DeleteDevice",
      [&](Call& call) -> absl::Status {
        call.subject = request->name();
        OPTFARM_ASSIGN_OR_RETURN(
            *response, scheduler_.DeleteDevice(request->name(), clock_.Now()));
        return absl::OkStatus();
      });
}

ResultServiceImpl::ResultServiceImpl(const CallDoor& door,
                                     storage::MetadataStore& store)
    : door_(door), questions_(store) {
  AdmitUnary(door, kQueryResults, &Service::QueryResults);
  AdmitUnary(door, kCompareResults, &Service::CompareResults);
  AdmitUnary(door, kListHistory, &Service::ListHistory);
  AdmitUnary(door, kFindRegressions, &Service::FindRegressions);
}

grpc::Status ResultServiceImpl::QueryResults(
    grpc::ServerContext* context, const v1::QueryResultsRequest* request,
    v1::QueryResultsResponse* response) {
  return door_.Serve(*context, kQueryResults, [&](Call& call) {
    return questions_.Query(call.caller, *request, *response);
  });
}

grpc::Status ResultServiceImpl::CompareResults(
    grpc::ServerContext* context, const v1::CompareResultsRequest* request,
    v1::CompareResultsResponse* response) {
  return door_.Serve(*context, kCompareResults, [&](Call& call) {
    return questions_.Compare(call.caller, *request, *response);
  });
}

grpc::Status ResultServiceImpl::ListHistory(
    grpc::ServerContext* context, const v1::ListHistoryRequest* request,
    v1::ListHistoryResponse* response) {
  return door_.Serve(*context, kListHistory, [&](Call& call) {
    return questions_.History(call.caller, *request, *response);
  });
}

grpc::Status ResultServiceImpl::FindRegressions(
    grpc::ServerContext* context, const v1::FindRegressionsRequest* request,
    v1::FindRegressionsResponse* response) {
  return door_.Serve(*context, kFindRegressions, [&](Call& call) {
    return questions_.Regressions(call.caller, *request, *response);
  });
}

}  // namespace optfarm::server
