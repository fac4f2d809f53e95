// Recurrent layers as the steps that they take, for formats that have no such
// layer or none with these settings.

#ifndef OPTFARM_ENGINE_EXPORT_UNROLL_RECURRENT_H_
#define OPTFARM_ENGINE_EXPORT_UNROLL_RECURRENT_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/export/flatten_branches.h"
#include "engine/graph/graph.h"
#include "engine/graph/shape_inference.h"

namespace optfarm::exporting {

// Says which recurrent layers the format holds as they are.
using HoldsLayer = bool (*)(const graph::Node& node,
                            const graph::ShapeMap& shapes);
// ONNX: all but TensorFlow Lite's LSTM with roundings, projections, layer
// norms, coupled gates or clipped cells. TensorFlow Lite, whose operators for
// sequences keep state between runs: none.
bool OnnxHoldsLayer(const graph::Node& node, const graph::ShapeMap& shapes);
bool TfliteHoldsLayer(const graph::Node& node, const graph::ShapeMap& shapes);

// Replaces each LstmSequence, GruSequence, RnnSequence and LiteLstmSequence
// that the format does not hold by products, gates and functions for each step.
// Names and outputs stay. A layer stays as it is where the number of its steps
// is not known from the shapes of `inputs`, or is above 512.
// ERRORS: InvalidArgument for layers that are not well formed, or that would
// make more than some 200,000 nodes; the graph is then of no use.
absl::Status UnrollRecurrent(absl::Span<const FedShape> inputs,
                             HoldsLayer holds_layer, graph::Graph* graph);

}  // namespace optfarm::exporting

#endif  // OPTFARM_ENGINE_EXPORT_UNROLL_RECURRENT_H_
