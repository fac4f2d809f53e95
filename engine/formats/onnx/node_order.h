// The order in which the nodes of an ONNX graph are read. The format asks for
// producers before consumers, but runtimes sort, and tools that insert casts
// (conversion to float16) put them at the end of the file.

#ifndef OPTFARM_ENGINE_FORMATS_ONNX_NODE_ORDER_H_
#define OPTFARM_ENGINE_FORMATS_ONNX_NODE_ORDER_H_

#include <vector>

#include "onnx/onnx.pb.h"

namespace optfarm::formats {

// Each node after those that make what it or its subgraphs read; otherwise in
// the file's order. Nodes on or behind a cycle come last.
// OWNERSHIP: the pointers are into `nodes`.
std::vector<const onnx::NodeProto*> NodesInOrder(
    const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes);

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_ONNX_NODE_ORDER_H_
