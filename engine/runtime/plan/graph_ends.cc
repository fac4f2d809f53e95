#include "engine/runtime/plan/graph_ends.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/op_defs.h"
#include "engine/graph/ops/op_table.h"
#include "engine/runtime/plan/execution_plan.h"

namespace optfarm::runtime {

using graph::Endpoint;
using graph::Graph;
using graph::Node;
using graph::NodeId;

absl::Status NoKernelFor(const Node& node) {
  std::vector<std::string> types;
  for (const auto& [name, value] : node.def().attr()) {
    if (value.value_case() != tensorflow::AttrValue::kType) continue;
    types.push_back(absl::StrCat(name, "=", graph::DataTypeName(value.type())));
  }
  std::sort(types.begin(), types.end());
  return absl::UnimplementedError(absl::StrCat(
      DescribeNode(node.name(), node.op()), ": the runtime has no kernel for ",
      node.op(), types.empty() ? "" : " with ", absl::StrJoin(types, ", "),
      "; feed its output, end the graph before it, or remove it ('optctl graph "
      "compat' lists all such ops, and the transforms that remove them)"));
}

absl::StatusOr<int> OutputCountOf(const Node& node) {
  const tensorflow::OpDef* def = graph::FindOpDef(node.op());
  if (def == nullptr) return NoKernelFor(node);
  absl::StatusOr<int> count = graph::OutputCount(*def, node.def());
  if (!count.ok())
    return Annotate(count.status(), DescribeNode(node.name(), node.op()));
  return count;
}

DataType TypeOf(const Graph& source, Endpoint e) {
  const Node& node = source.node(e.node);
  const tensorflow::OpDef* def = graph::FindOpDef(node.op());
  if (def == nullptr) return tensorflow::DT_INVALID;
  const auto types = graph::OutputTypes(*def, node.def());
  if (!types.ok() || e.port >= static_cast<int>(types->size())) {
    return tensorflow::DT_INVALID;
  }
  return (*types)[e.port];
}

namespace {

absl::StatusOr<Endpoint> ResolveTensor(const Graph& source,
                                       const graph::TensorName& name,
                                       absl::string_view role) {
  absl::StatusOr<Endpoint> end = source.Resolve(name);
  if (!end.ok()) {
    return Annotate(end.status(),
                    absl::StrCat(role, " '", graph::ToString(name), "'"));
  }
  const Node& node = source.node(end->node);
  absl::StatusOr<int> count = OutputCountOf(node);
  if (!count.ok() && absl::IsUnimplemented(count.status())) {
    // A fed tensor of an unknown op is fine: the op will not run.
    return *end;
  }
  if (!count.ok()) return count.status();
  if (end->port >= *count) {
    return absl::InvalidArgumentError(
        absl::StrCat(role, " '", graph::ToString(name),
                     "': ", DescribeNode(node.name(), node.op()), " has ",
                     *count, " output(s), numbered from 0"));
  }
  return *end;
}

absl::Status FindFeeds(const Graph& source,
                       absl::Span<const graph::TensorName> names,
                       GraphEnds* ends) {
  for (const graph::TensorName& name : names) {
    if (name.is_control()) {
      return absl::InvalidArgumentError(
          absl::StrCat("input '", graph::ToString(name),
                       "' is a control edge, not a tensor"));
    }
    OPTFARM_ASSIGN_OR_RETURN(const Endpoint end,
                             ResolveTensor(source, name, "input"));
    if (!ends->fed.insert(end).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          "input '", graph::ToString(name), "' is given more than once"));
    }
    ends->feeds.push_back(end);
    ends->feed_types.push_back(graph::BaseType(TypeOf(source, end)));
  }
  return absl::OkStatus();
}

absl::Status FindFetches(const Graph& source,
                         absl::Span<const graph::TensorName> names,
                         GraphEnds* ends) {
  for (const graph::TensorName& name : names) {
    if (name.is_control()) {
      absl::StatusOr<NodeId> id = source.Get(name.node);
      if (!id.ok()) return Annotate(id.status(), "operation to run");
      ends->fetches.push_back({*id, graph::kControlPort});
      continue;
    }
    OPTFARM_ASSIGN_OR_RETURN(const Endpoint end,
                             ResolveTensor(source, name, "output"));
    ends->fetches.push_back(end);
  }
  return absl::OkStatus();
}

void MarkNeeded(const Graph& source, GraphEnds* ends) {
  ends->needed.assign(source.id_limit(), false);
  std::vector<NodeId> stack;
  const auto want = [&](Endpoint e) {
    if (!ends->fed.contains(e)) stack.push_back(e.node);
  };
  for (const Endpoint& e : ends->fetches) want(e);
  while (!stack.empty()) {
    const NodeId id = stack.back();
    stack.pop_back();
    if (ends->needed[id]) continue;
    ends->needed[id] = true;
    for (const Endpoint& e : source.node(id).inputs()) want(e);
    for (NodeId c : source.node(id).control_inputs()) {
      // Waiting for a placeholder is waiting for what is fed.
      if (!graph::IsPlaceholder(source.node(c).op()) ||
          !ends->fed.contains({c, 0})) {
        stack.push_back(c);
      }
    }
  }
}

}  // namespace

absl::StatusOr<GraphEnds> FindEnds(
    const Graph& source, absl::Span<const graph::TensorName> feeds,
    absl::Span<const graph::TensorName> fetches) {
  GraphEnds ends;
  OPTFARM_RETURN_IF_ERROR(FindFeeds(source, feeds, &ends));
  OPTFARM_RETURN_IF_ERROR(FindFetches(source, fetches, &ends));
  MarkNeeded(source, &ends);
  return ends;
}

}  // namespace optfarm::runtime
