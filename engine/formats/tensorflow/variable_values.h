// Finds the value that each variable of a graph has after a checkpoint was
// restored and initializers were run. Only freeze.cc includes this file.

#ifndef OPTFARM_ENGINE_FORMATS_TENSORFLOW_VARIABLE_VALUES_H_
#define OPTFARM_ENGINE_FORMATS_TENSORFLOW_VARIABLE_VALUES_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/formats/tensorflow/checkpoint.h"
#include "engine/formats/tensorflow/evaluator.h"
#include "engine/graph/graph.h"
#include "tensorflow/core/framework/tensor.pb.h"

namespace optfarm::formats {

// Variable, VariableV2 and VarHandleOp.
bool IsVariable(const graph::Node& node);

// The variable that a reference or resource comes from, through Identity and
// the like; kNoNode when it comes from something else.
graph::NodeId VariableBehind(const graph::Graph& graph, graph::Endpoint end);

using VariableValues =
    absl::flat_hash_map<graph::NodeId, tensorflow::TensorProto>;

struct VariableSource {
  // May be nullptr.
  const Checkpoint* checkpoint = nullptr;
  std::string restore_op;
  // Variable and the stored tensor that is its value.
  absl::flat_hash_map<std::string, std::string> stored_names;
  std::vector<std::string> initializers;
  Evaluator evaluate;
};

// ERRORS: those of Freeze about values.
absl::StatusOr<VariableValues> FindVariableValues(
    const graph::Graph& graph, absl::Span<const graph::NodeId> variables,
    const VariableSource& source);

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_TENSORFLOW_VARIABLE_VALUES_H_
