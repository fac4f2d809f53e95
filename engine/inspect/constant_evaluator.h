// Computes tensors that need no inputs, for what asks for them without having
// a runtime: freezing with initializer nodes.

#ifndef OPTFARM_ENGINE_INSPECT_CONSTANT_EVALUATOR_H_
#define OPTFARM_ENGINE_INSPECT_CONSTANT_EVALUATOR_H_

#include <string>

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/tensor.pb.h"

namespace optfarm::inspect {

// ERRORS: those of graph::Graph::FromDef and runtime::Session.
absl::StatusOr<tensorflow::TensorProto> EvaluateConstant(
    tensorflow::GraphDef def, const std::string& tensor);

}  // namespace optfarm::inspect

#endif  // OPTFARM_ENGINE_INSPECT_CONSTANT_EVALUATOR_H_
