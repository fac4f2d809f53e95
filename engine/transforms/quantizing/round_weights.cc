// round_weights: lets large float constants take few different values, so that
// the file compresses better. The number of bytes stays.

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/graph.h"
#include "engine/transforms/machinery/builtin_transforms.h"
#include "engine/transforms/nodes/constant_nodes.h"
#include "engine/transforms/nodes/weight_ranges.h"

namespace optfarm::transforms {
namespace {

using runtime::Tensor;

constexpr int64_t kMinimumElements = 16;

WeightRange RoundedRange(WeightRange range) {
  if (range.min == range.max) {
    if (std::abs(range.min) < 1e-6f) {
      range.max = range.min + 1.0f;
    } else if (range.min > 0) {
      range.max = 2.0f * range.min;
    } else {
      range.min = 2.0f * range.max;
    }
  }
  return range;
}

// Each value becomes the middle of its bucket. As in TensorFlow, the largest
// value has a bucket of its own above the last, so that there are up to
// num_steps + 1 different values; with `clamp` it is in the last one.
absl::StatusOr<Tensor> Rounded(const Tensor& values, const WeightRange& range,
                               int64_t num_steps, bool clamp) {
  OPTFARM_ASSIGN_OR_RETURN(Tensor rounded,
                           Tensor::Allocate(values.dtype(), values.shape()));
  const float width = (range.max - range.min) / static_cast<float>(num_steps);
  const float last = clamp ? static_cast<float>(num_steps - 1)
                           : std::numeric_limits<float>::infinity();
  const absl::Span<const float> from = values.flat<float>();
  const absl::Span<float> to = rounded.flat<float>();
  for (size_t i = 0; i < to.size(); ++i) {
    const float bucket =
        std::min(std::floor((from[i] - range.min) / width), last);
    to[i] = range.min + width * (bucket + 0.5f);
  }
  return rounded;
}

absl::Status RoundWeights(graph::Graph* graph, TransformContext* context) {
  const int64_t num_steps = context->arguments().Int("num_steps");
  if (num_steps < 1 || num_steps > (int64_t{1} << 24)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "parameter 'num_steps' is ", num_steps, ", not within 1 to 16777216"));
  }
  const bool clamp = context->arguments().Bool("clamp");
  for (graph::NodeId id : graph->Ids()) {
    graph::Node* node = graph->mutable_node(id);
    if (!IsConst(*node)) continue;
    OPTFARM_ASSIGN_OR_RETURN(const Tensor values, ConstValue(*node));
    if (values.dtype() != tensorflow::DT_FLOAT ||
        values.num_elements() < kMinimumElements) {
      continue;
    }
    const WeightRange found = FindWeightRange(values.flat<float>());
    const WeightRange range = RoundedRange(found);
    // A range whose width overflows or vanishes has no buckets.
    const float width = (range.max - range.min) / static_cast<float>(num_steps);
    if (found.has_bad_value || !std::isfinite(width) || width <= 0) {
      context->Skip(node->name(), "its values are not finite or too large");
      context->Warn(absl::StrCat("the constant '", node->name(),
                                 "' holds NaN, infinite or extreme values"));
      continue;
    }
    OPTFARM_ASSIGN_OR_RETURN(const Tensor rounded,
                             Rounded(values, range, num_steps, clamp));
    SetConstValue(node, rounded);
    context->CountChange();
  }
  return absl::OkStatus();
}

}  // namespace

TransformDef RoundWeightsTransform() {
  return {.name = "round_weights",
          .summary =
              "Rounds float constants of at least 16 elements to few distinct "
              "values, so the file compresses better.",
          .parameters = {{.name = "num_steps",
                          .type = ParameterType::kInt,
                          .help = "Number of distinct values per constant.",
                          .default_value = "256"},
                         {.name = "clamp",
                          .type = ParameterType::kBool,
                          .help = "Limits constants to num_steps values; "
                                  "otherwise, as in TensorFlow, the largest "
                                  "element adds one more value.",
                          .default_value = "false"}},
          .run = RoundWeights};
}

}  // namespace optfarm::transforms
