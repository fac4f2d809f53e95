// 8-bit nets with frozen ranges, as a recipe makes them: ranges are what a few
// runs on made-up inputs found.

#ifndef OPTFARM_TESTS_BENCH_FROZEN_NET_H_
#define OPTFARM_TESTS_BENCH_FROZEN_NET_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "engine/graph/tensor_name.h"
#include "engine/runtime/core/tensor.h"

namespace optfarm::bench {

// Replaces all RequantizationRange and RequantizationRangePerChannel nodes by
// what they find on `samples`, one element of which is a run's feeds.
// ERRORS: those of running the graph and of freezing.
absl::Status FreezeOn(absl::Span<const std::vector<runtime::Tensor>> samples,
                      absl::Span<const graph::TensorName> inputs,
                      graph::Graph* graph);

// Gives whole layers (QuantizedConv2DWithBias..., QuantizedDepthwise...,
// QuantizedMatMul...) TensorFlow's first weights: unsigned codes with one range
// for all channels, which is not symmetric.
// ERRORS: those of reading constants.
absl::Status UseUnsignedWeights(graph::Graph* graph);

}  // namespace optfarm::bench

#endif  // OPTFARM_TESTS_BENCH_FROZEN_NET_H_
