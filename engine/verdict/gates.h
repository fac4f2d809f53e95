// Gates that need measurements, and what failed gates make of a job. The gates
// of accuracy and size are the optimizing program's.

#ifndef OPTFARM_ENGINE_VERDICT_GATES_H_
#define OPTFARM_ENGINE_VERDICT_GATES_H_

#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "optfarm/v1/jobs.pb.h"

namespace optfarm::verdict {

// One "min_speedup[device,threads]" for each thread count measured on the
// device: how much faster the recipe's result is than "float". Where only one
// of the two was measured it fails; where nothing was, one "min_speedup" does.
// The message tells a noisy measurement. None when the recipe does not set the
// bound.
std::vector<v1::GateResult> SpeedGates(
    const v1::Recipe& recipe, absl::string_view device,
    absl::Span<const v1::Measurement> measurements);

// The failure of a job whose gates are `gates`; none when all passed.
std::optional<v1::Failure> GateFailure(absl::Span<const v1::GateResult> gates);

}  // namespace optfarm::verdict

#endif  // OPTFARM_ENGINE_VERDICT_GATES_H_
