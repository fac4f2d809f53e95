#include "engine/transforms/layout/operand_editor.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/op_defs.h"
#include "engine/graph/ops/op_table.h"
#include "engine/runtime/core/thread_pool.h"
#include "engine/runtime/reference/arrays/transpose.h"
#include "engine/transforms/nodes/constant_nodes.h"

namespace optfarm::transforms {
namespace {

using graph::Endpoint;
using graph::NodeId;
using runtime::Tensor;

// As int32 or int64. nullopt for other dtypes, and for numbers too large.
std::optional<Tensor> MakeNumbers(const std::vector<int64_t>& numbers,
                                  bool is_scalar, tensorflow::DataType dtype) {
  const runtime::Shape shape =
      is_scalar ? runtime::Shape()
                : runtime::Shape({static_cast<int64_t>(numbers.size())});
  if (dtype == tensorflow::DT_INT64) {
    return Tensor::FromValues<int64_t>(shape, numbers);
  }
  if (dtype != tensorflow::DT_INT32) return std::nullopt;
  std::vector<int32_t> narrow;
  for (int64_t number : numbers) {
    if (number > std::numeric_limits<int32_t>::max() ||
        number < std::numeric_limits<int32_t>::min()) {
      return std::nullopt;
    }
    narrow.push_back(static_cast<int32_t>(number));
  }
  return Tensor::FromValues<int32_t>(shape, narrow);
}

Tensor IndexList(absl::Span<const int64_t> numbers) {
  std::vector<int32_t> narrow(numbers.begin(), numbers.end());
  return Tensor::FromValues<int32_t>({static_cast<int64_t>(narrow.size())},
                                     narrow);
}

// Whether Reshape can be told all sizes: one may be unknown, and then the
// others have to say something.
bool MayBeReshaped(const graph::PartialShape& shape) {
  if (!shape.has_rank()) return false;
  const absl::Span<const int64_t> dims = shape.dims();
  const auto unknown = std::count(dims.begin(), dims.end(), graph::kUnknownDim);
  return unknown <= 1 && std::count(dims.begin(), dims.end(), 0) == 0;
}

tensorflow::NodeDef EmptyNode(absl::string_view name, const char* op) {
  tensorflow::NodeDef def;
  def.set_name(std::string(name));
  def.set_op(op);
  return def;
}

}  // namespace

NodeId OperandEditor::AddConstant(absl::string_view name, const Tensor& value,
                                  NodeId before) {
  return graph_->Add(MakeConst(name, value), {}, {}, before);
}

void OperandEditor::SetConstant(NodeId node, int input, absl::string_view what,
                                const Tensor& value) {
  const std::string name = absl::StrCat(graph_->node(node).name(), "/", what);
  graph_->SetInput(node, input, {AddConstant(name, value, node), 0});
}

absl::StatusOr<tensorflow::DataType> OperandEditor::TypeOf(
    Endpoint tensor) const {
  const graph::Node& node = graph_->node(tensor.node);
  const tensorflow::OpDef* op = graph::FindOpDef(node.op());
  if (op == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("node '", node.name(), "': the types of op ", node.op(),
                     " are not known"));
  }
  OPTFARM_ASSIGN_OR_RETURN(const auto types,
                           graph::OutputTypes(*op, node.def()));
  if (tensor.port < 0 || tensor.port >= static_cast<int>(types.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("node '", node.name(), "' has no output ", tensor.port));
  }
  return graph::BaseType(types[tensor.port]);
}

absl::Status OperandEditor::SetNumbers(NodeId node, int input,
                                       absl::string_view what,
                                       const std::vector<int64_t>& numbers,
                                       bool is_scalar) {
  OPTFARM_ASSIGN_OR_RETURN(const tensorflow::DataType dtype,
                           TypeOf(graph_->node(node).inputs()[input]));
  const auto value = MakeNumbers(numbers, is_scalar, dtype);
  if (!value.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "node '", graph_->node(node).name(), "': input ", input, " is ",
        graph::DataTypeName(dtype), ", not int32 or int64"));
  }
  SetConstant(node, input, what, *value);
  return absl::OkStatus();
}

absl::StatusOr<Endpoint> OperandEditor::Reordered(Endpoint tensor,
                                                  const Permutation& order) {
  OPTFARM_ASSIGN_OR_RETURN(const tensorflow::DataType dtype, TypeOf(tensor));
  const std::string name =
      absl::StrCat(graph_->node(tensor.node).name(), "/reordered");
  tensorflow::NodeDef gather = EmptyNode(name, "GatherV2");
  graph::SetType(&gather, "Tparams", dtype);
  graph::SetType(&gather, "Tindices", tensorflow::DT_INT32);
  graph::SetType(&gather, "Taxis", tensorflow::DT_INT32);
  const NodeId axis =
      AddConstant(absl::StrCat(name, "/axis"), Tensor::Scalar<int32_t>(0));
  return Endpoint{
      graph_->Add(std::move(gather), {tensor, OrderOf(order), {axis, 0}}), 0};
}

absl::Status OperandEditor::ReorderRows(NodeId node, int input,
                                        absl::string_view what,
                                        const Permutation& order) {
  const Endpoint source = graph_->node(node).inputs()[input];
  const graph::Node& from = graph_->node(source.node);
  if (!graph::IsConst(from.op())) {
    OPTFARM_ASSIGN_OR_RETURN(const Endpoint reordered,
                             Reordered(source, order));
    graph_->SetInput(node, input, reordered);
    return absl::OkStatus();
  }
  OPTFARM_ASSIGN_OR_RETURN(const Tensor value, ConstValue(from));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> numbers,
                           value.AsInt64s());
  if (value.rank() < 1 || value.dim(0) != static_cast<int64_t>(order.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("node '", graph_->node(node).name(), "': input ", input,
                     " has shape ", value.shape().ToString(), ", not a row for",
                     " each of ", order.size(), " axes"));
  }
  const size_t row = order.empty() ? 0 : numbers.size() / order.size();
  std::vector<int64_t> moved;
  for (int axis : order) {
    moved.insert(moved.end(), numbers.begin() + axis * row,
                 numbers.begin() + (axis + 1) * row);
  }
  const auto made = MakeNumbers(moved, false, value.dtype());
  if (!made.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "node '", graph_->node(node).name(), "': input ", input, " is ",
        graph::DataTypeName(value.dtype()), ", not int32 or int64"));
  }
  SetConstant(node, input, what, made->Reshaped(value.shape()));
  return absl::OkStatus();
}

Endpoint OperandEditor::OrderOf(const Permutation& order) {
  const auto [it, is_new] = orders_.emplace(order, graph::kNoNode);
  if (is_new) {
    const std::vector<int64_t> axes(order.begin(), order.end());
    std::string name = "order";
    for (int axis : order) absl::StrAppend(&name, "_", axis);
    it->second = AddConstant(name, IndexList(axes));
  }
  return {it->second, 0};
}

void OperandEditor::NoteTranspose(Endpoint source, const Permutation& order,
                                  NodeId node) {
  transposed_.emplace(std::pair(source.node, std::pair(source.port, order)),
                      Endpoint{node, 0});
}

Endpoint OperandEditor::Reshaped(Endpoint source,
                                 const std::vector<int64_t>& dims,
                                 tensorflow::DataType dtype) {
  const std::string name =
      absl::StrCat(graph_->node(source.node).name(), "/reshaped");
  tensorflow::NodeDef reshape = EmptyNode(name, "Reshape");
  graph::SetType(&reshape, "T", dtype);
  const bool is_large = std::any_of(dims.begin(), dims.end(), [](int64_t dim) {
    return dim > std::numeric_limits<int32_t>::max();
  });
  const tensorflow::DataType type =
      is_large ? tensorflow::DT_INT64 : tensorflow::DT_INT32;
  graph::SetType(&reshape, "Tshape", type);
  const NodeId shape = AddConstant(absl::StrCat(name, "/shape"),
                                   *MakeNumbers(dims, false, type));
  return {graph_->Add(std::move(reshape), {source, {shape, 0}}), 0};
}

absl::StatusOr<Endpoint> OperandEditor::Transposed(
    Endpoint source, const graph::PartialShape& shape,
    const Permutation& order) {
  if (IsIdentity(order)) return source;
  const auto [it, is_new] = transposed_.emplace(
      std::pair(source.node, std::pair(source.port, order)), source);
  if (!is_new) return it->second;
  const graph::Node& from = graph_->node(source.node);
  if (graph::IsConst(from.op())) {
    OPTFARM_ASSIGN_OR_RETURN(const Tensor value, ConstValue(from));
    if (value.rank() != static_cast<int>(order.size())) {
      return absl::InvalidArgumentError(absl::StrCat(
          "constant '", from.name(), "' of shape ", value.shape().ToString(),
          " is transposed as a tensor of rank ", order.size()));
    }
    runtime::ThreadPool pool(1);
    OPTFARM_ASSIGN_OR_RETURN(const Tensor turned,
                             runtime::Transposed(value, order, &pool));
    it->second = {AddConstant(absl::StrCat(from.name(), "/transposed"), turned,
                              source.node),
                  0};
    return it->second;
  }
  OPTFARM_ASSIGN_OR_RETURN(const tensorflow::DataType dtype, TypeOf(source));
  if (reshapes_ && MayBeReshaped(shape) && KeepsElements(shape, order)) {
    const graph::PartialShape turned = Permuted(shape, order);
    // A Reshape of a Reshape is one.
    const bool is_again = graph::IsReshape(graph_->node(source.node).op());
    if (is_again) source = graph_->node(source.node).inputs()[0];
    it->second =
        Reshaped(source, {turned.dims().begin(), turned.dims().end()}, dtype);
    return it->second;
  }
  tensorflow::NodeDef transpose =
      EmptyNode(absl::StrCat(from.name(), "/transposed"), "Transpose");
  graph::SetType(&transpose, "T", dtype);
  graph::SetType(&transpose, "Tperm", tensorflow::DT_INT32);
  it->second = {graph_->Add(std::move(transpose), {source, OrderOf(order)}), 0};
  return it->second;
}

}  // namespace optfarm::transforms
