// What a fusion took: the entries of the list that SessionOptions::fused_nodes
// asks for.

#ifndef OPTFARM_ENGINE_RUNTIME_PLAN_FUSED_NODES_H_
#define OPTFARM_ENGINE_RUNTIME_PLAN_FUSED_NODES_H_

#include <string>
#include <vector>

namespace optfarm::runtime {

// Nodes that one fusion made one step. A later fusion may take that step again:
// the list is in the order in which it happened.
struct FusedNodes {
  // The fusion's name and replacement in the catalog.
  std::string fusion;
  std::string replacement;
  // In the order in which they ran.
  std::vector<std::string> nodes;
  // The step that runs them now: the last node's name, all their ops with '+'
  // between.
  std::string step;
  std::string op;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_PLAN_FUSED_NODES_H_
