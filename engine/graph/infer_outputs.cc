#include "engine/graph/infer_outputs.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/op_defs.h"
#include "engine/graph/ops/op_table.h"
#include "engine/graph/shape_inference.h"

namespace optfarm::graph {

using tensorflow::DataType;
using tensorflow::OpDef;

bool IsPlaceholder(const Node& node) {
  return HasRole(node.op(), OpRole::kPlaceholder);
}

bool IsOptionalPlaceholder(const Node& node) {
  return HasRole(node.op(), OpRole::kOptionalPlaceholder);
}

DataType TypeOf(const Graph& graph, Endpoint tensor) {
  const Node& node = graph.node(tensor.node);
  const OpDef* op_def = FindOpDef(node.op());
  if (op_def == nullptr) return tensorflow::DT_INVALID;
  const auto types = OutputTypes(*op_def, node.def());
  if (!types.ok() || tensor.port >= static_cast<int>(types->size())) {
    return tensorflow::DT_INVALID;
  }
  return BaseType((*types)[tensor.port]);
}

namespace {

// A question does not list more candidates than this.
constexpr size_t kMaxListed = 20;

// "  'probs' (Softmax, float [1,10])"
std::string Describe(const Graph& graph, const ShapeMap& shapes,
                     Endpoint tensor) {
  return absl::StrCat("  '", graph.NameOf(tensor), "' (",
                      graph.node(tensor.node).op(), ", ",
                      DataTypeName(TypeOf(graph, tensor)), " ",
                      shapes.Of(tensor).ToString(), ")");
}

// Whether an op that we do not know is bookkeeping by its name.
bool SoundsLikeBookkeeping(absl::string_view op) {
  return absl::StartsWith(op, "Assign") || absl::StartsWith(op, "Apply") ||
         absl::StartsWith(op, "ResourceApply") ||
         absl::StartsWith(op, "Scatter") || absl::StartsWith(op, "Queue") ||
         absl::StartsWith(op, "Save") || absl::EndsWith(op, "Summary") ||
         absl::EndsWith(op, "SummaryV2");
}

// Ops that end a graph but are nobody's answer.
bool IsBookkeeping(const Node& node) {
  const OpRow* row = FindOpRow(node.op());
  if (row == nullptr) return SoundsLikeBookkeeping(node.op());
  return row->is_bookkeeping || FindOpDef(node.op())->output_arg().empty();
}

// Whether the name lies in one of the scopes that training leaves behind.
bool IsTrainingScope(absl::string_view name) {
  for (absl::string_view scope : absl::StrSplit(name, '/')) {
    std::string lower = absl::AsciiStrToLower(scope);
    if (absl::EndsWith(lower, "_grad")) return true;
    lower.erase(std::remove(lower.begin(), lower.end(), '_'), lower.end());
    for (absl::string_view word :
         {"gradient", "train", "optimizer", "adam", "momentum", "rmsprop",
          "save", "init", "loss", "cost", "accuracy", "metric", "summar",
          "assert", "xentropy", "crossentropy", "globalstep", "movingav",
          "correctprediction"}) {
      if (absl::StrContains(lower, word)) return true;
    }
  }
  return false;
}

// Whether people would give an output this name.
bool IsOutputName(absl::string_view name) {
  const std::string lower = absl::AsciiStrToLower(name);
  std::vector<absl::string_view> scopes = absl::StrSplit(lower, '/');
  // "Predictions/Reshape_1" is one too.
  if (scopes.size() > 2) scopes.erase(scopes.begin(), scopes.end() - 2);
  for (size_t i = 0; i < scopes.size(); ++i) {
    for (absl::string_view word : {"predictions", "softmax", "probabilities"}) {
      if (absl::StrContains(scopes[i], word)) return true;
    }
    if (i + 1 < scopes.size()) continue;
    for (absl::string_view word :
         {"output", "outputs", "y", "prob", "probs", "prediction", "logits",
          "final_result", "result", "classes", "scores"}) {
      if (scopes[i] == word) return true;
    }
  }
  return false;
}

// How likely an end of the graph is an output: the first is best.
enum class Likelihood { kPlausible, kTraining, kHelper, kUnfed };

Likelihood Judge(const Graph& graph, const ShapeMap& shapes, Endpoint end,
                 bool fed) {
  if (!fed) return Likelihood::kUnfed;
  const Node& node = graph.node(end.node);
  for (absl::string_view op : {"Shape", "ShapeN", "Size", "Rank", "ZerosLike",
                               "OnesLike", "ReadVariableOp"}) {
    if (node.op() == op) return Likelihood::kHelper;
  }
  if (TypeOf(graph, end) == tensorflow::DT_BOOL) return Likelihood::kHelper;
  // One number for the whole batch: a loss or an accuracy.
  const bool reduces = HasRole(node.op(), OpRole::kMean) || node.op() == "Sum";
  if (IsTrainingScope(node.name()) ||
      (reduces && shapes.Of(end) == PartialShape::Scalar())) {
    return Likelihood::kTraining;
  }
  return Likelihood::kPlausible;
}

// Nodes whose values depend on a placeholder; all nodes when there is none.
std::vector<bool> FedNodes(const Graph& graph) {
  std::vector<bool> fed(graph.id_limit(), false);
  std::vector<NodeId> stack;
  for (NodeId id : graph.Ids()) {
    if (IsPlaceholder(graph.node(id)) ||
        IsOptionalPlaceholder(graph.node(id))) {
      stack.push_back(id);
    }
  }
  if (stack.empty()) fed.assign(graph.id_limit(), true);
  while (!stack.empty()) {
    const NodeId id = stack.back();
    stack.pop_back();
    if (fed[id]) continue;
    fed[id] = true;
    for (const Use& use : graph.node(id).uses()) {
      if (!use.is_control()) stack.push_back(use.consumer);
    }
  }
  return fed;
}

// The graph's ends in file order: nodes that nothing reads, or (when
// `ignore_bookkeeping`) that only bookkeeping reads.
std::vector<NodeId> Ends(const Graph& graph, bool ignore_bookkeeping) {
  std::vector<NodeId> ends;
  for (NodeId id : graph.Ids()) {
    const Node& node = graph.node(id);
    if (IsBookkeeping(node)) continue;
    const bool is_end =
        std::all_of(node.uses().begin(), node.uses().end(), [&](const Use& u) {
          return ignore_bookkeeping &&
                 (u.is_control() || IsBookkeeping(graph.node(u.consumer)));
        });
    if (is_end) ends.push_back(id);
  }
  return ends;
}

absl::Status OutputQuestion(const Graph& graph, const ShapeMap& shapes,
                            const std::vector<Endpoint>& candidates) {
  std::vector<std::string> lines;
  std::vector<std::string> names;
  for (const Endpoint& candidate : candidates) {
    if (lines.size() == kMaxListed) {
      lines.push_back(
          absl::StrCat("  ... and ", candidates.size() - kMaxListed, " more"));
      break;
    }
    lines.push_back(Describe(graph, shapes, candidate));
    names.push_back(graph.NameOf(candidate));
  }
  std::string text = absl::StrCat("which of these are the model's outputs?\n",
                                  absl::StrJoin(lines, "\n"),
                                  "\nGive one: --outputs=", names[0]);
  if (names.size() > 1 && names.size() < kMaxListed) {
    absl::StrAppend(&text,
                    "\nor several: --outputs=", absl::StrJoin(names, ","));
  }
  return absl::FailedPreconditionError(text);
}

// Whether optimizer steps or gradients are still in the graph.
bool IsTrainingGraph(const Graph& graph) {
  for (NodeId id : graph.Ids()) {
    const Node& node = graph.node(id);
    if (absl::StartsWith(node.op(), "Apply") ||
        absl::StartsWith(node.op(), "ResourceApply") ||
        absl::StartsWith(node.name(), "gradients/")) {
      return true;
    }
  }
  return false;
}

// Tensors anywhere in the graph that are named like outputs; a training graph
// goes on behind them.
std::vector<Endpoint> NamedLikeOutputs(const Graph& graph,
                                       const ShapeMap& shapes,
                                       const std::vector<bool>& fed) {
  std::vector<Endpoint> found;
  for (NodeId id : graph.Ids()) {
    const Node& node = graph.node(id);
    const Endpoint tensor{id, 0};
    if (!IsBookkeeping(node) && IsOutputName(node.name()) &&
        Judge(graph, shapes, tensor, fed[id]) == Likelihood::kPlausible &&
        found.size() < kMaxListed / 2) {
      found.push_back(tensor);
    }
  }
  return found;
}

}  // namespace

absl::StatusOr<std::vector<Endpoint>> InferOutputs(const Graph& graph,
                                                   bool take_all) {
  OPTFARM_ASSIGN_OR_RETURN(const ShapeMap shapes, InferShapes(graph));
  const std::vector<bool> fed = FedNodes(graph);
  std::map<Likelihood, std::vector<Endpoint>> ranked;
  // Without a good end, what only summaries and assertions read counts too.
  for (bool ignore_bookkeeping : {false, true}) {
    ranked.clear();
    for (NodeId id : Ends(graph, ignore_bookkeeping)) {
      const Endpoint end{id, 0};
      ranked[Judge(graph, shapes, end, fed[id])].push_back(end);
    }
    if (!ranked[Likelihood::kPlausible].empty()) break;
  }
  std::vector<Endpoint>& plausible = ranked[Likelihood::kPlausible];
  if (plausible.size() == 1 || (take_all && !plausible.empty())) {
    return plausible;
  }
  if (!plausible.empty()) {
    std::stable_partition(plausible.begin(), plausible.end(),
                          [&](const Endpoint& end) {
                            return IsOutputName(graph.node(end.node).name());
                          });
    return OutputQuestion(graph, shapes, plausible);
  }
  std::vector<Endpoint> candidates = NamedLikeOutputs(graph, shapes, fed);
  const std::vector<Endpoint>& training = ranked[Likelihood::kTraining];
  // An exported network may well end in a node named "loss".
  if (training.size() == 1 && candidates.empty() && !IsTrainingGraph(graph) &&
      shapes.Of(training[0]) != PartialShape::Scalar()) {
    return training;
  }
  for (const auto& [likelihood, ends] : ranked) {
    candidates.insert(candidates.end(), ends.begin(), ends.end());
    if (!candidates.empty()) {
      return OutputQuestion(graph, shapes, candidates);
    }
  }
  return absl::FailedPreconditionError(
      "the graph has no end that could be an output (only constants, "
      "variables, placeholders and operations without a result); name the "
      "output with --outputs=NODE");
}

}  // namespace optfarm::graph
