// Two sets of measurements side by side. Numbers of different devices, variants
// or thread counts are never put into one row, and nothing is averaged.

#ifndef OPTFARM_SERVER_SERVICES_RESULT_COMPARISON_H_
#define OPTFARM_SERVER_SERVICES_RESULT_COMPARISON_H_

#include <vector>

#include "absl/types/span.h"
#include "optfarm/v1/results.pb.h"
#include "server/services/run_spread.h"
#include "storage/records.h"

namespace optfarm::server {

// REQUIRES: each side newest first; the newest of each device, variant and
// thread count counts. `spreads` has the histories of their devices.
v1::CompareResultsResponse Compare(
    absl::Span<const storage::MeasurementRecord> a,
    absl::Span<const storage::MeasurementRecord> b, const RunSpreads& spreads);

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SERVICES_RESULT_COMPARISON_H_
