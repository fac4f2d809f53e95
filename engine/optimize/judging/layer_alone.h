// Layers of a quantized graph among the float ops that it was made of: what a
// layer does to a network that is float but for it.

#ifndef OPTFARM_ENGINE_OPTIMIZE_JUDGING_LAYER_ALONE_H_
#define OPTFARM_ENGINE_OPTIMIZE_JUDGING_LAYER_ALONE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "engine/runtime/core/quantization.h"

namespace optfarm::optimize {

// The float tensor's node that an 8-bit layer computes, by the name that
// quantize_nodes and quantize_layers give it, the scaling of channels or
// weights aside; empty for other names.
std::string LayerOf(absl::string_view name);

// Whether the node computes quantized values and, in outputs 1 and 2, their
// range.
bool GivesQuantized(const graph::Node& node);

// The 8-bit layers of a graph by name, in the order of computation, with those
// that must stand together: a layer whose channels are scaled and those that
// take the factors back.
struct LayerSet {
  std::vector<graph::NodeId> layers;
  // Of each layer, its place in `groups`.
  std::vector<size_t> group_of;
  std::vector<std::vector<graph::NodeId>> groups;
};

// ERRORS: those of ordering the graph.
absl::StatusOr<LayerSet> FindLayerSet(const graph::Graph& result);

// By node that gives 8-bit values: the range they have in every run. Where it
// is not known, a layer alone finds the range of each run.
using FixedRanges = std::map<graph::NodeId, runtime::Range>;

struct AloneGraph {
  graph::Graph graph;
  // Nodes of the float graph whose output 0 the layers compute now.
  std::vector<std::string> computed;
};

// `floats` with the layers of one group in the places of what they stand for:
// their own nodes and constants, reading quantized values of the float tensors
// with the ranges that the result has there. ERRORS: Unimplemented where the
// layers cannot be taken apart from the others.
absl::StatusOr<AloneGraph> PutAlone(const graph::Graph& floats,
                                    const graph::Graph& result,
                                    const FixedRanges& ranges,
                                    absl::Span<const graph::NodeId> group);

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_JUDGING_LAYER_ALONE_H_
