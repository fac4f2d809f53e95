#include "engine/formats/tflite/node_maker.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/op_defs.h"
#include "engine/graph/tensor_name.h"
#include "tensorflow/core/framework/op_def.pb.h"

namespace optfarm::tflite {

using tensorflow::DataType;
using tensorflow::NodeDef;
using tensorflow::OpDef;

namespace {

absl::Status WrongCount(const NodeDef& node, size_t count) {
  return absl::InvalidArgumentError(
      absl::StrCat(count, " inputs are not as many as ", node.op(), " has"));
}

// Inputs of one type attribute are of one type.
absl::Status CheckType(const OpDef::ArgDef& arg, DataType type,
                       const NodeDef& node) {
  DataType wanted = arg.type();
  if (!arg.type_attr().empty()) {
    const tensorflow::AttrValue* set = graph::FindAttr(node, arg.type_attr());
    wanted = set == nullptr ? type : set->type();
  }
  if (wanted == type) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "input '", arg.name(), "' of ", node.op(), " has type ",
      graph::DataTypeName(type), ", not ", graph::DataTypeName(wanted)));
}

}  // namespace

std::string Value::Name() const {
  return port == 0 ? node : absl::StrCat(node, ":", port);
}

std::string NodeMaker::FreeName(absl::string_view name) {
  std::string free(name);
  int& number = next_number_[free];
  while (index_of_.contains(free)) free = absl::StrCat(name, "_", ++number);
  return free;
}

void NodeMaker::Fail(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
}

// Attributes for the types and numbers of inputs, and the first output's type.
absl::Status NodeMaker::SetTypes(absl::Span<const Value> inputs, NodeDef* node,
                                 Value* output) const {
  const OpDef* op = graph::FindOpDef(node->op());
  if (op == nullptr) {
    return absl::InternalError(absl::StrCat("there is no op ", node->op()));
  }
  const size_t fixed = op->input_arg_size();
  size_t next = 0;
  for (const OpDef::ArgDef& arg : op->input_arg()) {
    size_t count = 1;
    if (!arg.number_attr().empty() || !arg.type_list_attr().empty()) {
      count = inputs.size() + 1 - fixed;
    }
    if (next + count > inputs.size()) return WrongCount(*node, inputs.size());
    for (size_t i = 0; i < count && arg.type_list_attr().empty(); ++i) {
      OPTFARM_RETURN_IF_ERROR(CheckType(arg, inputs[next + i].type, *node));
    }
    if (!arg.number_attr().empty()) {
      graph::SetInt(node, arg.number_attr(), static_cast<int64_t>(count));
    }
    if (!arg.type_attr().empty() && count > 0) {
      graph::SetType(node, arg.type_attr(), inputs[next].type);
    }
    if (!arg.type_list_attr().empty()) {
      std::vector<DataType> types;
      for (size_t i = 0; i < count; ++i) types.push_back(inputs[next + i].type);
      graph::SetTypes(node, arg.type_list_attr(), types);
    }
    next += count;
  }
  if (next != inputs.size()) return WrongCount(*node, inputs.size());
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<DataType> types,
                           graph::OutputTypes(*op, *node));
  if (!types.empty()) output->type = types[0];
  return absl::OkStatus();
}

Value NodeMaker::Port(const Value& value, int port) {
  if (!status_.ok()) return {};
  Value other = value;
  other.port = port;
  const NodeDef& node = *NodeOf(value);
  const auto types = graph::OutputTypes(*graph::FindOpDef(node.op()), node);
  if (!types.ok() || port >= static_cast<int>(types->size())) {
    Fail(absl::InternalError(absl::StrCat(node.op(), " has no output ", port)));
    return {};
  }
  other.type = (*types)[port];
  return other;
}

Value NodeMaker::Add(absl::string_view op, absl::string_view name,
                     absl::Span<const Value> inputs, SetAttributes attributes) {
  if (!status_.ok()) return {};
  if (--budget_.nodes < 0) {
    Fail(absl::ResourceExhaustedError("the graph has too many nodes"));
    return {};
  }
  NodeDef node;
  node.set_op(std::string(op));
  node.set_name(FreeName(name));
  for (const Value& input : inputs) node.add_input(input.Name());
  attributes(&node);
  Value output;
  output.node = node.name();
  const absl::Status status = SetTypes(inputs, &node, &output);
  if (!status.ok()) {
    Fail(status);
    return {};
  }
  index_of_[node.name()] = static_cast<int>(nodes_.size());
  nodes_.push_back(std::move(node));
  return output;
}

Value NodeMaker::AddConst(absl::string_view name, const Constant& constant) {
  budget_.constant_bytes -= static_cast<int64_t>(constant.bytes.size());
  if (budget_.constant_bytes < 0) {
    Fail(absl::ResourceExhaustedError(
        "its constants take far more memory than the file has bytes"));
    return {};
  }
  return Add("Const", name, {}, [&](NodeDef* node) {
    graph::SetType(node, "dtype", constant.type);
    auto* tensor = (*node->mutable_attr())["value"].mutable_tensor();
    tensor->set_dtype(constant.type);
    for (const int64_t dim : constant.shape) {
      tensor->mutable_tensor_shape()->add_dim()->set_size(dim);
    }
    tensor->mutable_tensor_shape();
    tensor->set_tensor_content(constant.bytes);
  });
}

NodeDef* NodeMaker::NodeOf(const Value& value) {
  return &nodes_[index_of_.at(value.node)];
}

Value NodeMaker::Rename(const Value& value, absl::string_view name) {
  if (!status_.ok() || value.node == name) return value;
  const int index = index_of_.at(value.node);
  index_of_.erase(value.node);
  Value renamed = value;
  renamed.node = FreeName(name);
  index_of_[renamed.node] = index;
  nodes_[index].set_name(renamed.node);
  for (size_t i = index + 1; i < nodes_.size(); ++i) {
    for (std::string& input : *nodes_[i].mutable_input()) {
      if (input == value.node) {
        input = renamed.node;
      } else if (absl::StartsWith(input, value.node + ":")) {
        input = renamed.node + input.substr(value.node.size());
      }
    }
  }
  return renamed;
}

void NodeMaker::AddControl(const Value& value, const Value& before) {
  if (!status_.ok()) return;
  NodeOf(value)->add_input(absl::StrCat("^", before.node));
}

std::vector<NodeDef> NodeMaker::Take(absl::Span<const std::string> roots) {
  std::vector<bool> is_needed(nodes_.size(), false);
  std::vector<int> open;
  const auto need = [&](absl::string_view name) {
    const auto it = index_of_.find(name);
    if (it == index_of_.end() || is_needed[it->second]) return;
    is_needed[it->second] = true;
    open.push_back(it->second);
  };
  for (const std::string& root : roots) need(root);
  while (!open.empty()) {
    const NodeDef& node = nodes_[open.back()];
    open.pop_back();
    for (absl::string_view input : node.input()) {
      if (absl::StartsWith(input, "^")) input.remove_prefix(1);
      need(input.substr(0, input.find(':')));
    }
  }
  std::vector<NodeDef> needed;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (is_needed[i]) needed.push_back(std::move(nodes_[i]));
  }
  nodes_.clear();
  index_of_.clear();
  return needed;
}

void SetInts(NodeDef* node, absl::string_view name,
             absl::Span<const int64_t> values) {
  auto* list = (*node->mutable_attr())[std::string(name)].mutable_list();
  for (const int64_t value : values) list->add_i(value);
}

void SetShape(NodeDef* node, absl::string_view name,
              absl::Span<const int64_t> dims) {
  auto* shape = (*node->mutable_attr())[std::string(name)].mutable_shape();
  for (const int64_t dim : dims) shape->add_dim()->set_size(dim);
}

}  // namespace optfarm::tflite
