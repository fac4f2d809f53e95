// ResultService.QueryResults, wherever results are read.

#ifndef OPTFARM_SERVER_SERVICES_RESULT_QUERY_H_
#define OPTFARM_SERVER_SERVICES_RESULT_QUERY_H_

#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "optfarm/v1/results.pb.h"
#include "server/access/access_control.h"
#include "storage/metadata_store.h"

namespace optfarm::server {

inline constexpr char kQueryResults[] = "optfarm.v1.ResultService.QueryResults";

// As MetadataStore::QueryMeasurements.
using ReadMeasurements =
    absl::FunctionRef<absl::StatusOr<std::vector<storage::MeasurementRecord>>(
        const storage::MeasurementFilter&, const storage::PageRequest&)>;

// ERRORS: those of ResultService.QueryResults.
absl::Status QueryResults(const Caller& caller,
                          const v1::QueryResultsRequest& request,
                          ReadMeasurements read,
                          v1::QueryResultsResponse& response);

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SERVICES_RESULT_QUERY_H_
