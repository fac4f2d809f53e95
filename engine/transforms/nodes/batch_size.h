// Where a graph carries its batch size besides the shapes of its inputs, and
// how it is changed there.

#ifndef OPTFARM_ENGINE_TRANSFORMS_NODES_BATCH_SIZE_H_
#define OPTFARM_ENGINE_TRANSFORMS_NODES_BATCH_SIZE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/graph/graph.h"
#include "engine/graph/shape_inference.h"

namespace optfarm::transforms {

// The sizes; graph::kUnknownDim for one that is left open.
struct BatchChange {
  int64_t from = graph::kUnknownDim;
  int64_t to = graph::kUnknownDim;

  // A size that is a multiple of the old one, scaled; nullopt when it is none.
  std::optional<int64_t> Scaled(int64_t size) const;
};

// Changes what is written into the graph, once the inputs have the new size:
// the leading dimension of a Reshape's, Fill's or random op's constant shape
// (also where Pack or ConcatV2 put it together), and initial states that are
// the same for each item. OWNERSHIP: the graph outlives the editor.
class BatchSizeEditor {
 public:
  // `before`: shapes with the old size.
  BatchSizeEditor(BatchChange change, graph::ShapeMap before,
                  graph::Graph* graph)
      : change_(change), before_(std::move(before)), graph_(graph) {}

  // ERRORS: FailedPrecondition naming the nodes that cannot be changed, or do
  // not give their results item by item.
  absl::Status Run();

  int64_t changed_nodes() const { return changed_nodes_; }
  // Outputs of nodes of which it is not known whether they have the new size.
  const std::vector<graph::Endpoint>& uncertain() const { return uncertain_; }

 private:
  // The dimension in which a tensor differs from before.
  struct Difference {
    enum class Kind { kNone, kBatch, kUnknown, kBroken } kind;
    int axis = 0;
    // Whether the dimension was known before.
    bool is_sure = false;
  };
  Difference DifferenceOf(graph::Endpoint tensor) const;
  bool IsCarrying(graph::Endpoint tensor) const;

  // Each changes at most one place; false when there is none.
  absl::StatusOr<bool> ChangeOneReshape();
  absl::StatusOr<bool> ChangeOneSource();
  // Scales element 0 of what `consumer` reads as a shape.
  absl::StatusOr<bool> ScaleShapeInput(graph::NodeId consumer, int input);
  absl::StatusOr<bool> ScaleConst(graph::NodeId consumer, int input);
  // Looks for a constant state behind an input that does not fit.
  absl::StatusOr<bool> ChangeSourceOf(graph::Endpoint tensor);
  absl::StatusOr<bool> RepeatRows(graph::NodeId constant);

  absl::Status Check();
  std::string WhyNotByItem(graph::NodeId id);

  const BatchChange change_;
  const graph::ShapeMap before_;
  graph::Graph* graph_;
  graph::ShapeMap after_;
  absl::flat_hash_set<graph::NodeId> done_;
  int64_t changed_nodes_ = 0;
  std::vector<graph::Endpoint> uncertain_;
};

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_NODES_BATCH_SIZE_H_
