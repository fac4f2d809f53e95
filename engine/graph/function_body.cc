#include "engine/graph/function_body.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "engine/graph/op_defs.h"
#include "engine/graph/ops/op_table.h"

namespace optfarm::graph {
namespace {

using tensorflow::AttrValue;
using tensorflow::NodeDef;
using tensorflow::OpDef;

// How many tensors one argument stands for.
absl::StatusOr<int> CountOf(const OpDef::ArgDef& arg, const NodeDef& node) {
  OpDef one;
  *one.add_output_arg() = arg;
  return OutputCount(one, node);
}

}  // namespace

absl::Status FunctionBody::Error(absl::string_view what) const {
  return absl::InvalidArgumentError(
      absl::StrCat("function '", function_.signature().name(), "' ", what));
}

const OpDef* FunctionBody::SignatureOf(const std::string& op) const {
  const auto it = library_.find(op);
  return it != library_.end() ? &it->second->signature() : FindOpDef(op);
}

// Attribute values may name attributes of the call.
absl::Status FunctionBody::Substitute(AttrValue* value) const {
  if (value->value_case() == AttrValue::kFunc) {
    for (auto& [name, inner] : *value->mutable_func()->mutable_attr()) {
      if (inner.value_case() != AttrValue::kPlaceholder) continue;
      OPTFARM_RETURN_IF_ERROR(Substitute(&inner));
    }
    return absl::OkStatus();
  }
  if (value->value_case() != AttrValue::kPlaceholder) return absl::OkStatus();
  const std::string name = value->placeholder();
  const auto it = attributes_.find(name);
  if (it != attributes_.end()) {
    *value = it->second;
    return absl::OkStatus();
  }
  const OpDef::AttrDef* attr = FindAttrDef(function_.signature(), name);
  if (attr == nullptr || !attr->has_default_value()) {
    return Error(absl::StrCat("needs the attribute '", name,
                              "', which the call does not give"));
  }
  *value = attr->default_value();
  return absl::OkStatus();
}

absl::Status FunctionBody::BindArguments() {
  NodeDef call;
  *call.mutable_attr() = attributes_;
  size_t next = 0;
  bool fits = true;
  for (const OpDef::ArgDef& arg : function_.signature().input_arg()) {
    OPTFARM_ASSIGN_OR_RETURN(const int count, CountOf(arg, call));
    fits = next + count <= arguments_.size();
    if (!fits) break;
    argument_of_[arg.name()].assign(arguments_.begin() + next,
                                    arguments_.begin() + next + count);
    next += count;
  }
  if (!fits || next != arguments_.size()) {
    return Error(
        absl::StrCat("does not take ", arguments_.size(), " arguments"));
  }
  return absl::OkStatus();
}

absl::Status FunctionBody::AddNode(const NodeDef& def) {
  if (def.name().empty() || node_of_.contains(def.name())) {
    return Error(absl::StrCat("has two nodes named '", def.name(), "'"));
  }
  NodeDef copy = def;
  copy.clear_input();
  copy.set_name(absl::StrCat(prefix_, "/", def.name()));
  for (auto& [name, value] : *copy.mutable_attr()) {
    OPTFARM_RETURN_IF_ERROR(Substitute(&value));
  }
  const NodeId id = graph_.Add(std::move(copy), {});
  node_of_[def.name()] = id;
  nodes_.push_back(id);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Endpoint>> FunctionBody::OutputsOf(
    NodeId node, absl::string_view output) const {
  const NodeDef& def = graph_.node(node).def();
  const OpDef* signature = SignatureOf(def.op());
  if (signature == nullptr) {
    return Error(absl::StrCat("has node '", def.name(), "' of the unknown op ",
                              def.op()));
  }
  std::vector<Endpoint> tensors;
  int port = 0;
  for (const OpDef::ArgDef& arg : signature->output_arg()) {
    OPTFARM_ASSIGN_OR_RETURN(const int count, CountOf(arg, def));
    for (int i = 0; i < count && arg.name() == output; ++i) {
      tensors.push_back({node, port + i});
    }
    if (arg.name() == output) return tensors;
    port += count;
  }
  return Error(absl::StrCat("reads '", output, "' of node '", def.name(),
                            "', which has no such output"));
}

absl::StatusOr<std::vector<Endpoint>> FunctionBody::Resolve(
    const std::string& name) const {
  const std::vector<std::string> parts = absl::StrSplit(name, ':');
  const auto argument = argument_of_.find(parts[0]);
  const auto node = node_of_.find(parts[0]);
  std::vector<Endpoint> tensors;
  size_t used = 1;
  if (argument != argument_of_.end()) {
    tensors = argument->second;
  } else if (node != node_of_.end() && parts.size() > 1) {
    OPTFARM_ASSIGN_OR_RETURN(tensors, OutputsOf(node->second, parts[1]));
    used = 2;
  } else {
    return Error(absl::StrCat("has no tensor '", name, "'"));
  }
  if (parts.size() == used) return tensors;
  int index = 0;
  if (parts.size() > used + 1 || !absl::SimpleAtoi(parts[used], &index) ||
      index < 0 || index >= static_cast<int>(tensors.size())) {
    return Error(absl::StrCat("has no tensor '", name, "'"));
  }
  return std::vector<Endpoint>{tensors[index]};
}

absl::Status FunctionBody::Connect(int i) {
  const NodeDef& def = function_.node_def(i);
  const NodeId id = nodes_[i];
  std::vector<Endpoint> inputs;
  for (const std::string& input : def.input()) {
    if (input.empty() || input[0] != '^') {
      OPTFARM_ASSIGN_OR_RETURN(const std::vector<Endpoint> tensors,
                               Resolve(input));
      inputs.insert(inputs.end(), tensors.begin(), tensors.end());
      continue;
    }
    const std::string source = input.substr(1);
    const auto node = node_of_.find(source);
    if (node != node_of_.end()) {
      graph_.AddControlInput(id, node->second);
    } else if (!argument_of_.contains(source)) {
      return Error(absl::StrCat("has no node '", source, "'"));
    }
  }
  graph_.SetInputs(id, inputs);
  // A constant may stay free: what returns it waits.
  if (gate_ != kNoNode && inputs.empty() && !IsConst(def.op()) &&
      graph_.node(id).control_inputs().empty()) {
    graph_.AddControlInput(id, gate_);
  }
  return absl::OkStatus();
}

absl::Status FunctionBody::Add() {
  OPTFARM_RETURN_IF_ERROR(BindArguments());
  for (const NodeDef& def : function_.node_def()) {
    OPTFARM_RETURN_IF_ERROR(AddNode(def));
  }
  for (int i = 0; i < function_.node_def_size(); ++i) {
    OPTFARM_RETURN_IF_ERROR(Connect(i));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Endpoint>> FunctionBody::Results() const {
  std::vector<Endpoint> results;
  for (const OpDef::ArgDef& arg : function_.signature().output_arg()) {
    const auto it = function_.ret().find(arg.name());
    if (it == function_.ret().end()) {
      return Error(absl::StrCat("does not return '", arg.name(), "'"));
    }
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<Endpoint> tensors,
                             Resolve(it->second));
    results.insert(results.end(), tensors.begin(), tensors.end());
  }
  return results;
}

}  // namespace optfarm::graph
