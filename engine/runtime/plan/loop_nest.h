// Which loop each node runs in, and an order to run everything in: the shape
// that the executor gives to TensorFlow's frames.
//
// A frame is entered through Enter nodes and left through Exit nodes; its Merge
// nodes take an Enter's value in the first iteration and a NextIteration's
// later. Iterations of one loop follow each other here, so that a loop is a
// stretch of steps that is walked again and again. Loops that share a frame
// name without sharing a value (a graph imported twice) are loops of their own.

#ifndef OPTFARM_ENGINE_RUNTIME_PLAN_LOOP_NEST_H_
#define OPTFARM_ENGINE_RUNTIME_PLAN_LOOP_NEST_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/graph/graph.h"

namespace optfarm::runtime {

inline constexpr int kNoLoop = -1;
// Loops within loops; real models have two or three.
inline constexpr int kMaxLoopDepth = 64;

// A node or a whole loop, at its place in the order.
struct OrderedItem {
  graph::NodeId node = graph::kNoNode;
  int loop = kNoLoop;
};

struct Loop {
  int parent = kNoLoop;
  int depth = 0;
  std::string frame;
  // What one iteration runs, in order.
  std::vector<OrderedItem> body;
};

struct LoopNest {
  // Each stands after the one around it.
  std::vector<Loop> loops;
  // What runs outside of loops, in order.
  std::vector<OrderedItem> top;
  // By NodeId: the loop that a node runs in. Enter and Exit run in the loop
  // that they lead into and out of.
  std::vector<int> loop_of;
};

// The part of a graph that a session runs.
struct GraphPart {
  const graph::Graph& graph;
  // By NodeId.
  const std::vector<bool>& needed;
  // Tensors that the caller gives: no edge begins there.
  std::function<bool(graph::Endpoint)> is_fed;
};

bool IsEnter(absl::string_view op);
bool IsExit(absl::string_view op);
bool IsNextIteration(absl::string_view op);
bool IsMerge(absl::string_view op);
bool IsSwitch(absl::string_view op);

// ERRORS: InvalidArgument naming nodes for a cycle that is not a loop, a node
// that reads from two unrelated loops, an Exit outside of loops, loops nested
// deeper than kMaxLoopDepth, or a loop that waits for its own result.
absl::StatusOr<LoopNest> FindLoops(const GraphPart& part);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_PLAN_LOOP_NEST_H_
