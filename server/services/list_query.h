// What clients write to find things, as the store's filters: filter strings,
// page sizes and page tokens.

#ifndef OPTFARM_SERVER_SERVICES_LIST_QUERY_H_
#define OPTFARM_SERVER_SERVICES_LIST_QUERY_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "optfarm/v1/results.pb.h"
#include "storage/metadata_store.h"

namespace optfarm::server {

// Reads ListJobsRequest.filter. ERRORS: InvalidArgument that quotes the term
// and says which are known.
absl::StatusOr<storage::JobFilter> ParseJobFilter(absl::string_view filter);

// ERRORS: InvalidArgument.
absl::StatusOr<storage::MeasurementFilter> ParseMeasurementFilter(
    const v1::ResultFilter& filter);
absl::StatusOr<storage::MeasurementFilter> ParseMeasurementFilter(
    const v1::QueryResultsRequest& request);

// `fallback` for a size of 0. ERRORS: InvalidArgument outside 0..1000, and for
// a token that PageToken did not make.
absl::StatusOr<storage::PageRequest> ParsePage(int size, int fallback,
                                               absl::string_view token);

// The token of the page after the row with this number.
std::string PageToken(int64_t last_number);

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SERVICES_LIST_QUERY_H_
