// Three places tell a variable's value. The restore node of a saver says which
// stored tensor, or which part of one, belongs to the variable. Without it the
// stored tensor has the variable's name. An initializer that assigns to the
// variable comes after both.

#include "engine/formats/tensorflow/variable_values.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/nearest_names.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/ops/op_table.h"
#include "engine/graph/tensor_name.h"
#include "engine/graph/tensor_proto.h"

namespace optfarm::formats {
namespace {

using graph::Endpoint;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using tensorflow::TensorProto;

// How many variables a message names.
constexpr size_t kMostNamed = 5;

bool IsAssign(const Node& node) {
  return graph::HasRole(node.op(), graph::OpRole::kAssign);
}

bool PassesThrough(const Node& node) {
  return graph::IsIdentity(node.op()) || node.op() == "RefIdentity" ||
         graph::IsEnter(node.op());
}

// The first node behind `end` that computes something.
Endpoint Behind(const Graph& graph, Endpoint end) {
  // A hostile graph may have a ring of Identity nodes, or a long chain at each
  // variable.
  constexpr int kMostPassed = 100;
  for (int step = 0; step < kMostPassed; ++step) {
    const Node& node = graph.node(end.node);
    if (!PassesThrough(node) || node.inputs().empty()) break;
    end = node.inputs()[0];
  }
  return end;
}

// A stored tensor, or the part of it that a variable is.
struct Stored {
  std::string tensor;
  std::string shape_and_slice;
};

// Element `index` of a constant list of strings.
std::optional<std::string> StringAt(const Graph& graph, Endpoint end,
                                    int index) {
  const Node& node = graph.node(Behind(graph, end).node);
  if (!graph::IsConst(node.op())) return std::nullopt;
  const auto value = graph::GetTensor(node.def(), "value");
  if (!value.ok() || (*value)->string_val_size() == 0) return std::nullopt;
  const auto elements = graph::ElementCount((*value)->tensor_shape());
  if (!elements.ok() || index >= *elements) return std::nullopt;
  // The last value repeats.
  return (*value)->string_val(std::min(index, (*value)->string_val_size() - 1));
}

// What a restoring op puts out at `end`; nullopt for another op.
std::optional<Stored> StoredBehind(const Graph& graph, Endpoint end) {
  end = Behind(graph, end);
  const Node& node = graph.node(end.node);
  const bool has_slices =
      node.op() == "RestoreV2" || node.op() == "RestoreSlice";
  if (!has_slices && node.op() != "Restore") return std::nullopt;
  if (node.inputs().size() < (has_slices ? 3u : 2u)) return std::nullopt;
  const int index = node.op() == "RestoreV2" ? end.port : 0;
  const auto tensor = StringAt(graph, node.inputs()[1], index);
  if (!tensor) return std::nullopt;
  Stored stored{*tensor, ""};
  if (has_slices) {
    const auto slice = StringAt(graph, node.inputs()[2], index);
    if (!slice) return std::nullopt;
    stored.shape_and_slice = *slice;
  }
  return stored;
}

class ValueFinder {
 public:
  ValueFinder(const Graph& graph, const VariableSource& source)
      : graph_(graph), source_(source) {}

  absl::StatusOr<VariableValues> Find(absl::Span<const NodeId> variables);

 private:
  absl::Status FindRestores();
  absl::Status FindInitializers();
  absl::StatusOr<std::vector<bool>> NeededBy(
      const std::vector<std::string>& names, absl::string_view what) const;
  // Sets values_ of a variable and, where initializers need them, of others.
  absl::Status Settle(NodeId variable);
  absl::StatusOr<bool> Initialize(NodeId variable, std::vector<NodeId>* first);
  absl::StatusOr<std::optional<TensorProto>> Restore(NodeId variable) const;
  absl::StatusOr<std::optional<TensorProto>> ReadStored(
      const Stored& stored) const;
  absl::Status CheckFits(NodeId variable, const TensorProto& value) const;
  absl::Status Missing(const std::vector<NodeId>& variables) const;

  const Graph& graph_;
  const VariableSource& source_;
  absl::flat_hash_map<NodeId, Stored> restores_;
  // The value that an initializer assigns.
  absl::flat_hash_map<NodeId, Endpoint> initial_values_;
  VariableValues values_;
  std::vector<NodeId> missing_;
};

absl::StatusOr<std::vector<bool>> ValueFinder::NeededBy(
    const std::vector<std::string>& names, absl::string_view what) const {
  std::vector<NodeId> roots;
  for (const std::string& name : names) {
    OPTFARM_ASSIGN_OR_RETURN(const graph::TensorName parsed,
                             graph::ParseTensorName(name));
    absl::StatusOr<NodeId> id = graph_.Get(parsed.node);
    if (!id.ok()) return Annotate(id.status(), what);
    roots.push_back(*id);
  }
  return graph::ReachableFrom(graph_, roots);
}

absl::Status ValueFinder::FindRestores() {
  std::vector<bool> in_saver;
  if (!source_.restore_op.empty()) {
    OPTFARM_ASSIGN_OR_RETURN(in_saver,
                             NeededBy({source_.restore_op}, "restore node"));
  }
  for (const NodeId id : graph_.Ids()) {
    const Node& node = graph_.node(id);
    if (!IsAssign(node) || node.inputs().size() < 2) continue;
    if (!in_saver.empty() && !in_saver[id]) continue;
    const NodeId variable = VariableBehind(graph_, node.inputs()[0]);
    const auto stored = StoredBehind(graph_, node.inputs()[1]);
    if (variable != graph::kNoNode && stored) {
      restores_.try_emplace(variable, *stored);
    }
  }
  return absl::OkStatus();
}

absl::Status ValueFinder::FindInitializers() {
  if (source_.initializers.empty()) return absl::OkStatus();
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<bool> run,
                           NeededBy(source_.initializers, "initializer node"));
  for (const NodeId id : graph_.Ids()) {
    const Node& node = graph_.node(id);
    if (!run[id] || !IsAssign(node) || node.inputs().size() < 2) continue;
    const NodeId variable = VariableBehind(graph_, node.inputs()[0]);
    if (variable != graph::kNoNode) {
      initial_values_.try_emplace(variable, node.inputs()[1]);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<TensorProto>> ValueFinder::ReadStored(
    const Stored& stored) const {
  std::optional<TensorProto> value;
  const SavedTensor* tensor = source_.checkpoint->Find(stored.tensor);
  if (tensor == nullptr) return value;
  OPTFARM_ASSIGN_OR_RETURN(const std::optional<ShapeAndSlice> part,
                           ParseShapeAndSlice(stored.shape_and_slice));
  if (part && part->shape != tensor->shape) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the graph restores a part of a tensor [",
        absl::StrJoin(part->shape, ","), "], the checkpoint has '",
        tensor->name, "' as [", absl::StrJoin(tensor->shape, ","), "]"));
  }
  OPTFARM_ASSIGN_OR_RETURN(value,
                           part ? source_.checkpoint->Read(*tensor, part->slice)
                                : source_.checkpoint->Read(*tensor));
  return value;
}

absl::StatusOr<std::optional<TensorProto>> ValueFinder::Restore(
    NodeId variable) const {
  const Node& node = graph_.node(variable);
  const auto named = source_.stored_names.find(node.name());
  if (named != source_.stored_names.end()) {
    return ReadStored({named->second, ""});
  }
  std::vector<Stored> candidates;
  const auto restore = restores_.find(variable);
  if (restore != restores_.end() && !source_.restore_op.empty()) {
    candidates.push_back(restore->second);
  }
  candidates.push_back({node.name(), ""});
  const auto shared_name = graph::GetString(node.def(), "shared_name");
  if (shared_name.ok()) candidates.push_back({*shared_name, ""});
  // Without a saver names come first; a part of a variable has none.
  if (restore != restores_.end()) candidates.push_back(restore->second);
  for (const Stored& stored : candidates) {
    OPTFARM_ASSIGN_OR_RETURN(std::optional<TensorProto> value,
                             ReadStored(stored));
    if (value) return value;
  }
  return std::optional<TensorProto>();
}

absl::Status ValueFinder::CheckFits(NodeId variable,
                                    const TensorProto& value) const {
  const Node& node = graph_.node(variable);
  OPTFARM_ASSIGN_OR_RETURN(const tensorflow::DataType dtype,
                           graph::GetType(node.def(), "dtype"));
  if (value.dtype() != dtype) {
    return absl::InvalidArgumentError(
        absl::StrCat("its value is ", graph::DataTypeName(value.dtype()),
                     ", the graph declares ", graph::DataTypeName(dtype)));
  }
  const tensorflow::AttrValue* shape = node.FindAttr("shape");
  // Without a known rank, or as a variable that takes any shape.
  if (shape == nullptr || shape->shape().unknown_rank() ||
      shape->shape().dim().empty()) {
    return absl::OkStatus();
  }
  bool fits = shape->shape().dim_size() == value.tensor_shape().dim_size();
  const auto text = [](const tensorflow::TensorShapeProto& s) {
    return absl::StrJoin(s.dim(), ",", [](std::string* out, const auto& dim) {
      absl::StrAppend(out, dim.size());
    });
  };
  for (int i = 0; fits && i < shape->shape().dim_size(); ++i) {
    const int64_t declared = shape->shape().dim(i).size();
    fits = declared < 0 || declared == value.tensor_shape().dim(i).size();
  }
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("its value has shape [", text(value.tensor_shape()),
                   "], the graph declares [", text(shape->shape()),
                   "]; is it the checkpoint of another model?"));
}

// The nodes that `end` needs, with known variables as constants; variables
// that are not known yet are added to `first`.
tensorflow::GraphDef ExpressionOf(const Graph& graph, Endpoint end,
                                  const VariableValues& values,
                                  std::vector<NodeId>* first) {
  std::vector<NodeId> variables;
  for (const auto& [id, value] : values) variables.push_back(id);
  const std::vector<bool> needed =
      graph::ReachableFrom(graph, {end.node}, variables);
  tensorflow::GraphDef def;
  *def.mutable_versions() = graph.versions();
  *def.mutable_library() = graph.library();
  for (const NodeId id : graph.Ids()) {
    if (!needed[id]) continue;
    const Node& node = graph.node(id);
    tensorflow::NodeDef* copy = def.add_node();
    const auto value = values.find(id);
    if (value != values.end()) {
      copy->set_name(node.name());
      copy->set_op("Const");
      graph::SetType(copy, "dtype", value->second.dtype());
      *(*copy->mutable_attr())["value"].mutable_tensor() = value->second;
      continue;
    }
    *copy = node.def();
    if (IsVariable(node)) first->push_back(id);
    // What is read from a variable is now read from a constant.
    if (graph::HasRole(node.op(), graph::OpRole::kReadVariable)) {
      copy->set_op("Identity");
      graph::CopyAttr(node.def(), "dtype", copy);
      (*copy->mutable_attr())["T"] = copy->attr().at("dtype");
      copy->mutable_attr()->erase("dtype");
    }
    for (const Endpoint& input : node.inputs()) {
      copy->add_input(graph.NameOf(input));
    }
    for (const NodeId control : node.control_inputs()) {
      copy->add_input(absl::StrCat("^", graph.node(control).name()));
    }
  }
  return def;
}

absl::StatusOr<bool> ValueFinder::Initialize(NodeId variable,
                                             std::vector<NodeId>* first) {
  const Endpoint initial = initial_values_.at(variable);
  tensorflow::GraphDef expression =
      ExpressionOf(graph_, initial, values_, first);
  if (!first->empty()) return false;
  const std::string what =
      absl::StrCat("evaluating the initial value of variable '",
                   graph_.node(variable).name(), "'");
  if (!source_.evaluate) {
    return absl::UnimplementedError(
        absl::StrCat(what, ": there is no runtime for it here"));
  }
  absl::StatusOr<TensorProto> value =
      source_.evaluate(std::move(expression), graph_.NameOf(initial));
  if (!value.ok()) return Annotate(value.status(), what);
  values_[variable] = *std::move(value);
  return true;
}

absl::Status ValueFinder::Settle(NodeId variable) {
  std::vector<NodeId> stack = {variable};
  absl::flat_hash_set<NodeId> waiting;
  while (!stack.empty()) {
    const NodeId id = stack.back();
    if (values_.contains(id)) {
      stack.pop_back();
      continue;
    }
    const std::string what =
        absl::StrCat("variable '", graph_.node(id).name(), "'");
    if (initial_values_.contains(id)) {
      std::vector<NodeId> first;
      OPTFARM_ASSIGN_OR_RETURN(const bool done, Initialize(id, &first));
      if (done) {
        OPTFARM_RETURN_IF_ERROR(Annotate(CheckFits(id, values_.at(id)), what));
        continue;
      }
      if (!waiting.insert(id).second) {
        return absl::InvalidArgumentError(
            absl::StrCat(what, ": its initial value depends on itself"));
      }
      stack.insert(stack.end(), first.begin(), first.end());
      continue;
    }
    absl::StatusOr<std::optional<TensorProto>> value =
        std::optional<TensorProto>();
    if (source_.checkpoint != nullptr) value = Restore(id);
    if (!value.ok()) return Annotate(value.status(), what);
    if (!value->has_value()) {
      missing_.push_back(id);
      return absl::OkStatus();
    }
    OPTFARM_RETURN_IF_ERROR(Annotate(CheckFits(id, **value), what));
    values_[id] = std::move(**value);
  }
  return absl::OkStatus();
}

absl::Status ValueFinder::Missing(const std::vector<NodeId>& variables) const {
  std::vector<std::string> names, stored;
  for (const NodeId id : variables) names.push_back(graph_.node(id).name());
  const size_t count = names.size();
  names.resize(std::min(count, kMostNamed));
  const std::string list = absl::StrCat(
      count == 1 ? "variable '" : absl::StrCat(count, " variables: '"),
      absl::StrJoin(names, "', '"), count > kMostNamed ? "', ..." : "'");
  if (source_.checkpoint == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("there is no value for ", list,
                     ": the model comes without a checkpoint; give one, or the "
                     "initializer nodes"));
  }
  for (const SavedTensor& tensor : source_.checkpoint->tensors()) {
    stored.push_back(tensor.name);
  }
  return absl::NotFoundError(absl::StrCat(
      "checkpoint '", source_.checkpoint->name(), "' with ", stored.size(),
      " tensors has no value for ", list, NearestNamesHint(names[0], stored),
      ". Is it of another model? A variable that is never saved "
      "needs its initializer node"));
}

absl::StatusOr<VariableValues> ValueFinder::Find(
    absl::Span<const NodeId> variables) {
  OPTFARM_RETURN_IF_ERROR(FindRestores());
  OPTFARM_RETURN_IF_ERROR(FindInitializers());
  for (const NodeId id : variables) OPTFARM_RETURN_IF_ERROR(Settle(id));
  if (!missing_.empty()) return Missing(missing_);
  return std::move(values_);
}

}  // namespace

bool IsVariable(const Node& node) { return graph::IsVariable(node.op()); }

NodeId VariableBehind(const Graph& graph, Endpoint end) {
  const NodeId id = Behind(graph, end).node;
  return IsVariable(graph.node(id)) ? id : graph::kNoNode;
}

absl::StatusOr<VariableValues> FindVariableValues(
    const Graph& graph, absl::Span<const NodeId> variables,
    const VariableSource& source) {
  return ValueFinder(graph, source).Find(variables);
}

}  // namespace optfarm::formats
