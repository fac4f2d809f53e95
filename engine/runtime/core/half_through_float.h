// A float kernel that serves a node of half or bfloat16: its inputs are
// widened, its outputs rounded, each once. For one elementwise op that is what
// TensorFlow's half arithmetic gives; sums come out more exact.

#ifndef OPTFARM_ENGINE_RUNTIME_CORE_HALF_THROUGH_FLOAT_H_
#define OPTFARM_ENGINE_RUNTIME_CORE_HALF_THROUGH_FLOAT_H_

#include <memory>
#include <optional>
#include <vector>

#include "engine/runtime/core/kernel.h"
#include "engine/runtime/core/tensor.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace optfarm::runtime {

struct HalfAttributes {
  // The node with float in the place of half and bfloat16.
  tensorflow::NodeDef float_node;
  // The node's own type of each output.
  std::vector<DataType> outputs;
};

// nullopt when no type attribute of the node is half or bfloat16, or when its
// signature is not known.
std::optional<HalfAttributes> FindHalfAttributes(
    const tensorflow::NodeDef& node);

std::unique_ptr<Kernel> MakeHalfThroughFloat(const HalfAttributes& halves,
                                             std::unique_ptr<Kernel> in_float);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_CORE_HALF_THROUGH_FLOAT_H_
