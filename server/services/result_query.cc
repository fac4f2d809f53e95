#include "server/services/result_query.h"

#include <algorithm>

#include "base/status_macros.h"
#include "server/delivery/job_view.h"
#include "server/services/list_query.h"

namespace optfarm::server {
namespace {

constexpr int kResultsAPage = 100;
// Samples and profiles of more would not fit a message.
constexpr int kFullResultsAPage = 400;

}  // namespace

absl::Status QueryResults(const Caller& caller,
                          const v1::QueryResultsRequest& request,
                          ReadMeasurements read,
                          v1::QueryResultsResponse& response) {
  OPTFARM_ASSIGN_OR_RETURN(storage::MeasurementFilter filter,
                           ParseMeasurementFilter(request));
  filter.project = caller.OnlyProject();
  OPTFARM_ASSIGN_OR_RETURN(
      storage::PageRequest page,
      ParsePage(request.page_size(), kResultsAPage, request.page_token()));
  if (request.full()) page.limit = std::min(page.limit, kFullResultsAPage);
  OPTFARM_ASSIGN_OR_RETURN(
      const std::vector<storage::MeasurementRecord> records,
      read(filter, page));
  for (const storage::MeasurementRecord& record : records) {
    *response.add_results() = ToProto(record);
  }
  if (static_cast<int>(records.size()) == page.limit) {
    response.set_next_page_token(PageToken(records.back().result_id));
  }
  return absl::OkStatus();
}

}  // namespace optfarm::server
