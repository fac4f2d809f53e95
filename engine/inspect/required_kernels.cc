#include "engine/inspect/required_kernels.h"

#include <vector>

#include "absl/strings/string_view.h"
#include "engine/graph/attr.h"
#include "engine/graph/op_defs.h"
#include "engine/graph/ops/tensorflow_kernels.h"
#include "engine/runtime/core/kernel.h"
#include "engine/runtime/reference/catalog.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace optfarm::inspect {
namespace {

using tensorflow::NodeDef;

// The one op that TensorFlow rewrites before it looks for kernels.
constexpr absl::string_view kOpWithoutKernel = "AccumulateNV2";

void AddDtypes(const NodeDef& node, RequiredKernels* kernels) {
  std::set<std::string> names;
  const auto add = [&names](tensorflow::DataType type) {
    if (type != tensorflow::DT_INVALID) {
      names.insert(graph::DataTypeName(graph::BaseType(type)));
    }
  };
  const tensorflow::OpDef* op_def = graph::FindOpDef(node.op());
  if (op_def != nullptr) {
    for (const auto& types : {graph::InputTypes(*op_def, node),
                              graph::OutputTypes(*op_def, node)}) {
      if (!types.ok()) continue;
      for (const tensorflow::DataType type : *types) add(type);
    }
  }
  for (const auto& [name, value] : node.attr()) {
    if (name[0] == '_') continue;
    add(value.type());
    for (const int type : value.list().type()) {
      add(static_cast<tensorflow::DataType>(type));
    }
  }
  if (names.empty()) names.insert("");
  for (const std::string& name : names) {
    kernels->dtypes.emplace(node.op(), name);
  }
}

void AddNode(const NodeDef& node, const std::set<std::string>& functions,
             RequiredKernels* kernels) {
  if (functions.contains(node.op())) return;
  AddDtypes(node, kernels);
  if (runtime::AllKernels().Find(node.op()) == nullptr) {
    kernels->not_in_runtime.insert(node.op());
  }
  const std::vector<std::string> classes = graph::TensorFlowKernelClasses(node);
  for (const std::string& kernel : classes) {
    kernels->classes.emplace(node.op(), kernel);
  }
  if (!classes.empty()) return;
  if (node.op() == kOpWithoutKernel) {
    kernels->classes.emplace(node.op(), "");
  } else {
    kernels->without_class.insert(node.op());
  }
}

}  // namespace

void AddRequiredKernels(const tensorflow::GraphDef& graph,
                        RequiredKernels* kernels) {
  std::set<std::string> functions;
  for (const auto& function : graph.library().function()) {
    functions.insert(function.signature().name());
  }
  for (const NodeDef& node : graph.node()) AddNode(node, functions, kernels);
  for (const auto& function : graph.library().function()) {
    for (const NodeDef& node : function.node_def()) {
      AddNode(node, functions, kernels);
    }
  }
}

}  // namespace optfarm::inspect
