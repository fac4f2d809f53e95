#include "engine/formats/onnx/graph_reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/onnx/lowering_table.h"
#include "engine/formats/onnx/node_order.h"
#include "engine/formats/onnx/tensors.h"
#include "engine/graph/attr.h"
#include "engine/graph/model_interface.h"

namespace optfarm::formats {
namespace {

using onnx::AttributeProto;
using onnx::FunctionProto;
using onnx::GraphProto;
using onnx::NodeProto;

// Functions that call each other around a circle never end.
constexpr int kMostNestedCalls = 24;

// "node 'conv1' (Conv)"; nodes without a name by their output.
std::string Describe(const NodeProto& node) {
  const std::string& name = !node.name().empty() || node.output_size() == 0
                                ? node.name()
                                : node.output(0);
  return absl::StrCat("node '", name, "' (", node.domain(),
                      node.domain().empty() ? "" : ".", node.op_type(), ")");
}

// Types that an operator did not take in its first versions, where a model that
// has them was never valid.
// ERRORS: InvalidArgument.
absl::Status CheckTypes(const NodeProto& node, const std::string& domain,
                        int opset, const std::vector<Endpoint>& inputs,
                        const GraphBuilder& builder) {
  if (!domain.empty() || node.op_type() != "Equal" || opset >= 11) {
    return absl::OkStatus();
  }
  for (const Endpoint& input : inputs) {
    const DataType type = builder.dtype(input);
    if (type != tensorflow::DT_BOOL && type != tensorflow::DT_INT32 &&
        type != tensorflow::DT_INT64) {
      return absl::InvalidArgumentError(
          absl::StrCat("it takes bool, int32 or int64 in opset ", opset,
                       ", not ", graph::DataTypeName(type)));
    }
  }
  return absl::OkStatus();
}

// The caller's attribute, or the function's default, in place of a reference;
// one that neither has is left out.
void BindAttributes(const FunctionProto& function, const NodeProto& caller,
                    NodeProto* node) {
  google::protobuf::RepeatedPtrField<AttributeProto> bound;
  for (AttributeProto& attr : *node->mutable_attribute()) {
    if (attr.ref_attr_name().empty()) {
      if (attr.has_g()) {
        for (NodeProto& inner : *attr.mutable_g()->mutable_node()) {
          BindAttributes(function, caller, &inner);
        }
      }
      *bound.Add() = std::move(attr);
      continue;
    }
    const auto find = [&](const auto& attributes) -> const AttributeProto* {
      for (const AttributeProto& given : attributes) {
        if (given.name() == attr.ref_attr_name()) return &given;
      }
      return nullptr;
    };
    const AttributeProto* value = find(caller.attribute());
    if (value == nullptr) value = find(function.attribute_proto());
    if (value == nullptr) continue;
    AttributeProto* copy = bound.Add();
    *copy = *value;
    copy->set_name(attr.name());
  }
  node->mutable_attribute()->Swap(&bound);
}

}  // namespace

// --- Names -------------------------------------------------------------------

void OnnxGraphReader::Define(const std::string& name, Endpoint tensor) {
  if (!name.empty()) values_[name] = tensor;
}

bool OnnxGraphReader::IsInitializer(const std::string& name) const {
  return initializers_.contains(name) || sparse_.contains(name);
}

int OnnxGraphReader::BitsOf(const std::string& name) const {
  int type = 0;
  const auto initializer = initializers_.find(name);
  const auto declared = declared_.find(name);
  if (initializer != initializers_.end()) {
    type = initializer->second->data_type();
  } else if (declared != declared_.end()) {
    type = declared->second->tensor_type().elem_type();
  } else if (outer_ != nullptr) {
    return outer_->BitsOf(name);
  }
  return BitsOfOnnx(type) == 4 ? 4 : 8;
}

absl::StatusOr<Endpoint> OnnxGraphReader::Find(const std::string& name) {
  const auto value = values_.find(name);
  if (value != values_.end()) return value->second;
  absl::StatusOr<tensorflow::TensorProto> constant =
      absl::NotFoundError("no initializer");
  const auto initializer = initializers_.find(name);
  const auto sparse = sparse_.find(name);
  if (initializer != initializers_.end()) {
    constant =
        ReadOnnxTensor(*initializer->second, model_.external_data_folder());
  } else if (sparse != sparse_.end()) {
    constant =
        ReadSparseOnnxTensor(*sparse->second, model_.external_data_folder(),
                             model_.constant_bytes_left());
    if (constant.ok()) {
      OPTFARM_RETURN_IF_ERROR(model_.TakeConstantBytes(
          static_cast<int64_t>(constant->tensor_content().size())));
    }
  } else if (outer_ != nullptr) {
    OPTFARM_ASSIGN_OR_RETURN(Endpoint outside, outer_->Find(name));
    if (&outer_->builder_ != &builder_) outside = Captured(outside);
    values_[name] = outside;
    return outside;
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("reads '", name, "', which nothing makes"));
  }
  if (!constant.ok()) {
    // Said once.
    values_[name] = Endpoint();
    model_.AddReason(constant.status());
    return Endpoint();
  }
  const Endpoint made = builder_.Constant(*std::move(constant));
  if (made.node != graph::kNoNode) {
    builder_.graph().Rename(made.node,
                            absl::StrCat(prefix_, graph::NodeNameOf(name)));
    graph::SetTensorName(
        name, 0, builder_.graph().mutable_node(made.node)->mutable_def());
  }
  values_[name] = made;
  return made;
}

// Constants are copied, so that what reads them knows them.
Endpoint OnnxGraphReader::Captured(Endpoint outside) {
  if (outside.node == graph::kNoNode) return outside;
  GraphBuilder& around = outer_->builder_;
  if (const tensorflow::TensorProto* constant = around.ConstantOf(outside)) {
    return builder_.Constant(*constant);
  }
  for (const Capture& capture : captures_) {
    if (capture.outside == outside) return capture.inside;
  }
  const Endpoint inside =
      builder_.AddPlaceholder(absl::StrCat("captured_", captures_.size()),
                              around.dtype(outside), around.shape(outside));
  builder_.set_knowledge(inside, around.knowledge(outside));
  captures_.push_back({outside, inside});
  return inside;
}

// --- Nodes -------------------------------------------------------------------

void OnnxGraphReader::DefineInitializers(const GraphProto& graph) {
  for (const onnx::TensorProto& tensor : graph.initializer()) {
    initializers_[tensor.name()] = &tensor;
  }
  for (const onnx::SparseTensorProto& tensor : graph.sparse_initializer()) {
    sparse_[tensor.values().name()] = &tensor;
  }
  for (const onnx::ValueInfoProto& value : graph.value_info()) {
    declared_[value.name()] = &value.type();
  }
  for (const onnx::ValueInfoProto& value : graph.output()) {
    declared_[value.name()] = &value.type();
  }
}

void OnnxGraphReader::ReadBody(const GraphProto& graph) {
  DefineInitializers(graph);
  for (const NodeProto* node : NodesInOrder(graph.node())) LowerNode(*node);
}

void OnnxGraphReader::ReadFunctionBody(const FunctionProto& function,
                                       const NodeProto& caller) {
  for (const NodeProto* node : NodesInOrder(function.node())) {
    NodeProto bound = *node;
    BindAttributes(function, caller, &bound);
    LowerNode(bound);
  }
}

std::vector<Endpoint> OnnxGraphReader::Results(const GraphProto& graph) {
  std::vector<Endpoint> results;
  for (const onnx::ValueInfoProto& output : graph.output()) {
    absl::StatusOr<Endpoint> result = Find(output.name());
    if (!result.ok()) {
      model_.AddReason(absl::InvalidArgumentError(
          absl::StrCat("nothing makes the output '", output.name(), "'")));
    }
    results.push_back(result.value_or(Endpoint()));
  }
  return results;
}

bool OnnxGraphReader::FindInputs(const NodeProto& node,
                                 std::vector<Endpoint>* inputs) {
  for (const std::string& name : node.input()) {
    if (name.empty() || absent_.contains(name)) {
      inputs->emplace_back();
      continue;
    }
    const absl::StatusOr<Endpoint> input = Find(name);
    if (!input.ok()) {
      model_.AddReason(absl::InvalidArgumentError(
          absl::StrCat(Describe(node), " ", input.status().message())));
      return false;
    }
    if (input->node == graph::kNoNode) return false;
    inputs->push_back(*input);
  }
  return true;
}

void OnnxGraphReader::LowerNode(const NodeProto& node) {
  std::vector<Endpoint> inputs, outputs;
  const std::string domain = OnnxDomain(node.domain());
  const auto version = opsets_.find(domain);
  const int opset = version == opsets_.end() ? 1 : version->second;
  const FunctionProto* function = model_.FindFunction(node);
  const LoweringRow* row = function == nullptr
                               ? FindLowering(domain, node.op_type(), opset)
                               : nullptr;
  graph::NodeId first_new = builder_.graph().id_limit();
  absl::Status status;
  if (!model_.CountNode()) return;
  if (row == nullptr && function == nullptr) {
    model_.AddUnknownOperator(domain, node.op_type(), opset);
  } else if (FindInputs(node, &inputs)) {
    first_new = builder_.graph().id_limit();
    for (const std::string& output : node.output()) {
      if (output.empty()) continue;
      builder_.set_scope(absl::StrCat(prefix_, graph::NodeNameOf(output)));
      break;
    }
    if (function != nullptr) {
      status = CallFunction(*function, node, inputs, &outputs);
    } else if (status = CheckTypes(node, domain, opset, inputs, builder_);
               status.ok()) {
      NodeLowering lowering(node, opset, std::move(inputs), this, &builder_);
      status = row->lower(lowering);
      outputs = lowering.outputs();
    }
    const absl::Status added = builder_.TakeStatus();
    if (status.ok()) status = added;
    for (int i = 0; status.ok() && i < node.output_size(); ++i) {
      if (!node.output(i).empty() && function == nullptr &&
          outputs[static_cast<size_t>(i)].node == graph::kNoNode) {
        status = absl::UnimplementedError(
            absl::StrCat("output ", i, " is not supported"));
      }
    }
    if (!status.ok()) {
      model_.AddReason(Annotate(status, Describe(node)));
      outputs.clear();
    }
  }
  outputs.resize(static_cast<size_t>(node.output_size()));
  DefineOutputs(node, outputs, first_new);
}

void OnnxGraphReader::DefineOutputs(const NodeProto& node,
                                    const std::vector<Endpoint>& outputs,
                                    graph::NodeId first_new) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string& name = node.output(static_cast<int>(i));
    const Endpoint made = outputs[i];
    if (name.empty()) continue;
    if (values_.contains(name)) {
      model_.AddReason(absl::InvalidArgumentError(absl::StrCat(
          Describe(node), " makes '", name, "', which is there already")));
      continue;
    }
    Define(name, made);
    if (made.node == graph::kNoNode) continue;
    if (made.node >= first_new) {
      graph::Graph& graph = builder_.graph();
      const std::string wanted = absl::StrCat(prefix_, graph::NodeNameOf(name));
      const bool has_name =
          graph.node(made.node).FindAttr(graph::kTensorNamesAttr) != nullptr ||
          graph.node(made.node).name() == wanted;
      if (made.port == 0 && !has_name) graph.Rename(made.node, wanted);
      if (made.port != 0 || !has_name) {
        graph::SetTensorName(name, made.port,
                             graph.mutable_node(made.node)->mutable_def());
      }
    }
    // The number of dimensions helps where nothing else tells; sizes in files
    // are not to be trusted.
    const auto declared = declared_.find(name);
    if (builder_.shape(made).has_rank() || declared == declared_.end()) {
      continue;
    }
    const auto type = ReadOnnxType(*declared->second);
    if (type.ok() && type->shape.has_rank()) {
      builder_.SetShape(made, PartialShape::OfRank(type->shape.rank()));
    }
  }
}

absl::Status OnnxGraphReader::CallFunction(const FunctionProto& function,
                                           const NodeProto& node,
                                           const std::vector<Endpoint>& inputs,
                                           std::vector<Endpoint>* outputs) {
  if (depth_ >= kMostNestedCalls) {
    return absl::InvalidArgumentError("its function calls itself");
  }
  OnnxGraphReader body(&model_, &builder_, nullptr,
                       absl::StrCat(builder_.scope(), "/"));
  body.depth_ = depth_ + 1;
  OPTFARM_RETURN_IF_ERROR(
      ReadOpsets(function.opset_import(), body.mutable_opsets()));
  for (int i = 0; i < function.input_size(); ++i) {
    const bool is_given = static_cast<size_t>(i) < inputs.size() &&
                          inputs[static_cast<size_t>(i)].node != graph::kNoNode;
    if (is_given) {
      body.Define(function.input(i), inputs[static_cast<size_t>(i)]);
    } else {
      body.absent_.insert(function.input(i));
    }
  }
  for (const onnx::ValueInfoProto& value : function.value_info()) {
    body.declared_[value.name()] = &value.type();
  }
  body.ReadFunctionBody(function, node);
  for (int i = 0; i < function.output_size() && i < node.output_size(); ++i) {
    OPTFARM_ASSIGN_OR_RETURN(outputs->emplace_back(),
                             body.Find(function.output(i)));
  }
  return absl::OkStatus();
}

}  // namespace optfarm::formats
