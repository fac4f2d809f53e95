#include "engine/transforms/nodes/batch_size.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/dataflow_order.h"
#include "engine/graph/op_defs.h"
#include "engine/graph/ops/op_table.h"
#include "engine/transforms/nodes/constant_nodes.h"

namespace optfarm::transforms {
namespace {

using graph::Endpoint;
using graph::Graph;
using graph::kUnknownDim;
using graph::NodeId;
using graph::PartialShape;
using runtime::Tensor;

// Shapes are inferred anew after each change.
constexpr int kMostChanges = 1000;
constexpr size_t kMostShown = 8;
// States lie a few ops behind where they do not fit.
constexpr int kMostSteps = 32;

bool IsOneOf(const std::string& op,
             std::initializer_list<absl::string_view> ops) {
  return std::find(ops.begin(), ops.end(), op) != ops.end();
}

// Which input of the op is a shape whose first number may be the batch.
int ShapeInput(const std::string& op) {
  if (graph::IsReshape(op)) return 1;
  if (IsOneOf(op, {"Fill", "RandomUniform", "RandomStandardNormal",
                   "TruncatedNormal"})) {
    return 0;
  }
  return -1;
}

// What says something of a tensor and not of its items.
bool AsksForShape(const std::string& op) {
  return IsOneOf(op, {"Shape", "ShapeN", "Size", "Rank"});
}

}  // namespace

std::optional<int64_t> BatchChange::Scaled(int64_t size) const {
  if (to == kUnknownDim) return kUnknownDim;
  int64_t product = 0;
  if (from <= 0 || size % from != 0 ||
      __builtin_mul_overflow(size / from, to, &product)) {
    return std::nullopt;
  }
  return product;
}

BatchSizeEditor::Difference BatchSizeEditor::DifferenceOf(
    Endpoint tensor) const {
  using Kind = Difference::Kind;
  const PartialShape& old_shape = before_.Of(tensor);
  const PartialShape& new_shape = after_.Of(tensor);
  if (!old_shape.has_rank() || !new_shape.has_rank()) return {Kind::kUnknown};
  if (old_shape.rank() != new_shape.rank()) return {Kind::kBroken};
  Difference difference{Kind::kNone};
  bool is_open = false;
  for (int axis = 0; axis < old_shape.rank(); ++axis) {
    const int64_t was = old_shape.dim(axis), is = new_shape.dim(axis);
    is_open = is_open || is == kUnknownDim;
    if (was == is) continue;
    // Where nothing was known before, more may be known now.
    const bool is_known_change = was != kUnknownDim;
    if (is_known_change && ((is != kUnknownDim && is != change_.Scaled(was)) ||
                            difference.is_sure)) {
      return {Kind::kBroken};
    }
    if (difference.kind == Kind::kNone || is_known_change) {
      difference = {Kind::kBatch, axis, is_known_change};
    }
  }
  if (difference.kind == Kind::kNone && is_open) return {Kind::kUnknown};
  return difference;
}

bool BatchSizeEditor::IsCarrying(Endpoint tensor) const {
  return DifferenceOf(tensor).kind == Difference::Kind::kBatch;
}

absl::Status BatchSizeEditor::Run() {
  for (int changes = 0; changes < kMostChanges; ++changes) {
    OPTFARM_ASSIGN_OR_RETURN(after_, graph::InferShapes(*graph_));
    OPTFARM_ASSIGN_OR_RETURN(bool changed, ChangeOneReshape());
    if (!changed) {
      OPTFARM_ASSIGN_OR_RETURN(changed, ChangeOneSource());
    }
    if (!changed) return Check();
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      "the batch size stands in more than ", kMostChanges, " places"));
}

absl::StatusOr<bool> BatchSizeEditor::ChangeOneReshape() {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<NodeId> order,
                           graph::DataflowOrder(*graph_));
  for (NodeId id : order) {
    const graph::Node& node = graph_->node(id);
    if (!graph::IsReshape(node.op()) || node.inputs().size() != 2 ||
        done_.contains(id)) {
      continue;
    }
    const Difference data = DifferenceOf(node.inputs()[0]);
    // Rows of the items follow one another only when the batch comes first.
    if (data.kind != Difference::Kind::kBatch || data.axis != 0) continue;
    done_.insert(id);
    OPTFARM_ASSIGN_OR_RETURN(const bool changed, ScaleShapeInput(id, 1));
    if (changed) return true;
  }
  return false;
}

absl::StatusOr<bool> BatchSizeEditor::ScaleShapeInput(NodeId consumer,
                                                      int input) {
  const Endpoint shape =
      graph_->node(consumer).inputs()[static_cast<size_t>(input)];
  const graph::Node& source = graph_->node(shape.node);
  if (IsConst(source)) return ScaleConst(consumer, input);
  // Put together from numbers: the first of them.
  const graph::OpRow& row = graph::RowOf(source.op());
  const bool is_concat =
      row.role == graph::OpRole::kConcat && !row.has_axis_first;
  if ((!is_concat && source.op() != "Pack") || source.inputs().empty() ||
      done_.contains(shape.node) ||
      !IsConst(graph_->node(source.inputs()[0].node))) {
    return false;
  }
  done_.insert(shape.node);
  return ScaleConst(shape.node, 0);
}

absl::StatusOr<bool> BatchSizeEditor::ScaleConst(NodeId consumer, int input) {
  const Endpoint source =
      graph_->node(consumer).inputs()[static_cast<size_t>(input)];
  const graph::Node& constant = graph_->node(source.node);
  OPTFARM_ASSIGN_OR_RETURN(const Tensor value, ConstValue(constant));
  absl::StatusOr<std::vector<int64_t>> numbers = value.AsInt64s();
  if (!numbers.ok() || numbers->empty() || (*numbers)[0] <= 0) return false;
  const std::optional<int64_t> scaled = change_.Scaled((*numbers)[0]);
  // Only one dimension may be left open; the other is known from before.
  const PartialShape& result = before_.Of({consumer, 0});
  for (size_t i = 1; scaled == kUnknownDim && i < numbers->size(); ++i) {
    if ((*numbers)[i] != -1 || !result.has_rank() ||
        result.rank() != static_cast<int>(numbers->size())) {
      continue;
    }
    (*numbers)[i] = result.dim(static_cast<int>(i));
  }
  const bool has_open = std::count(numbers->begin(), numbers->end(), -1) > 0;
  if (!scaled.has_value() || (has_open && *scaled == kUnknownDim)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "node '", graph_->node(consumer).name(), "' (",
        graph_->node(consumer).op(), ") takes the shape [",
        absl::StrJoin(*numbers, ","), "] from '", constant.name(),
        "', whose first number cannot become that of another batch size"));
  }
  (*numbers)[0] = *scaled;
  const bool is_wide = value.dtype() == tensorflow::DT_INT64;
  const Tensor changed =
      is_wide ? Tensor::FromValues<int64_t>(value.shape(), *numbers)
              : Tensor::FromValues<int32_t>(
                    value.shape(),
                    std::vector<int32_t>(numbers->begin(), numbers->end()));
  // Others may read the same constant for something else.
  tensorflow::NodeDef def = MakeReadableConst(
      absl::StrCat(graph_->node(consumer).name(), "/batch_shape"), changed);
  def.set_device(constant.device());
  const std::vector<NodeId> controls(constant.control_inputs().begin(),
                                     constant.control_inputs().end());
  const NodeId added = graph_->Add(std::move(def), {}, controls, source.node);
  graph_->SetInput(consumer, input, {added, 0});
  if (graph_->node(source.node).uses().empty()) graph_->Remove(source.node);
  ++changed_nodes_;
  return true;
}

absl::StatusOr<bool> BatchSizeEditor::ChangeOneSource() {
  absl::flat_hash_set<NodeId> wrong_before;
  for (const graph::ShapeProblem& problem : before_.problems()) {
    wrong_before.insert(problem.node);
  }
  for (const graph::ShapeProblem& problem : after_.problems()) {
    if (wrong_before.contains(problem.node)) continue;
    const std::vector<Endpoint> inputs(
        graph_->node(problem.node).inputs().begin(),
        graph_->node(problem.node).inputs().end());
    for (const Endpoint& input : inputs) {
      if (IsCarrying(input)) continue;
      OPTFARM_ASSIGN_OR_RETURN(const bool changed, ChangeSourceOf(input));
      if (changed) return true;
    }
  }
  return false;
}

absl::StatusOr<bool> BatchSizeEditor::ChangeSourceOf(Endpoint tensor) {
  for (int steps = 0; steps < kMostSteps; ++steps) {
    const graph::Node& node = graph_->node(tensor.node);
    const int shape_input = ShapeInput(node.op());
    if (shape_input == 0 && !node.inputs().empty() &&
        done_.insert(tensor.node).second) {
      return ScaleShapeInput(tensor.node, shape_input);
    }
    if (IsConst(node)) return RepeatRows(tensor.node);
    if (!IsOneOf(node.op(), {"Identity", "Enter", "Merge", "Switch", "Tanh",
                             "Sigmoid", "Relu", "Mul", "Add"}) ||
        node.inputs().empty()) {
      return false;
    }
    tensor = node.inputs()[0];
  }
  return false;
}

absl::StatusOr<bool> BatchSizeEditor::RepeatRows(NodeId constant) {
  OPTFARM_ASSIGN_OR_RETURN(const Tensor value,
                           ConstValue(graph_->node(constant)));
  if (value.rank() < 2 || value.dim(0) != change_.from ||
      value.dtype() == tensorflow::DT_STRING || change_.to <= 0 ||
      done_.contains(constant)) {
    return false;
  }
  done_.insert(constant);
  const auto bytes = static_cast<size_t>(value.TotalBytes() / value.dim(0));
  const auto* rows = static_cast<const char*>(value.raw());
  for (int64_t row = 1; row < value.dim(0); ++row) {
    if (!std::equal(rows, rows + bytes,
                    rows + static_cast<size_t>(row) * bytes)) {
      return false;
    }
  }
  std::vector<int64_t> dims(value.shape().dims().begin(),
                            value.shape().dims().end());
  dims[0] = change_.to;
  OPTFARM_ASSIGN_OR_RETURN(const runtime::Shape shape,
                           runtime::Shape::FromDims(dims));
  OPTFARM_ASSIGN_OR_RETURN(Tensor repeated,
                           Tensor::Allocate(value.dtype(), shape));
  auto* to = static_cast<char*>(repeated.raw());
  for (int64_t row = 0; row < change_.to; ++row) {
    std::copy(rows, rows + bytes, to + static_cast<size_t>(row) * bytes);
  }
  SetConstValue(graph_->mutable_node(constant), repeated);
  ++changed_nodes_;
  return true;
}

// Why the node does not compute item by item; "" when it does, or when that is
// not known.
std::string BatchSizeEditor::WhyNotByItem(NodeId id) {
  using Kind = Difference::Kind;
  const graph::Node& node = graph_->node(id);
  std::vector<Endpoint> carrying;
  for (const Endpoint& e : node.inputs()) {
    if (IsCarrying(e)) carrying.push_back(e);
  }
  if (carrying.empty() || AsksForShape(node.op())) return "";
  if (absl::StartsWith(node.op(), "FusedBatchNorm") &&
      graph::GetBoolOr(node.def(), "is_training", true).value_or(true)) {
    return "it normalizes by the statistics of all items together";
  }
  // Where items are put is told by an index for each of them.
  if (absl::StartsWith(node.op(), "TensorArray")) {
    return carrying.size() > 1 ? ""
                               : "it takes the batch apart into as many items "
                                 "as there were";
  }
  std::vector<int> ports;
  for (const graph::Use& use : node.uses()) {
    if (!use.is_control()) ports.push_back(use.port);
  }
  std::sort(ports.begin(), ports.end());
  ports.erase(std::unique(ports.begin(), ports.end()), ports.end());
  if (ports.empty()) ports.push_back(0);
  for (int port : ports) {
    const Endpoint output{id, port};
    const Difference difference = DifferenceOf(output);
    if (difference.kind == Kind::kUnknown) uncertain_.push_back(output);
    if (difference.kind == Kind::kNone) {
      return absl::StrCat("its result has the shape ",
                          after_.Of(output).ToString(),
                          " whatever the batch size is");
    }
    if (difference.kind == Kind::kBroken) {
      return absl::StrCat("its result has the shape ",
                          after_.Of(output).ToString(), " and had ",
                          before_.Of(output).ToString());
    }
  }
  return "";
}

absl::Status BatchSizeEditor::Check() {
  absl::flat_hash_set<NodeId> wrong_before;
  for (const graph::ShapeProblem& problem : before_.problems()) {
    wrong_before.insert(problem.node);
  }
  std::vector<std::string> reasons;
  for (const graph::ShapeProblem& problem : after_.problems()) {
    if (!wrong_before.contains(problem.node)) reasons.push_back(problem.text);
  }
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<NodeId> order,
                           graph::DataflowOrder(*graph_));
  for (NodeId id : order) {
    const graph::Node& node = graph_->node(id);
    const std::string reason = WhyNotByItem(id);
    if (reason.empty() || graph::FindOpDef(node.op()) == nullptr) continue;
    reasons.push_back(
        absl::StrCat("node '", node.name(), "' (", node.op(), "): ", reason));
  }
  if (reasons.empty()) return absl::OkStatus();
  const size_t count = reasons.size();
  if (count > kMostShown) {
    reasons.resize(kMostShown);
    reasons.push_back(absl::StrCat("and ", count - kMostShown, " more"));
  }
  return absl::FailedPreconditionError(absl::StrJoin(reasons, "; "));
}

}  // namespace optfarm::transforms
