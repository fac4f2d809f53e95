#include "engine/transforms/nodes/function_call.h"

#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "engine/graph/op_defs.h"

namespace optfarm::transforms {
namespace {

using tensorflow::AttrValue;
using tensorflow::FunctionDef;
using tensorflow::NodeDef;
using tensorflow::OpDef;

using Attributes = google::protobuf::Map<std::string, AttrValue>;

// Gives attributes that stand for one of the function's the call's value, in
// function attributes too. Those nest no deeper than the parser allows.
absl::Status BindAttributes(const Attributes& arguments, Attributes* attrs) {
  for (auto& [name, value] : *attrs) {
    if (value.has_func()) {
      OPTFARM_RETURN_IF_ERROR(
          BindAttributes(arguments, value.mutable_func()->mutable_attr()));
    }
    if (value.value_case() != AttrValue::kPlaceholder) continue;
    const auto bound = arguments.find(value.placeholder());
    if (bound == arguments.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("attribute '", name, "' stands for '",
                       value.placeholder(), "', which the call does not give"));
    }
    AttrValue copy = bound->second;
    value = std::move(copy);
  }
  return absl::OkStatus();
}

class BodyReader {
 public:
  BodyReader(const FunctionDef& function,
             const tensorflow::NameAttrList& arguments,
             const tensorflow::FunctionDefLibrary& library)
      : function_(function), library_(library) {
    as_node_.set_name(function.signature().name());
    as_node_.set_op(function.signature().name());
    *as_node_.mutable_attr() = arguments.attr();
    for (const OpDef::AttrDef& attr : function.signature().attr()) {
      if (attr.has_default_value()) {
        as_node_.mutable_attr()->insert({attr.name(), attr.default_value()});
      }
    }
  }

  absl::StatusOr<FunctionCall> Read(int input_count) {
    OPTFARM_RETURN_IF_ERROR(ReadArguments(input_count));
    OPTFARM_RETURN_IF_ERROR(ReadNodes());
    for (int i = 0; i < function_.node_def_size(); ++i) {
      const absl::Status inputs = ReadInputs(i);
      if (!inputs.ok()) {
        return Annotate(
            inputs, absl::StrCat("node '", function_.node_def(i).name(), "'"));
      }
    }
    OPTFARM_RETURN_IF_ERROR(ReadOutputs());
    OPTFARM_RETURN_IF_ERROR(ReadEffects());
    return std::move(call_);
  }

 private:
  absl::Status ReadArguments(int input_count) {
    OPTFARM_ASSIGN_OR_RETURN(
        const int wanted, graph::InputCount(function_.signature(), as_node_));
    if (wanted != input_count) {
      return absl::InvalidArgumentError(absl::StrCat(
          "it is called with ", input_count, " inputs and takes ", wanted));
    }
    for (const OpDef::ArgDef& arg : function_.signature().input_arg()) {
      OPTFARM_ASSIGN_OR_RETURN(
          arguments_[arg.name()],
          graph::InputPorts(function_.signature(), as_node_, arg.name()));
    }
    return absl::OkStatus();
  }

  absl::Status ReadNodes() {
    for (const NodeDef& def : function_.node_def()) {
      BodyNode& node = call_.nodes.emplace_back();
      node.def = def;
      node.def.clear_input();
      const int index = static_cast<int>(call_.nodes.size()) - 1;
      if (def.name().empty() || arguments_.contains(def.name()) ||
          !nodes_.emplace(def.name(), index).second) {
        return absl::InvalidArgumentError(
            absl::StrCat("the name '", def.name(), "' is empty or used twice"));
      }
      const absl::Status bound =
          BindAttributes(as_node_.attr(), node.def.mutable_attr());
      if (!bound.ok()) {
        return Annotate(bound, absl::StrCat("node '", def.name(), "'"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status ReadInputs(int index) {
    for (const std::string& text : function_.node_def(index).input()) {
      absl::string_view name = text;
      if (absl::ConsumePrefix(&name, "^")) {
        OPTFARM_ASSIGN_OR_RETURN(const BodySource source, Find(name));
        call_.nodes[index].control_inputs.push_back(source);
      } else {
        OPTFARM_ASSIGN_OR_RETURN(const BodySource source, FindTensor(text));
        call_.nodes[index].inputs.push_back(source);
      }
    }
    return absl::OkStatus();
  }

  absl::Status ReadOutputs() {
    for (const OpDef::ArgDef& arg : function_.signature().output_arg()) {
      const auto ret = function_.ret().find(arg.name());
      if (ret == function_.ret().end()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "nothing is returned as its output '", arg.name(), "'"));
      }
      OPTFARM_ASSIGN_OR_RETURN(
          const graph::PortRange ports,
          graph::OutputPorts(function_.signature(), as_node_, arg.name()));
      OPTFARM_ASSIGN_OR_RETURN(BodySource source, FindTensor(ret->second));
      for (int port = ports.begin; port < ports.end; ++port) {
        call_.outputs.push_back(source);
        ++source.port;
      }
    }
    return absl::OkStatus();
  }

  absl::Status ReadEffects() {
    // A map has no order of its own; the nodes' is the file's.
    std::vector<bool> is_effect(call_.nodes.size(), false);
    for (const auto& [unused, name] : function_.control_ret()) {
      OPTFARM_ASSIGN_OR_RETURN(const BodySource source, Find(name));
      if (source.node >= 0) is_effect[source.node] = true;
    }
    for (size_t i = 0; i < is_effect.size(); ++i) {
      if (is_effect[i]) call_.effects.push_back(static_cast<int>(i));
    }
    return absl::OkStatus();
  }

  // An argument or a node.
  absl::StatusOr<BodySource> Find(absl::string_view name) const {
    if (const auto arg = arguments_.find(name); arg != arguments_.end()) {
      return BodySource{-1, arg->second.begin};
    }
    if (const auto node = nodes_.find(name); node != nodes_.end()) {
      return BodySource{node->second, 0};
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "'", name, "' is neither an argument nor a node of the function"));
  }

  // "argument", "argument:index", "node:output:index"; also "node:output",
  // "node:port" and "node", which are a graph's ways of writing it.
  absl::StatusOr<BodySource> FindTensor(absl::string_view text) const {
    const std::vector<absl::string_view> pieces = absl::StrSplit(text, ':');
    OPTFARM_ASSIGN_OR_RETURN(BodySource source, Find(pieces[0]));
    const absl::Status malformed = absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is no tensor of the function"));
    int index = 0;
    const bool has_index =
        pieces.size() > 1 && absl::SimpleAtoi(pieces.back(), &index);
    if (index < 0 || index >= graph::kMaxNodeArity || pieces.size() > 3 ||
        (pieces.size() == 3 && !has_index)) {
      return malformed;
    }
    graph::PortRange ports{0, static_cast<int>(graph::kMaxNodeArity)};
    if (source.node < 0) {
      ports = arguments_.at(pieces[0]);
    } else if (pieces.size() == 3 || (pieces.size() == 2 && !has_index)) {
      OPTFARM_ASSIGN_OR_RETURN(ports, OutputPorts(source.node, pieces[1]));
    }
    source.port = ports.begin + index;
    if (source.port >= ports.end) return malformed;
    return source;
  }

  // Where in a node's outputs the named one lies. Of an op that nobody knows it
  // is taken to be the only one.
  absl::StatusOr<graph::PortRange> OutputPorts(int node,
                                               absl::string_view name) const {
    const NodeDef& def = call_.nodes[node].def;
    const OpDef* op_def = graph::FindOpDef(def.op());
    for (int i = 0; op_def == nullptr && i < library_.function_size(); ++i) {
      const OpDef& signature = library_.function(i).signature();
      if (signature.name() == def.op()) op_def = &signature;
    }
    if (op_def == nullptr) {
      return graph::PortRange{0, static_cast<int>(graph::kMaxNodeArity)};
    }
    return graph::OutputPorts(*op_def, def, name);
  }

  const FunctionDef& function_;
  const tensorflow::FunctionDefLibrary& library_;
  // The call with the attributes that its signature is about.
  NodeDef as_node_;
  absl::flat_hash_map<std::string, graph::PortRange> arguments_;
  absl::flat_hash_map<std::string, int> nodes_;
  FunctionCall call_;
};

}  // namespace

absl::StatusOr<FunctionCall> MakeFunctionCall(
    const FunctionDef& function, const tensorflow::NameAttrList& arguments,
    int input_count, const tensorflow::FunctionDefLibrary& library) {
  absl::StatusOr<FunctionCall> call =
      BodyReader(function, arguments, library).Read(input_count);
  if (call.ok()) return call;
  return absl::InvalidArgumentError(
      absl::StrCat("function '", function.signature().name(),
                   "': ", call.status().message()));
}

}  // namespace optfarm::transforms
