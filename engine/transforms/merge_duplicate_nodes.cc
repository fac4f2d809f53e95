// merge_duplicate_nodes: computes only once what is computed several times.

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "engine/graph/op_defs.h"
#include "engine/transforms/builtin_transforms.h"
#include "engine/transforms/duplicate_nodes.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"

namespace optfarm::transforms {
namespace {

using graph::Graph;
using graph::NodeId;

// Function attributes hold maps, which have no order of their own.
std::string SerializeInOrder(const tensorflow::AttrValue& value) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  value.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

// What of a node never changes while duplicates are merged: equal texts stand
// for equal nodes. Attributes enter by digest, so that a key is short however
// large the tensor.
std::string FixedKey(const graph::Node& node) {
  std::map<std::string, const tensorflow::AttrValue*> attributes;
  for (const auto& [name, value] : node.def().attr()) attributes[name] = &value;
  Sha256 digest;
  for (const auto& [name, value] : attributes) {
    const std::string bytes = SerializeInOrder(*value);
    digest.Update(absl::StrCat(name.size(), ":", name, bytes.size(), ":"));
    digest.Update(bytes);
  }
  return absl::StrCat(node.op(), "\n", node.device(), "\n", digest.Finish());
}

std::string InputKey(const graph::Node& node) {
  std::string key;
  for (const graph::Endpoint& e : node.inputs()) {
    absl::StrAppend(&key, e.node, ":", e.port, ",");
  }
  std::vector<NodeId> controls(node.control_inputs().begin(),
                               node.control_inputs().end());
  std::sort(controls.begin(), controls.end());
  for (NodeId control : controls) absl::StrAppend(&key, "^", control, ",");
  return key;
}

bool MayMerge(const graph::Node& node, const TransformContext& context) {
  return !graph::IsStateful(node.op()) &&
         !absl::StartsWith(node.op(), "Placeholder") &&
         !context.IsInputOrOutput(node.name());
}

void ReplaceBy(NodeId duplicate, NodeId kept, Graph* graph) {
  std::vector<graph::Use> uses(graph->node(duplicate).uses().begin(),
                               graph->node(duplicate).uses().end());
  for (const graph::Use& use : uses) {
    if (!use.is_control()) {
      graph->SetInput(use.consumer, use.input, {kept, use.port});
    }
  }
  graph->RedirectControlUses(duplicate, kept);
  graph->Remove(duplicate);
}

absl::Status MergeDuplicateNodes(Graph* graph, TransformContext* context) {
  context->CountChange(MergeDuplicates(*context, graph));
  return absl::OkStatus();
}

}  // namespace

int64_t MergeDuplicates(const TransformContext& context, Graph* graph) {
  absl::flat_hash_map<NodeId, std::string> fixed_keys;
  int64_t removed = 0;
  for (int64_t before = -1; before != removed;) {
    before = removed;
    absl::flat_hash_map<std::string, NodeId> kept;
    for (NodeId id : graph->Ids()) {
      const graph::Node& node = graph->node(id);
      if (!MayMerge(node, context)) continue;
      std::string& fixed = fixed_keys[id];
      if (fixed.empty()) fixed = FixedKey(node);
      const auto [it, is_first] =
          kept.emplace(absl::StrCat(fixed, "\n", InputKey(node)), id);
      if (is_first) continue;
      ReplaceBy(id, it->second, graph);
      ++removed;
    }
  }
  return removed;
}

TransformDef MergeDuplicateNodesTransform() {
  return {.name = "merge_duplicate_nodes",
          .summary = "Merges nodes that compute the same from the same inputs.",
          .parameters = {},
          .run = MergeDuplicateNodes};
}

}  // namespace optfarm::transforms
