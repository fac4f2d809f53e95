// The body of a library function as the nodes of one call: attributes as the
// call makes them, and where each input comes from. What inline_partitionedcall
// puts into the graph.

#ifndef OPTFARM_ENGINE_TRANSFORMS_NODES_FUNCTION_CALL_H_
#define OPTFARM_ENGINE_TRANSFORMS_NODES_FUNCTION_CALL_H_

#include <vector>

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace optfarm::transforms {

// Where a tensor inside a function comes from.
struct BodySource {
  // Index into FunctionCall::nodes; -1: from the call's inputs.
  int node = -1;
  // Output of that node, or input of the call.
  int port = 0;
};

struct BodyNode {
  // Named as in the function, without inputs.
  tensorflow::NodeDef def;
  std::vector<BodySource> inputs;
  // Ports do not matter.
  std::vector<BodySource> control_inputs;
};

struct FunctionCall {
  std::vector<BodyNode> nodes;
  // One for each output of the call.
  std::vector<BodySource> outputs;
  // Indices of nodes that have to run even if no output needs them.
  std::vector<int> effects;
};

// What a call of `function` with the attributes `arguments` and `input_count`
// inputs consists of. Functions of `library` may be called inside by name.
// ERRORS: InvalidArgument that names function and node: another number of
// inputs than the signature has, an attribute without a value, an input that
// names nothing, a name that is used twice.
absl::StatusOr<FunctionCall> MakeFunctionCall(
    const tensorflow::FunctionDef& function,
    const tensorflow::NameAttrList& arguments, int input_count,
    const tensorflow::FunctionDefLibrary& library);

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_NODES_FUNCTION_CALL_H_
