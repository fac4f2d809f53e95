// The one gate of a recipe that needs measurements. On a farm the server
// checks it; `optctl run` has no server.

#ifndef OPTFARM_CLIENT_CLI_JOBS_SPEED_GATES_H_
#define OPTFARM_CLIENT_CLI_JOBS_SPEED_GATES_H_

#include <vector>

#include "optfarm/v1/measurement.pb.h"
#include "optfarm/v1/recipes.pb.h"
#include "optfarm/v1/report.pb.h"

namespace optfarm::client_cli {

// One "min_speedup[device,threads]" for each thread count that both the
// original and the result were measured with; one failed "min_speedup" when
// nothing was measured. None when the recipe does not set the bound.
std::vector<v1::GateResult> CheckSpeedGates(
    const v1::Bounds& bounds, const std::vector<v1::Measurement>& measurements);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_JOBS_SPEED_GATES_H_
