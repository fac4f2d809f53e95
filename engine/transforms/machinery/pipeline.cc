#include "engine/transforms/machinery/pipeline.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/ops/op_table.h"
#include "engine/graph/verify.h"
#include "engine/transforms/machinery/catalog.h"

namespace optfarm::transforms {
namespace {

using graph::Graph;
using graph::NodeId;
using graph::TensorName;

int64_t ConstantBytes(const Graph& graph) {
  int64_t bytes = 0;
  for (NodeId id : graph.Ids()) {
    const graph::Node& node = graph.node(id);
    const tensorflow::AttrValue* value =
        graph::IsConst(node.op()) ? node.FindAttr("value") : nullptr;
    if (value != nullptr) {
      bytes += static_cast<int64_t>(value->tensor().ByteSizeLong());
    }
  }
  return bytes;
}

absl::Status CheckNames(const Graph& graph, absl::Span<const TensorName> names,
                        absl::string_view role) {
  for (const TensorName& name : names) {
    if (absl::Status found = graph.Get(name.node).status(); !found.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the ", role, " '", ToString(name),
                       "' is not in the graph: ", found.message()));
    }
  }
  return absl::OkStatus();
}

// One run's unchanging surroundings.
struct Run {
  absl::Span<const TensorName> inputs;
  absl::Span<const TensorName> outputs;
  const PipelineOptions& options;
  // Whether the graph made sense before the step: only then can a step be
  // blamed for one that does not.
  bool was_valid = false;
  TransformContext::Counters counters = {};
};

absl::Status CheckResult(const Graph& graph, const Run& run) {
  for (const auto& [names, role] :
       {std::pair(run.inputs, "input"), std::pair(run.outputs, "output")}) {
    if (absl::Status kept = CheckNames(graph, names, role); !kept.ok()) {
      return absl::InternalError(absl::StrCat(
          "the transform removed what it had to keep: ", kept.message()));
    }
  }
  if (!run.options.verify || !run.was_valid) return absl::OkStatus();
  if (absl::Status valid = graph::Verify(graph); !valid.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the graph does not make sense any more; do the "
                     "parameters fit the model? ",
                     valid.message()));
  }
  return absl::OkStatus();
}

absl::Status Apply(const TransformDef& def, const TransformArguments& arguments,
                   Run* run, Graph* graph, TransformReport* report) {
  TransformContext context(
      arguments, run->inputs, run->outputs, run->options.base_folder,
      run->options.checkpoint_reader, &run->counters, report);
  return def.run(graph, &context);
}

// Each node's op, by number; a number names the same node before and after.
std::vector<std::string> OpsByNumber(const Graph& graph) {
  std::vector<std::string> ops(graph.id_limit());
  for (NodeId id : graph.Ids()) ops[id] = graph.node(id).op();
  return ops;
}

std::vector<OpChange> CountOpChanges(std::vector<std::string> before,
                                     std::vector<std::string> after) {
  const size_t numbers = std::max(before.size(), after.size());
  before.resize(numbers);
  after.resize(numbers);
  std::map<std::pair<std::string, std::string>, int64_t> counts;
  for (size_t i = 0; i < numbers; ++i) {
    if (before[i] != after[i]) ++counts[{before[i], after[i]}];
  }
  std::vector<OpChange> changes;
  for (const auto& [ops, nodes] : counts) {
    changes.push_back({ops.first, ops.second, nodes});
  }
  return changes;
}

absl::StatusOr<TransformStats> RunStep(const TransformStep& step, Run* run,
                                       Graph* graph) {
  OPTFARM_ASSIGN_OR_RETURN(const TransformDef* def, FindTransform(step.name));
  OPTFARM_ASSIGN_OR_RETURN(
      TransformArguments arguments,
      TransformArguments::Parse(def->parameters, step.parameters));
  TransformStats stats;
  stats.step = PrintTransforms({step});
  stats.nodes_before = graph->node_count();
  stats.constant_bytes_before = ConstantBytes(*graph);
  std::vector<std::string> ops = OpsByNumber(*graph);
  const absl::Time start = run->options.clock->Now();
  const bool ignores_errors = arguments.Bool("ignore_errors");
  // A copy costs the model's bytes, so it is made only where it can be needed.
  std::optional<Graph> before;
  if (ignores_errors && !def->is_all_or_nothing) before = graph->Clone();
  const TransformContext::Counters counters = run->counters;
  absl::Status applied = Apply(*def, arguments, run, graph, &stats.report);
  const bool is_unchanged = !applied.ok() && def->is_all_or_nothing;
  if (applied.ok()) applied = CheckResult(*graph, *run);
  if (!applied.ok()) {
    applied = Annotate(applied, absl::StrCat("transform '", step.name, "'"));
    if (!ignores_errors || (!is_unchanged && !before.has_value())) {
      return applied;
    }
    if (before.has_value()) *graph = *std::move(before);
    run->counters = counters;
    stats.report = {};
    stats.ignored_error = applied;
  }
  stats.duration = run->options.clock->Now() - start;
  stats.op_changes = CountOpChanges(std::move(ops), OpsByNumber(*graph));
  stats.nodes_after = graph->node_count();
  stats.constant_bytes_after = ConstantBytes(*graph);
  return stats;
}

}  // namespace

absl::StatusOr<PipelineReport> RunTransforms(
    Graph* graph, absl::Span<const TransformStep> steps,
    absl::Span<const TensorName> inputs, absl::Span<const TensorName> outputs,
    const PipelineOptions& options) {
  OPTFARM_RETURN_IF_ERROR(CheckTransforms(steps));
  OPTFARM_RETURN_IF_ERROR(CheckNames(*graph, inputs, "input"));
  OPTFARM_RETURN_IF_ERROR(CheckNames(*graph, outputs, "output"));
  Run run{inputs, outputs, options};
  run.was_valid = options.verify && graph::Verify(*graph).ok();
  PipelineReport report;
  for (const TransformStep& step : steps) {
    if (options.before_step) {
      OPTFARM_RETURN_IF_ERROR(options.before_step(step.name));
    }
    OPTFARM_ASSIGN_OR_RETURN(TransformStats stats, RunStep(step, &run, graph));
    report.steps.push_back(std::move(stats));
    if (options.verify && !run.was_valid) {
      run.was_valid = graph::Verify(*graph).ok();
    }
  }
  return report;
}

std::vector<RenamedNode> MakeNameMap(absl::Span<const TransformStats> steps,
                                     const Graph& graph) {
  bool is_needed = false;
  std::map<std::string, std::string> first_names;
  for (const TransformStats& step : steps) {
    is_needed = is_needed || step.report.has_hidden_names;
    // A step may give one node's old name to another.
    std::map<std::string, std::string> of_step;
    for (const RenamedNode& renamed : step.report.renamed) {
      const auto earlier = first_names.find(renamed.before);
      of_step[renamed.after] =
          earlier == first_names.end() ? renamed.before : earlier->second;
    }
    for (const RenamedNode& renamed : step.report.renamed) {
      first_names.erase(renamed.before);
    }
    first_names.merge(of_step);
  }
  std::vector<RenamedNode> map;
  if (!is_needed) return map;
  for (NodeId id : graph.Ids()) {
    const auto found = first_names.find(graph.node(id).name());
    if (found != first_names.end() && found->first != found->second) {
      map.push_back({found->second, found->first});
    }
  }
  return map;
}

std::string PrintNameMap(absl::Span<const RenamedNode> name_map) {
  std::string text;
  for (const RenamedNode& renamed : name_map) {
    absl::StrAppend(&text, absl::Utf8SafeCEscape(renamed.after), "\t",
                    absl::Utf8SafeCEscape(renamed.before), "\n");
  }
  return text;
}

}  // namespace optfarm::transforms
