// Gives nodes other operands: constants, tensors with their axes in another
// order. What was made once is used again.

#ifndef OPTFARM_ENGINE_TRANSFORMS_LAYOUT_OPERAND_EDITOR_H_
#define OPTFARM_ENGINE_TRANSFORMS_LAYOUT_OPERAND_EDITOR_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/graph/graph.h"
#include "engine/graph/partial_shape.h"
#include "engine/runtime/core/tensor.h"
#include "engine/transforms/layout/permutation.h"

namespace optfarm::transforms {

// OWNERSHIP: the graph outlives it.
class OperandEditor {
 public:
  // `reshapes`: whether Transposed may make Reshapes.
  OperandEditor(graph::Graph* graph, bool reshapes)
      : graph_(graph), reshapes_(reshapes) {}

  graph::Graph* graph() { return graph_; }

  // Lets the input read a constant. Its name begins with the node's.
  void SetConstant(graph::NodeId node, int input, absl::string_view what,
                   const runtime::Tensor& value);
  // The same for whole numbers of the dtype that the input has: one, or a list.
  // ERRORS: InvalidArgument when that is no dtype of indices.
  absl::Status SetNumbers(graph::NodeId node, int input, absl::string_view what,
                          const std::vector<int64_t>& numbers, bool is_scalar);
  // Brings the rows (dimension 0) of an input into another order: where they
  // are not constant, by a GatherV2.
  absl::Status ReorderRows(graph::NodeId node, int input,
                           absl::string_view what, const Permutation& order);
  // Rows of a tensor in another order, for all its readers but `except`.
  absl::StatusOr<graph::Endpoint> Reordered(graph::Endpoint tensor,
                                            const Permutation& order);

  // Says that `node` is a Transpose of `source`, for Transposed to use.
  void NoteTranspose(graph::Endpoint source, const Permutation& order,
                     graph::NodeId node);
  // The tensor, which has this shape, with its axes in another order: itself, a
  // constant, a Reshape where that does, else a Transpose.
  absl::StatusOr<graph::Endpoint> Transposed(graph::Endpoint source,
                                             const graph::PartialShape& shape,
                                             const Permutation& order);
  // Reshape to these dimensions, one of which may be unknown.
  graph::Endpoint Reshaped(graph::Endpoint source,
                           const std::vector<int64_t>& dims,
                           tensorflow::DataType dtype);

  // A constant that is what Transpose takes as `perm`.
  graph::Endpoint OrderOf(const Permutation& order);

  // ERRORS: InvalidArgument when the op does not say it.
  absl::StatusOr<tensorflow::DataType> TypeOf(graph::Endpoint tensor) const;

 private:
  graph::NodeId AddConstant(absl::string_view name,
                            const runtime::Tensor& value,
                            graph::NodeId before = graph::kNoNode);

  graph::Graph* graph_;
  const bool reshapes_;
  std::map<std::pair<graph::NodeId, std::pair<int, Permutation>>,
           graph::Endpoint>
      transposed_;
  std::map<Permutation, graph::NodeId> orders_;
};

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_LAYOUT_OPERAND_EDITOR_H_
