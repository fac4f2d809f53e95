// Which kernels a set of graphs needs, for builds of a runtime that has no
// others.

#ifndef OPTFARM_ENGINE_INSPECT_REQUIRED_KERNELS_H_
#define OPTFARM_ENGINE_INSPECT_REQUIRED_KERNELS_H_

#include <set>
#include <string>
#include <utility>

namespace tensorflow {
class GraphDef;
}  // namespace tensorflow

namespace optfarm::inspect {

struct RequiredKernels {
  // Op and TensorFlow's class for it; "" for ops without kernels.
  std::set<std::pair<std::string, std::string>> classes;
  // Ops whose class we do not know, or that TensorFlow has no CPU kernel for.
  std::set<std::string> without_class;
  // Every op with the dtypes that go in and out of its nodes: "Conv2D",
  // "float". An op without tensors has one entry with "".
  std::set<std::pair<std::string, std::string>> dtypes;
  // Ops that our runtime has no kernel for.
  std::set<std::string> not_in_runtime;
};

// Adds what the nodes of a graph and of its functions need.
void AddRequiredKernels(const tensorflow::GraphDef& graph,
                        RequiredKernels* kernels);

}  // namespace optfarm::inspect

#endif  // OPTFARM_ENGINE_INSPECT_REQUIRED_KERNELS_H_
