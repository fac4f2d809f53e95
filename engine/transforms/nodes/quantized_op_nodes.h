// Definitions of the nodes that carry values between floats and quantized
// values.

#ifndef OPTFARM_ENGINE_TRANSFORMS_NODES_QUANTIZED_OP_NODES_H_
#define OPTFARM_ENGINE_TRANSFORMS_NODES_QUANTIZED_OP_NODES_H_

#include <initializer_list>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/types.pb.h"

namespace optfarm::transforms {

// A node with name, op and the device of `like`.
tensorflow::NodeDef MakeNode(absl::string_view name, absl::string_view op,
                             const graph::Node& like);

// Copies those of the attributes that the node has.
void CopyAttributes(const graph::Node& from,
                    std::initializer_list<const char*> names,
                    tensorflow::NodeDef* to);

// QuantizeV2 in mode MIN_FIRST to quantized values of `type`.
tensorflow::NodeDef MakeQuantize(absl::string_view name,
                                 tensorflow::DataType type,
                                 const graph::Node& like);

// Requantize from qint32 to quint8.
tensorflow::NodeDef MakeRequantize(absl::string_view name,
                                   const graph::Node& like);

// Turns `id` into a Dequantize of `quantized`, their minimum and their
// maximum, under its own name. Its control inputs move to the new node
// `replacement`.
void BecomeDequantize(graph::NodeId id,
                      absl::Span<const graph::Endpoint> quantized,
                      graph::NodeId replacement, graph::Graph* graph);

// Whether the node is a Dequantize of quint8 in mode MIN_FIRST.
bool IsDequantize(const graph::Node& node);

// Whether the node is a QuantizeV2 to `type` in mode MIN_FIRST.
bool IsQuantize(const graph::Node& node, tensorflow::DataType type);

// Outputs 0, 1 and 2 of a node: quantized values, minimum and maximum.
std::vector<graph::Endpoint> ValuesAndRange(graph::NodeId id);

// Whether the inputs of `consumer` from `first` on are these three.
bool ReadsValuesAndRange(const graph::Node& consumer, int first,
                         graph::NodeId source);

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_NODES_QUANTIZED_OP_NODES_H_
