// obfuscate_names: gives nodes the shortest names there are, so that the file
// is smaller and says less. Declared inputs and outputs keep theirs.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/graph/graph.h"
#include "engine/transforms/machinery/builtin_transforms.h"

namespace optfarm::transforms {
namespace {

using graph::Graph;
using graph::NodeId;

// 0, 1, ..., 9, a, ..., z, A, ..., Z, 10, 11, ...
std::string CounterName(int64_t counter) {
  constexpr absl::string_view kDigits =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  const auto base = static_cast<int64_t>(kDigits.size());
  std::string name;
  do {
    name.push_back(kDigits[counter % base]);
    counter /= base;
  } while (counter > 0);
  std::reverse(name.begin(), name.end());
  return name;
}

// A node may say with which other nodes it has to share a device. TensorFlow
// leaves their old names there, which then belong to nobody.
void RenameColocations(
    const absl::flat_hash_map<std::string, std::string>& new_names,
    Graph* graph) {
  constexpr absl::string_view kPrefix = "loc:@";
  for (NodeId id : graph->Ids()) {
    auto* attributes = graph->mutable_node(id)->mutable_def()->mutable_attr();
    const auto found = attributes->find("_class");
    if (found == attributes->end() || !found->second.has_list()) continue;
    for (std::string& text : *found->second.mutable_list()->mutable_s()) {
      absl::string_view name = text;
      if (!absl::ConsumePrefix(&name, kPrefix)) continue;
      const auto renamed = new_names.find(name);
      if (renamed != new_names.end()) {
        text = absl::StrCat(kPrefix, renamed->second);
      }
    }
  }
}

absl::Status ObfuscateNames(Graph* graph, TransformContext* context) {
  const std::vector<std::string> nodes =
      context->arguments().Strings("exclude_node");
  const absl::flat_hash_set<std::string> excluded(nodes.begin(), nodes.end());
  const auto stays = [&](const std::string& name) {
    return context->IsInputOrOutput(name) || excluded.contains(name);
  };
  absl::flat_hash_map<std::string, std::string> new_names;
  std::vector<NodeId> renamed;
  int64_t counter = 0;
  for (NodeId id : graph->Ids()) {
    const std::string& name = graph->node(id).name();
    if (stays(name)) continue;
    std::string next;
    do {
      next = CounterName(counter++);
    } while (stays(next));
    context->RecordRename(name, next);
    if (name == next) continue;
    new_names.emplace(name, next);
    renamed.push_back(id);
    context->CountChange();
  }
  std::vector<std::string> names;
  for (NodeId id : renamed) names.push_back(new_names[graph->node(id).name()]);
  // All old names go before the first new one comes: a node may be called "0"
  // already.
  for (NodeId id : renamed) graph->Rename(id, absl::StrCat("__old__/", id));
  for (size_t i = 0; i < renamed.size(); ++i) {
    graph->Rename(renamed[i], names[i]);
  }
  RenameColocations(new_names, graph);
  context->HideNames();
  return absl::OkStatus();
}

}  // namespace

TransformDef ObfuscateNamesTransform() {
  return {.name = "obfuscate_names",
          .summary =
              "Gives nodes short, meaningless names; a file next to the graph "
              "maps them to the old ones.",
          .parameters = {{.name = "exclude_node",
                          .help = "Node that keeps its name.",
                          .repeated = true}},
          .run = ObfuscateNames};
}

}  // namespace optfarm::transforms
