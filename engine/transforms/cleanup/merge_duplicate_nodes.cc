// merge_duplicate_nodes: computes only once what is computed several times.

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "engine/graph/op_defs.h"
#include "engine/transforms/machinery/builtin_transforms.h"
#include "engine/transforms/nodes/constant_nodes.h"
#include "engine/transforms/nodes/duplicate_nodes.h"
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

// Tensors from so many bytes on enter keys by their ends only, and are compared
// when keys are equal.
constexpr size_t kLargeTensor = 256;

bool IsLargeTensor(const tensorflow::AttrValue& value) {
  return value.has_tensor() &&
         value.tensor().tensor_content().size() >= kLargeTensor &&
         IsRawTensor(value.tensor());
}

std::string LargeTensorKey(const tensorflow::TensorProto& tensor) {
  const absl::string_view content = tensor.tensor_content();
  return absl::StrCat("large:", tensor.dtype(),
                      tensor.tensor_shape().SerializeAsString(), "/",
                      content.substr(0, kLargeTensor / 2),
                      content.substr(content.size() - kLargeTensor / 2));
}

// What of a node never changes while duplicates are merged: equal texts stand
// for equal nodes, large tensors excepted. Attributes enter by digest, so that
// a key is short.
std::string FixedKey(const graph::Node& node) {
  std::map<std::string, const tensorflow::AttrValue*> attributes;
  for (const auto& [name, value] : node.def().attr()) attributes[name] = &value;
  Sha256 digest;
  for (const auto& [name, value] : attributes) {
    const std::string bytes = IsLargeTensor(*value)
                                  ? LargeTensorKey(value->tensor())
                                  : SerializeInOrder(*value);
    digest.Update(absl::StrCat(name.size(), ":", name, bytes.size(), ":"));
    digest.Update(bytes);
  }
  return absl::StrCat(node.op(), "\n", node.device(), "\n", digest.Finish());
}

// Of nodes with equal keys.
bool HaveEqualTensors(const graph::Node& a, const graph::Node& b) {
  for (const auto& [name, value] : a.def().attr()) {
    if (!IsLargeTensor(value)) continue;
    const tensorflow::AttrValue* other = b.FindAttr(name);
    if (other == nullptr ||
        other->tensor().tensor_content() != value.tensor().tensor_content()) {
      return false;
    }
  }
  return true;
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

// Numbers nodes in an order in which inputs come first, so that nodes with
// equal numbers compute the same; then merges them. One pass merges all that is
// equal except around loops.
class Merger {
 public:
  Merger(const TransformContext& context, Graph* graph)
      : context_(context), graph_(graph), position_(graph->id_limit(), 0) {
    const std::vector<NodeId> ids = graph->Ids();
    for (size_t i = 0; i < ids.size(); ++i) position_[ids[i]] = i;
    absl::StatusOr<std::vector<NodeId>> order = graph::ExecutionOrder(*graph);
    order_ = order.ok() ? *std::move(order) : ids;
  }

  // Returns the number of nodes removed.
  int64_t MergeOnce() {
    numbers_.assign(graph_->id_limit(), kNoNumber);
    std::vector<std::vector<NodeId>> equals;
    absl::flat_hash_map<std::string, std::vector<int>> by_key;
    for (NodeId id : order_) {
      if (!graph_->Has(id)) continue;
      const graph::Node& node = graph_->node(id);
      int number = static_cast<int>(equals.size());
      if (MayMerge(node, context_)) {
        std::vector<int>& alike = by_key[Key(id, node)];
        const auto equal =
            std::find_if(alike.begin(), alike.end(), [&](int other) {
              return HaveEqualTensors(node, graph_->node(equals[other][0]));
            });
        if (equal != alike.end()) {
          number = *equal;
        } else {
          alike.push_back(number);
        }
      }
      if (number == static_cast<int>(equals.size())) equals.emplace_back();
      equals[number].push_back(id);
      numbers_[id] = number;
    }
    int64_t removed = 0;
    for (const std::vector<NodeId>& group : equals) {
      const NodeId kept = *std::min_element(
          group.begin(), group.end(),
          [&](NodeId a, NodeId b) { return position_[a] < position_[b]; });
      for (NodeId id : group) {
        if (id != kept) ReplaceBy(id, kept, graph_);
      }
      removed += static_cast<int64_t>(group.size()) - 1;
    }
    return removed;
  }

 private:
  static constexpr int kNoNumber = -1;

  std::string Key(NodeId id, const graph::Node& node) {
    std::string& fixed = fixed_keys_[id];
    if (fixed.empty()) fixed = FixedKey(node);
    std::string key = absl::StrCat(fixed, "\n");
    for (const graph::Endpoint& e : node.inputs()) {
      absl::StrAppend(&key, Name(e.node), ":", e.port, ",");
    }
    std::set<std::string> controls;
    for (NodeId control : node.control_inputs()) {
      controls.insert(Name(control));
    }
    for (const std::string& control : controls) {
      absl::StrAppend(&key, "^", control, ",");
    }
    return key;
  }

  // What comes around a loop has no number yet and is only equal to itself.
  std::string Name(NodeId id) const {
    const int number = numbers_[id];
    return number == kNoNumber ? absl::StrCat("node", id)
                               : absl::StrCat(number);
  }

  const TransformContext& context_;
  Graph* graph_;
  // In file order.
  std::vector<size_t> position_;
  std::vector<NodeId> order_;
  std::vector<int> numbers_;
  absl::flat_hash_map<NodeId, std::string> fixed_keys_;
};

absl::Status MergeDuplicateNodes(Graph* graph, TransformContext* context) {
  context->CountChange(MergeDuplicates(*context, graph));
  return absl::OkStatus();
}

}  // namespace

int64_t MergeDuplicates(const TransformContext& context, Graph* graph) {
  // Each nesting of loops may need one more pass; a graph made to need many is
  // no reason to go on for ever.
  constexpr int kMostPasses = 32;
  Merger merger(context, graph);
  int64_t removed = 0;
  for (int i = 0; i < kMostPasses; ++i) {
    const int64_t now = merger.MergeOnce();
    if (now == 0) break;
    removed += now;
  }
  return removed;
}

TransformDef MergeDuplicateNodesTransform() {
  return {.name = "merge_duplicate_nodes",
          .summary = "Merges nodes with the same computation and inputs.",
          .parameters = {},
          .run = MergeDuplicateNodes};
}

}  // namespace optfarm::transforms
