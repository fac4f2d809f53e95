// What TensorFlow calls the C++ classes of its own CPU kernels: what selective
// registration, TensorFlow's way to a small binary, names them by.

#ifndef OPTFARM_ENGINE_GRAPH_OPS_TENSORFLOW_KERNELS_H_
#define OPTFARM_ENGINE_GRAPH_OPS_TENSORFLOW_KERNELS_H_

#include <string>
#include <vector>

#include "tensorflow/core/framework/node_def.pb.h"

namespace optfarm::graph {

// The classes, with their template arguments, that TensorFlow 1.x registers for
// the node's op and types: one, or several where the spelling changed between
// versions. Empty when we do not know the op's class, or when TensorFlow has no
// CPU kernel of its types. THREADS: any.
std::vector<std::string> TensorFlowKernelClasses(
    const tensorflow::NodeDef& node);

}  // namespace optfarm::graph

#endif  // OPTFARM_ENGINE_GRAPH_OPS_TENSORFLOW_KERNELS_H_
