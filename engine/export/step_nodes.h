// Nodes in place of another one: small ops on floats, named after it.

#ifndef OPTFARM_ENGINE_EXPORT_STEP_NODES_H_
#define OPTFARM_ENGINE_EXPORT_STEP_NODES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "engine/runtime/reference/nn/recurrent_activation.h"
#include "tensorflow/core/framework/types.pb.h"

namespace optfarm::exporting {

class StepNodes {
 public:
  // OWNERSHIP: `graph` outlives it. Values are of `type`, a type of floats.
  StepNodes(graph::Graph* graph, std::string prefix, tensorflow::DataType type)
      : graph_(*graph), prefix_(std::move(prefix)), type_(type) {}

  // An op on values of one type, whose result has it too.
  graph::Endpoint Add(absl::string_view op,
                      absl::Span<const graph::Endpoint> inputs);
  graph::Endpoint Number(float value);
  // Between -limit and limit; as it is for limit 0.
  graph::Endpoint Clipped(graph::Endpoint x, float limit);
  graph::Endpoint Bounded(graph::Endpoint x, float least, float most);
  graph::Endpoint Activated(graph::Endpoint x,
                            const runtime::RecurrentActivation& function);

  // x · weights, whose rows are the outputs: [n, in] and [rows, in].
  graph::Endpoint Product(graph::Endpoint x, graph::Endpoint weights);
  graph::Endpoint Reshaped(graph::Endpoint x, const std::vector<int64_t>& dims);
  graph::Endpoint Sliced(graph::Endpoint x, const std::vector<int64_t>& begin,
                         const std::vector<int64_t>& size);
  // Another order of [a, b, c]: [b, a, c].
  graph::Endpoint Swapped(graph::Endpoint x);
  graph::Endpoint WithAxis(graph::Endpoint x, int64_t axis);
  std::vector<graph::Endpoint> Split(graph::Endpoint x, int count, int axis);
  std::vector<graph::Endpoint> Unpacked(graph::Endpoint x, int64_t count,
                                        int64_t axis);
  graph::Endpoint Packed(const std::vector<graph::Endpoint>& parts,
                         int64_t axis);
  graph::Endpoint Joined(const std::vector<graph::Endpoint>& parts,
                         int64_t axis);
  graph::Endpoint Zeros(const std::vector<int64_t>& dims);
  // The mean along the last axis, which stays.
  graph::Endpoint Mean(graph::Endpoint x);
  // Whether step `step` is within the `lengths` of the batch: [batch, 1].
  graph::Endpoint IsWithin(int64_t step, graph::Endpoint lengths);
  graph::Endpoint Chosen(graph::Endpoint condition, graph::Endpoint if_true,
                         graph::Endpoint if_false);

 private:
  tensorflow::NodeDef New(absl::string_view op) const;
  graph::Endpoint Put(tensorflow::NodeDef def,
                      absl::Span<const graph::Endpoint> inputs);
  graph::Endpoint Ints(const std::vector<int64_t>& values, bool is_scalar);

  graph::Graph& graph_;
  const std::string prefix_;
  const tensorflow::DataType type_;
};

}  // namespace optfarm::exporting

#endif  // OPTFARM_ENGINE_EXPORT_STEP_NODES_H_
