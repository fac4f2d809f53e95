// The passes of quantize_nodes, in the order in which they run. Each leaves a
// valid graph that computes (nearly) what it computed before.

#ifndef OPTFARM_ENGINE_TRANSFORMS_QUANTIZING_QUANTIZE_PASSES_H_
#define OPTFARM_ENGINE_TRANSFORMS_QUANTIZING_QUANTIZE_PASSES_H_

#include <optional>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "engine/graph/graph.h"
#include "engine/transforms/machinery/transform.h"

namespace optfarm::transforms {

struct FloatRange {
  float min = 0;
  float max = 0;
};

struct QuantizeOptions {
  // Range of all fed tensors, which are then fed as quantized values.
  std::optional<FloatRange> input_range;
  // Range of every 32-bit result, instead of the one found at each run.
  std::optional<FloatRange> fallback_range;
  absl::flat_hash_set<std::string> ignored_ops;
  absl::flat_hash_set<std::string> excluded_nodes;
  // Convolutions and matrix products with a constant factor stay in float
  // unless that factor is stored as quantized values.
  bool only_coded_weights = false;
};

// Lets float Placeholders be fed as 8-bit values of `range`.
void QuantizePlaceholders(const FloatRange& range, TransformContext* context,
                          graph::Graph* graph);

// Moves FakeQuantWithMinMaxVars up through activations and pools that keep a
// range, next to the op whose result can be requantized to it.
void HoistFakeQuants(TransformContext* context, graph::Graph* graph);

// Turns 8-bit FakeQuantWithMinMaxVars with constant ranges into a quantization
// and its inverse.
void ReplaceFakeQuants(TransformContext* context, graph::Graph* graph);

// Replaces float ops by 8-bit ones between a quantization of each input and a
// Dequantize of the result.
absl::Status QuantizeOps(const QuantizeOptions& options,
                         TransformContext* context, graph::Graph* graph);

// Where a result is requantized to the range found at this run and then, by
// what was a fake quantization, to a trained range, goes to the latter at once.
void MergeAdjacentRequantizes(graph::Graph* graph);

// Where quantized values become floats and at once quantized values again, uses
// the first quantized values.
void DropRedundantQuantizations(graph::Graph* graph);

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_QUANTIZING_QUANTIZE_PASSES_H_
