#include "server/catalog_services.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/status_macros.h"
#include "server/job_view.h"
#include "server/list_query.h"
#include "server/names.h"
#include "server/result_comparison.h"

namespace optfarm::server {
namespace {

constexpr int kDevicesAPage = 200;
constexpr int kResultsAPage = 100;
// Samples and profiles of more would not fit a message.
constexpr int kFullResultsAPage = 400;
// Newest measurements of a model that a comparison looks at.
constexpr int kMaxCompared = 10000;

}  // namespace

grpc::Status DeviceServiceImpl::ListDevices(
    grpc::ServerContext* context, const v1::ListDevicesRequest* request,
    v1::ListDevicesResponse* response) {
  return door_.Serve(
      *context, "optfarm.v1.DeviceService.ListDevices", [&]() -> absl::Status {
        OPTFARM_ASSIGN_OR_RETURN(const storage::PageRequest page,
                                 ParsePage(request->page_size(), kDevicesAPage,
                                           request->page_token()));
        // The page token counts the devices that were sent already.
        std::vector<v1::Device> devices = scheduler_.Devices(clock_.Now());
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
  return door_.Serve(
      *context, "optfarm.v1.DeviceService.GetDevice", [&]() -> absl::Status {
        OPTFARM_ASSIGN_OR_RETURN(
            *response, scheduler_.FindDevice(request->name(), clock_.Now()));
        return absl::OkStatus();
      });
}

grpc::Status ResultServiceImpl::QueryResults(
    grpc::ServerContext* context, const v1::QueryResultsRequest* request,
    v1::QueryResultsResponse* response) {
  return door_.Serve(*context, "optfarm.v1.ResultService.QueryResults",
                     [&] { return Query(*request, *response); });
}

absl::Status ResultServiceImpl::Query(const v1::QueryResultsRequest& request,
                                      v1::QueryResultsResponse& response) {
  OPTFARM_ASSIGN_OR_RETURN(const storage::MeasurementFilter filter,
                           ParseMeasurementFilter(request));
  OPTFARM_ASSIGN_OR_RETURN(
      storage::PageRequest page,
      ParsePage(request.page_size(), kResultsAPage, request.page_token()));
  if (request.full()) page.limit = std::min(page.limit, kFullResultsAPage);
  OPTFARM_ASSIGN_OR_RETURN(
      const std::vector<storage::MeasurementRecord> records,
      store_.QueryMeasurements(filter, page));
  for (const storage::MeasurementRecord& record : records) {
    *response.add_results() = ToProto(record);
  }
  if (static_cast<int>(records.size()) == page.limit) {
    response.set_next_page_token(PageToken(records.back().result_id));
  }
  return absl::OkStatus();
}

grpc::Status ResultServiceImpl::CompareResults(
    grpc::ServerContext* context, const v1::CompareResultsRequest* request,
    v1::CompareResultsResponse* response) {
  return door_.Serve(
      *context, "optfarm.v1.ResultService.CompareResults",
      [&]() -> absl::Status {
        OPTFARM_ASSIGN_OR_RETURN(const auto a, ReadSide(request->a()));
        OPTFARM_ASSIGN_OR_RETURN(const auto b, ReadSide(request->b()));
        *response = Compare(a, b);
        return absl::OkStatus();
      });
}

absl::StatusOr<std::vector<storage::MeasurementRecord>>
ResultServiceImpl::ReadSide(const v1::CompareResultsRequest::Side& side) {
  storage::MeasurementFilter filter;
  switch (side.what_case()) {
    case v1::CompareResultsRequest::Side::kJobId:
      OPTFARM_RETURN_IF_ERROR(store_.GetJob(side.job_id()).status());
      filter.job_id = side.job_id();
      break;
    case v1::CompareResultsRequest::Side::kModelSha256:
      if (!IsSha256Hex(side.model_sha256())) {
        return absl::InvalidArgumentError(absl::StrCat(
            "comparing: ", Quoted(side.model_sha256()),
            " is not a SHA-256: give 64 lower-case hexadecimal digits"));
      }
      filter.model = storage::ModelFilter{side.model_sha256(), ""};
      break;
    case v1::CompareResultsRequest::Side::WHAT_NOT_SET:
      return absl::InvalidArgumentError(
          "comparing: a side is empty; give a job or a model on both");
  }
  return store_.QueryMeasurements(filter, {0, kMaxCompared});
}

}  // namespace optfarm::server
