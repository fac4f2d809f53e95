// A While of the graph from the parts of Loop or Scan: a count of trips, values
// that go from one trip to the next, tensors of which each trip reads one part,
// and results that are collected.

#ifndef OPTFARM_ENGINE_FORMATS_ONNX_LOOP_BUILDER_H_
#define OPTFARM_ENGINE_FORMATS_ONNX_LOOP_BUILDER_H_

#include <vector>

#include "absl/status/statusor.h"
#include "engine/formats/onnx/lowering.h"
#include "engine/formats/onnx/subgraph.h"

namespace optfarm::formats {

// What the body gives; endpoints of the subgraph's builder.
struct LoopBody {
  // Nothing: go on as long as there are trips.
  Endpoint condition;
  std::vector<Endpoint> variables;
  std::vector<Endpoint> collected;
};

class LoopBuilder {
 public:
  explicit LoopBuilder(NodeLowering& n) : n_(n) {}

  // Scalars: int64 and bool.
  void SetTrips(Endpoint count, Endpoint condition) {
    count_ = count;
    condition_ = condition;
  }
  // Each returns what the body knows of its argument. Variables come before
  // scanned tensors, of which a trip sees one element of the first dimension.
  SubgraphArgument AddVariable(Endpoint initial);
  SubgraphArgument AddScanned(Endpoint tensor);

  // The subgraph's arguments are, for a body with a condition, the trip's
  // number and the condition; then variables; then parts of scanned tensors.
  // Returns the variables and what was collected, stacked.
  absl::StatusOr<std::vector<Endpoint>> Build(const OnnxSubgraph& body,
                                              const LoopBody& results);

 private:
  // All that goes around: number, count, condition, variables, scanned tensors,
  // captures, lists.
  struct Wires {
    std::vector<Endpoint> initial;
    std::vector<DataType> types;
    // In the body.
    std::vector<Endpoint> inside;
    std::vector<Endpoint> next;

    void Add(Endpoint from, DataType type, Endpoint in, Endpoint out) {
      initial.push_back(from);
      types.push_back(type);
      inside.push_back(in);
      next.push_back(out);
    }
  };

  absl::StatusOr<tensorflow::AttrValue> Condition(
      const std::vector<DataType>& types);
  void AddList(GraphBuilder& inside, Endpoint element, Wires* wires);

  NodeLowering& n_;
  Endpoint count_, condition_;
  std::vector<Endpoint> variables_, scanned_;
};

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_ONNX_LOOP_BUILDER_H_
