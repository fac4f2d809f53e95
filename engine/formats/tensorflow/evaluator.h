// What computes tensors for freezing.

#ifndef OPTFARM_ENGINE_FORMATS_TENSORFLOW_EVALUATOR_H_
#define OPTFARM_ENGINE_FORMATS_TENSORFLOW_EVALUATOR_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/tensor.pb.h"

namespace optfarm::formats {

// Computes one tensor of a graph that needs no inputs; the caller has a
// runtime, this room does not.
using Evaluator = std::function<absl::StatusOr<tensorflow::TensorProto>(
    tensorflow::GraphDef graph, const std::string& tensor)>;

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_TENSORFLOW_EVALUATOR_H_
