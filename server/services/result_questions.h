// What ResultService answers, wherever the results are read: nothing but what
// the store says.

#ifndef OPTFARM_SERVER_SERVICES_RESULT_QUESTIONS_H_
#define OPTFARM_SERVER_SERVICES_RESULT_QUESTIONS_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "optfarm/v1/results.pb.h"
#include "server/access/access_control.h"
#include "server/services/run_spread.h"
#include "storage/metadata_store.h"

namespace optfarm::server {

inline constexpr char kQueryResults[] = "optfarm.v1.ResultService.QueryResults";
inline constexpr char kCompareResults[] =
    "optfarm.v1.ResultService.CompareResults";
inline constexpr char kListHistory[] = "optfarm.v1.ResultService.ListHistory";
inline constexpr char kFindRegressions[] =
    "optfarm.v1.ResultService.FindRegressions";

// THREADS: safe. ERRORS: those of the method of the same name.
class ResultQuestions {
 public:
  // OWNERSHIP: the store outlives it.
  explicit ResultQuestions(storage::MetadataStore& store) : store_(store) {}

  absl::Status Query(const Caller& caller,
                     const v1::QueryResultsRequest& request,
                     v1::QueryResultsResponse& response);
  absl::Status Compare(const Caller& caller,
                       const v1::CompareResultsRequest& request,
                       v1::CompareResultsResponse& response);
  absl::Status History(const Caller& caller,
                       const v1::ListHistoryRequest& request,
                       v1::ListHistoryResponse& response);
  absl::Status Regressions(const Caller& caller,
                           const v1::FindRegressionsRequest& request,
                           v1::FindRegressionsResponse& response);

 private:
  absl::StatusOr<std::vector<storage::MeasurementRecord>> ReadSide(
      const Caller& caller, const v1::CompareResultsRequest::Side& side);
  // Of the devices that both sides have.
  absl::StatusOr<RunSpreads> ReadSpreads(
      const Caller& caller, absl::Span<const storage::MeasurementRecord> a,
      absl::Span<const storage::MeasurementRecord> b);

  storage::MetadataStore& store_;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SERVICES_RESULT_QUESTIONS_H_
