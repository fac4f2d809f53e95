// What the steps of a plan work on, told the same for every model and in every
// program: the key by which a device's times for steps are looked up.

#ifndef OPTFARM_ENGINE_RUNTIME_SESSION_STEP_WORK_H_
#define OPTFARM_ENGINE_RUNTIME_SESSION_STEP_WORK_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "engine/graph/partial_shape.h"
#include "engine/runtime/plan/run_options.h"

namespace optfarm::runtime {

// One step. The fields are those of optfarm.v1.StepWork, which the runtime for
// apps does not have.
struct StepWork {
  std::string key;
  std::string op;
  std::vector<std::string> nodes;
  double multiply_adds = 0;
  // UNITS: bytes.
  int64_t input_bytes = 0;
  int64_t weight_bytes = 0;
  int64_t output_bytes = 0;

  // As the message.
  template <typename Message>
  Message To() const {
    Message message;
    message.set_key(key);
    message.set_op(op);
    message.mutable_nodes()->Assign(nodes.begin(), nodes.end());
    message.set_multiply_adds(multiply_adds);
    message.set_input_bytes(input_bytes);
    message.set_weight_bytes(weight_bytes);
    message.set_output_bytes(output_bytes);
    return message;
  }
};

// What there is to know of a graph's nodes once the graph is gone.
// THREADS: const methods may be called from several at once.
class StepWorks {
 public:
  // Shapes are those that follow from what is fed. Feeds that the graph does
  // not have are passed over.
  // ERRORS: InvalidArgument for a cycle that is not a loop.
  using Feed = std::pair<graph::TensorName, graph::PartialShape>;
  static absl::StatusOr<StepWorks> Create(const graph::Graph& graph,
                                          absl::Span<const Feed> feeds);

  // Of one step of a trace. Nodes that the graph does not have (those of
  // functions) count with their op alone.
  StepWork Of(const NodeTiming& step) const;

 private:
  struct Tensor {
    // Type and shape.
    std::string text;
    int64_t bytes = 0;
  };
  struct Input {
    // The node that makes it; empty: a constant.
    std::string from;
    Tensor tensor;
  };
  struct Output {
    // Nodes that read it; empty: it is a result.
    std::vector<std::string> readers;
    Tensor tensor;
  };
  struct Node {
    // Op, and attributes that the work depends on.
    std::string text;
    double multiply_adds = 0;
    std::vector<Input> inputs;
    std::vector<Output> outputs;
  };

  absl::flat_hash_map<std::string, Node> nodes_;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_SESSION_STEP_WORK_H_
