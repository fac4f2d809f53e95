// What a plan is made for.

#ifndef OPTFARM_ENGINE_RUNTIME_PLAN_PLAN_REQUEST_H_
#define OPTFARM_ENGINE_RUNTIME_PLAN_PLAN_REQUEST_H_

#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "engine/graph/tensor_name.h"
#include "engine/runtime/core/loaded_model.h"
#include "engine/runtime/plan/session_options.h"

namespace optfarm::runtime {

// What a session is asked for. OWNERSHIP: borrowed.
struct PlanRequest {
  absl::Span<const graph::TensorName> feeds;
  absl::Span<const graph::TensorName> fetches;
  const SessionOptions& options;
  // Has the values of constants; nullptr when they are in the graph.
  const LoadedModel* model = nullptr;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_PLAN_PLAN_REQUEST_H_
