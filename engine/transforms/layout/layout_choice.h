// Chooses states for the nodes of a graph so that what its Transposes move is
// least: each node keeps its state or takes one that spares a Transpose
// somewhere, and a minimum cut finds the best of all combinations.

#ifndef OPTFARM_ENGINE_TRANSFORMS_LAYOUT_LAYOUT_CHOICE_H_
#define OPTFARM_ENGINE_TRANSFORMS_LAYOUT_LAYOUT_CHOICE_H_

#include <cstdint>
#include <vector>

#include "engine/transforms/layout/turned_graph.h"

namespace optfarm::transforms {

// UNITS: bytes that are moved, and some for the step itself. Nothing for an
// order that changes nothing.
int64_t TurnCost(const graph::PartialShape& shape, int64_t element_bytes,
                 const Permutation& order);

// The orders of which some edge would be spared, those of most bytes first.
// One stands for its inverse too.
std::vector<Permutation> FindSparableTurns(const TurnedGraph& graph);

// The best states for sparing edges with this order. Empty where nothing is
// gained.
LayoutStates ChooseStates(const TurnedGraph& graph, const Permutation& turn);

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_LAYOUT_LAYOUT_CHOICE_H_
