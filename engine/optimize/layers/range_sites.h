// Where a quantized graph finds ranges of tensors in every run, and which float
// tensors those are in the graph that it was made of.

#ifndef OPTFARM_ENGINE_OPTIMIZE_LAYERS_RANGE_SITES_H_
#define OPTFARM_ENGINE_OPTIMIZE_LAYERS_RANGE_SITES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "engine/graph/tensor_name.h"

namespace optfarm::optimize {

// A node that takes or finds the range of a tensor in every run.
struct RangeSite {
  std::string node;
  // A QuantizeV2; else a RequantizationRange or RequantizationRangePerChannel.
  bool is_quantize = false;
  // The tensor is float; else 32-bit values.
  bool is_float = false;
  // The tensor and its range (QuantizeV2), or the one its quantized values
  // stand for; that may be one for each element of the last axis.
  graph::TensorName value, min, max;
  // Values above it are cut off (a Relu6 behind the quantized values); 0: none
  // are.
  float clip = 0;
};

// The float tensor that a node of a quantized graph has quantized values of, by
// the names that the quantizing steps give; its node is empty when there is
// none.
graph::TensorName FloatTensorOf(const graph::Graph& quantized,
                                graph::NodeId id);

// Whether nodes of this op find the range of 32-bit values in every run.
bool IsRangeOp(absl::string_view op);

// In the order of the graph's nodes. `with_quantizes`: QuantizeV2 nodes too.
std::vector<RangeSite> FindRangeSites(const graph::Graph& graph,
                                      bool with_quantizes);

// The sites of a quantized graph that can be observed in `floats`, the graph
// that its quantizing steps were given: their tensor is then the float tensor
// there that the quantized values stand for. What is cut off in some runs is
// not among them. ERRORS: those of ordering `floats`.
absl::StatusOr<std::vector<RangeSite>> FloatSites(
    const graph::Graph& quantized, const graph::Graph& floats,
    absl::Span<const RangeSite> sites);

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_LAYERS_RANGE_SITES_H_
