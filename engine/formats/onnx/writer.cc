#include "engine/formats/onnx/writer.h"

#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/onnx/raising/graph_raiser.h"
#include "engine/formats/onnx/raising/node_raiser.h"
#include "engine/formats/onnx/raising/number_bytes.h"
#include "engine/formats/onnx/raising/raising_table.h"
#include "engine/graph/attr.h"
#include "engine/graph/dataflow_order.h"
#include "engine/graph/infer_io.h"
#include "engine/graph/model_interface.h"
#include "engine/graph/op_defs.h"
#include "engine/graph/ops/op_table.h"
#include "engine/graph/shape_inference.h"

namespace optfarm::formats {
namespace {

using graph::Endpoint;
using graph::Graph;
using graph::NodeId;
using tensorflow::DataType;

// Reasons that are listed before the rest is only counted.
constexpr size_t kMostReasons = 10000;

// A declared input or output, before its value is known.
struct Port {
  Endpoint tensor;
  OnnxPort port;
};

struct Interface {
  std::vector<Port> inputs, outputs;
};

std::vector<std::string> DimNames(const std::vector<graph::ModelTensor>& ports,
                                  Endpoint tensor) {
  for (const graph::ModelTensor& port : ports) {
    if (port.tensor == tensor) return port.dim_names;
  }
  return {};
}

// A name for every dimension that has none.
std::vector<std::string> WithNames(std::vector<std::string> names,
                                   const graph::PartialShape& shape,
                                   const std::string& tensor) {
  if (!shape.has_rank()) return names;
  names.resize(static_cast<size_t>(shape.rank()));
  for (int i = 0; i < shape.rank(); ++i) {
    std::string& name = names[static_cast<size_t>(i)];
    if (!name.empty() || shape.dim(i) >= 0) continue;
    name = i == 0 ? "batch" : absl::StrCat(tensor, "_dim", i);
  }
  return names;
}

// Whether the tensor is reached without passing an input.
std::vector<bool> Needed(const Graph& graph, const std::vector<Port>& outputs,
                         const absl::flat_hash_set<Endpoint>& inputs) {
  std::vector<bool> needed(static_cast<size_t>(graph.id_limit()), false);
  std::vector<Endpoint> stack;
  for (const Port& output : outputs) stack.push_back(output.tensor);
  while (!stack.empty()) {
    const Endpoint at = stack.back();
    stack.pop_back();
    if (inputs.contains(at) || needed[static_cast<size_t>(at.node)]) continue;
    needed[static_cast<size_t>(at.node)] = true;
    for (const Endpoint& input : graph.node(at.node).inputs()) {
      stack.push_back(input);
    }
  }
  return needed;
}

class Writer {
 public:
  Writer(const Graph& graph, const OnnxWriteOptions& options)
      : graph_(graph), options_(options), model_(options.opset) {}

  absl::StatusOr<std::string> Write() {
    OPTFARM_RETURN_IF_ERROR(FindInterface());
    OPTFARM_ASSIGN_OR_RETURN(shapes_, graph::InferShapes(graph_, feeds_));
    GraphRaiser raiser(graph_, shapes_, &model_);
    DeclareInputs(&raiser);
    for (const Port& output : interface_.outputs) {
      raiser.MarkOutput(output.tensor);
    }
    OPTFARM_RETURN_IF_ERROR(RaiseNodes(&raiser));
    for (Port& output : interface_.outputs) {
      output.port.type = raiser.TypeOf(output.tensor);
      output.port.shape = shapes_.Of(output.tensor);
      if (OnnxTypeOf(output.port.type) == 0) {
        Refuse(output.tensor.node, "ONNX has no tensors of its type");
        continue;
      }
      const ValueId value = raiser.In(output.tensor);
      if (value == kNoValue) continue;
      model_.AddOutput(std::move(output.port), value);
    }
    OPTFARM_RETURN_IF_ERROR(Reasons());
    return model_.Finish(options_.metadata);
  }

 private:
  absl::Status FindInterface();
  absl::Status FindOutputs(const graph::ModelInterface& declared);
  absl::Status AddInput(Endpoint tensor, const graph::ModelInterface& declared,
                        const std::optional<graph::PartialShape>& shape);
  void DeclareInputs(GraphRaiser* raiser);
  absl::Status RaiseNodes(GraphRaiser* raiser);
  void RaiseNode(NodeId id, GraphRaiser* raiser);
  bool RaiseKnownIntegers(NodeId id, GraphRaiser* raiser);
  // Whether all that the node reads has been raised; refuses it when it reads
  // what no one refused.
  bool HasInputs(NodeId id, GraphRaiser* raiser);
  void Refuse(NodeId id, absl::string_view reason);
  absl::Status Reasons() const;

  const Graph& graph_;
  const OnnxWriteOptions& options_;
  OnnxModelBuilder model_;
  Interface interface_;
  graph::ShapeOptions feeds_;
  graph::ShapeMap shapes_;
  std::vector<std::string> reasons_;
  // What could not be raised, and all behind it.
  absl::flat_hash_set<NodeId> refused_;
};

// --- Inputs and outputs ------------------------------------------------------

absl::Status Writer::FindOutputs(const graph::ModelInterface& declared) {
  std::vector<Endpoint> tensors;
  if (!options_.outputs.empty()) {
    for (const graph::TensorName& name : options_.outputs) {
      OPTFARM_ASSIGN_OR_RETURN(const Endpoint tensor, graph_.Resolve(name));
      tensors.push_back(tensor);
    }
  } else if (!declared.outputs.empty()) {
    for (const graph::ModelTensor& output : declared.outputs) {
      tensors.push_back(output.tensor);
    }
  } else {
    OPTFARM_ASSIGN_OR_RETURN(tensors, graph::FindOutputs(graph_));
  }
  for (const Endpoint& tensor : tensors) {
    OnnxPort port;
    port.name = graph::TensorNameInFile(graph_, tensor);
    port.dim_names = DimNames(declared.outputs, tensor);
    interface_.outputs.push_back({tensor, std::move(port)});
  }
  return absl::OkStatus();
}

absl::Status Writer::AddInput(Endpoint tensor,
                              const graph::ModelInterface& declared,
                              const std::optional<graph::PartialShape>& shape) {
  OnnxPort port;
  port.name = graph::TensorNameInFile(graph_, tensor);
  port.dim_names = DimNames(declared.inputs, tensor);
  if (shape.has_value()) {
    port.shape = *shape;
    feeds_.feeds[tensor] = *shape;
  }
  interface_.inputs.push_back({tensor, std::move(port)});
  return absl::OkStatus();
}

absl::Status Writer::FindInterface() {
  const graph::ModelInterface declared = graph::ReadModelInterface(graph_);
  OPTFARM_RETURN_IF_ERROR(FindOutputs(declared));
  if (!options_.inputs.empty()) {
    for (const OnnxWriteOptions::Input& input : options_.inputs) {
      OPTFARM_ASSIGN_OR_RETURN(const Endpoint tensor,
                               graph_.Resolve(input.name));
      OPTFARM_RETURN_IF_ERROR(AddInput(tensor, declared, input.shape));
    }
    return absl::OkStatus();
  }
  if (!declared.inputs.empty()) {
    for (const graph::ModelTensor& input : declared.inputs) {
      OPTFARM_RETURN_IF_ERROR(AddInput(input.tensor, declared, {}));
    }
    return absl::OkStatus();
  }
  const std::vector<bool> needed = Needed(graph_, interface_.outputs, {});
  for (NodeId id : graph_.Ids()) {
    if (needed[static_cast<size_t>(id)] &&
        graph::IsPlaceholder(graph_.node(id).op())) {
      OPTFARM_RETURN_IF_ERROR(AddInput({id, 0}, declared, {}));
    }
  }
  return absl::OkStatus();
}

void Writer::DeclareInputs(GraphRaiser* raiser) {
  for (Port& input : interface_.inputs) {
    input.port.type = raiser->TypeOf(input.tensor);
    input.port.shape = shapes_.Of(input.tensor);
    input.port.dim_names = WithNames(std::move(input.port.dim_names),
                                     input.port.shape, input.port.name);
    if (OnnxTypeOf(input.port.type) == 0) {
      Refuse(input.tensor.node,
             absl::StrCat("it is an input of type ",
                          graph::DataTypeName(input.port.type),
                          ", which is not written to ONNX; name another input "
                          "behind it"));
      continue;
    }
    raiser->Set(input.tensor, model_.AddInput(input.port));
  }
}

// --- Nodes -------------------------------------------------------------------

void Writer::Refuse(NodeId id, absl::string_view reason) {
  const graph::Node& node = graph_.node(id);
  reasons_.push_back(
      absl::StrCat("node '", node.name(), "' (", node.op(), "): ", reason));
  refused_.insert(id);
}

absl::Status Writer::Reasons() const {
  if (reasons_.empty()) return absl::OkStatus();
  std::string text =
      absl::StrCat("the graph cannot be written as ONNX with opset ",
                   options_.opset, ", for ", reasons_.size(),
                   reasons_.size() == 1 ? " reason:" : " reasons:");
  for (size_t i = 0; i < reasons_.size() && i < kMostReasons; ++i) {
    absl::StrAppend(&text, "\n  ", reasons_[i]);
  }
  if (reasons_.size() > kMostReasons) {
    absl::StrAppend(&text, "\n  and ", reasons_.size() - kMostReasons,
                    " others");
  }
  return absl::FailedPreconditionError(text);
}

bool Writer::HasInputs(NodeId id, GraphRaiser* raiser) {
  for (const Endpoint& input : graph_.node(id).inputs()) {
    if (raiser->IsSet(input) || raiser->IsConstantLike(input)) continue;
    if (!refused_.contains(input.node)) {
      Refuse(id, absl::StrCat("it reads '", graph_.NameOf(input),
                              "', which ONNX has no tensor for"));
    }
    refused_.insert(id);
    return false;
  }
  return true;
}

// Shape arithmetic that the shapes of the inputs decide.
bool Writer::RaiseKnownIntegers(NodeId id, GraphRaiser* raiser) {
  const graph::Node& node = graph_.node(id);
  const Endpoint output = {id, 0};
  const graph::PartialValue* value = shapes_.ValueOf(output);
  const DataType type = raiser->TypeOf(output);
  const tensorflow::OpDef* op_def = graph::FindOpDef(node.op());
  if (value == nullptr || op_def == nullptr ||
      (type != tensorflow::DT_INT32 && type != tensorflow::DT_INT64) ||
      graph::OutputCount(*op_def, node.def()).value_or(0) != 1) {
    return false;
  }
  std::string bytes;
  for (const std::optional<int64_t>& element : value->elements) {
    if (!element.has_value()) return false;
    bytes += IntegerBytes(type, *element);
  }
  raiser->Set(output, model_.AddConstant(type, value->dims, std::move(bytes),
                                         node.name()));
  return true;
}

void Writer::RaiseNode(NodeId id, GraphRaiser* raiser) {
  const graph::Node& node = graph_.node(id);
  if (raiser->IsSet({id, 0}) || raiser->IsConstantLike({id, 0})) return;
  if (RaiseKnownIntegers(id, raiser)) return;
  if (graph::IsConst(node.op())) {
    Refuse(id, "ONNX has no constants of its type");
    return;
  }
  const RaisingRow* row = FindRaising(node.op());
  if (row == nullptr) {
    Refuse(id, graph::IsPlaceholder(node.op())
                   ? "it is needed and not among the inputs"
                   : "the op has no form in ONNX here");
    return;
  }
  if (!HasInputs(id, raiser)) return;
  for (const Endpoint& input : node.inputs()) {
    const DataType type = raiser->TypeOf(input);
    if (!row->takes_complex && (type == tensorflow::DT_COMPLEX64 ||
                                type == tensorflow::DT_COMPLEX128)) {
      Refuse(id, "it reads complex numbers, which this op is not written for");
      return;
    }
  }
  NodeRaiser raised(id, row->onnx_op, raiser);
  const absl::Status status = row->raise(raised);
  if (!status.ok()) Refuse(id, status.message());
}

absl::Status Writer::RaiseNodes(GraphRaiser* raiser) {
  absl::flat_hash_set<Endpoint> fed;
  for (const Port& input : interface_.inputs) fed.insert(input.tensor);
  const std::vector<bool> needed = Needed(graph_, interface_.outputs, fed);
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<NodeId> order,
                           graph::DataflowOrder(graph_));
  for (NodeId id : order) {
    if (needed[static_cast<size_t>(id)]) RaiseNode(id, raiser);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> WriteOnnx(const Graph& graph,
                                      const OnnxWriteOptions& options) {
  if (options.opset < kOldestWrittenOpset ||
      options.opset > kNewestWrittenOpset) {
    return absl::InvalidArgumentError(
        absl::StrCat("opset ", options.opset, " is not written; give one of ",
                     kOldestWrittenOpset, " to ", kNewestWrittenOpset));
  }
  return Writer(graph, options).Write();
}

bool CanWriteAsOnnx(absl::string_view op) { return FindRaising(op) != nullptr; }

}  // namespace optfarm::formats
