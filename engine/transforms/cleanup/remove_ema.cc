// remove_ema: takes the moving averages out that fake_quantize_training put in.
// After training and freezing, their variables are constants, which the fake
// quantizations can read directly.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/op_table.h"
#include "engine/transforms/machinery/builtin_transforms.h"
#include "engine/transforms/machinery/pattern.h"
#include "engine/transforms/nodes/unused_nodes.h"

namespace optfarm::transforms {
namespace {

using graph::Graph;
using graph::NodeId;

// The nodes of an average, besides its variable.
constexpr absl::string_view kParts[] = {
    "assign", "merge",  "switch", "reduce", "range", "initialized", "ema",
    "delta",  "change", "rate",   "one",    "decay", "ema_variable"};

// The value that is assigned to the variable: at first the least (or greatest)
// element, then the variable minus a part of its distance to it.
Pattern MovingAverage(const std::string& name, absl::string_view reduction) {
  const auto part = [&](absl::string_view which) {
    return absl::StrCat(name, "_", which);
  };
  const Pattern first_value =
      Inner("Switch", part("switch"),
            {Inner(reduction, part("reduce"),
                   {Leaf("*", part("x")),
                    Inner("Range", part("range"),
                          {Leaf("*", part("start")), Leaf("*", part("limit")),
                           Leaf("*", part("step"))})}),
             Leaf("IsVariableInitialized", part("initialized"))});
  const Pattern later_value =
      Inner("Sub", part("ema"),
            {Leaf("Const", part("ema_variable")),
             Inner("Mul", part("delta"),
                   {Leaf("Sub", part("change")),
                    Inner("Sub", part("rate"),
                          {Leaf("Const", part("one")),
                           Leaf("Const", part("decay"))})})});
  return Inner("Assign", part("assign"),
               {Leaf("Const", name),
                Inner("Merge", part("merge"), {first_value, later_value})});
}

// Whether a range of the fake quantization is an average that is not (yet) of
// the form that can be removed.
bool IsStillTrained(const Graph& graph, const graph::Node& node) {
  if (!graph::IsFakeQuantize(node.op())) return false;
  for (const graph::Endpoint& input : node.inputs()) {
    if (graph.node(input.node).op() == "Assign") return true;
  }
  return false;
}

absl::Status RemoveEma(Graph* graph, TransformContext* context) {
  const Pattern pattern = Inner("FakeQuantWithMinMaxVars", "quant",
                                {Leaf("*", "x"), MovingAverage("min", "Min"),
                                 MovingAverage("max", "Max")});
  for (NodeId id : graph->Ids()) {
    if (!graph->Has(id)) continue;
    const std::optional<Match> match = MatchAt(*graph, pattern, id);
    if (!match.has_value()) {
      if (IsStillTrained(*graph, graph->node(id))) {
        context->Skip(graph->node(id).name(),
                      "its range is no moving average of a frozen variable; "
                      "freeze the graph first");
      }
      continue;
    }
    std::vector<NodeId> parts;
    for (const char* range : {"min", "max"}) {
      for (absl::string_view part : kParts) {
        parts.push_back((*match)[absl::StrCat(range, "_", part)]);
      }
      InheritControlInputs(id, (*match)[absl::StrCat(range, "_assign")], graph);
    }
    graph->SetInput(id, 1, {(*match)["min"], 0});
    graph->SetInput(id, 2, {(*match)["max"], 0});
    RemoveUnused(std::move(parts), *context, graph);
    context->CountChange();
  }
  return absl::OkStatus();
}

}  // namespace

TransformDef RemoveEmaTransform() {
  return {.name = "remove_ema",
          .summary =
              "Makes fake quantization in a frozen graph read its trained "
              "ranges directly instead of updating their averages.",
          .parameters = {},
          .run = RemoveEma};
}

}  // namespace optfarm::transforms
