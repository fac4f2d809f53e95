// remove_default_attributes: leaves out attributes that say what is meant
// without them, the opposite of add_default_attributes. TensorFlow fills them
// in when it imports a graph; a small net's file is to a good part attributes.

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "engine/graph/graph.h"
#include "engine/graph/op_defs.h"
#include "engine/transforms/machinery/builtin_transforms.h"

namespace optfarm::transforms {
namespace {

bool IsEqual(const tensorflow::AttrValue& a, const tensorflow::AttrValue& b) {
  return a.SerializeAsString() == b.SerializeAsString();
}

// Removes the attributes that have the op's defaults.
bool RemoveDefaults(const tensorflow::OpDef& op_def,
                    tensorflow::NodeDef* node) {
  bool has_changed = false;
  for (const auto& attribute : op_def.attr()) {
    const auto found = node->attr().find(attribute.name());
    if (!attribute.has_default_value() || found == node->attr().end() ||
        !IsEqual(found->second, attribute.default_value())) {
      continue;
    }
    node->mutable_attr()->erase(attribute.name());
    has_changed = true;
  }
  return has_changed;
}

absl::Status RemoveDefaultAttributes(graph::Graph* graph,
                                     TransformContext* context) {
  absl::flat_hash_set<std::string> functions;
  for (const auto& function : graph->library().function()) {
    functions.insert(function.signature().name());
  }
  for (graph::NodeId id : graph->Ids()) {
    graph::Node* node = graph->mutable_node(id);
    const tensorflow::OpDef* op_def = graph::FindOpDef(node->op());
    // A function may have taken an op's name.
    if (op_def == nullptr || functions.contains(node->op())) continue;
    if (RemoveDefaults(*op_def, node->mutable_def())) context->CountChange();
  }
  return absl::OkStatus();
}

}  // namespace

TransformDef RemoveDefaultAttributesTransform() {
  return {.name = "remove_default_attributes",
          .summary =
              "Removes attributes with default values to make the file "
              "smaller.",
          .parameters = {},
          .run = RemoveDefaultAttributes};
}

}  // namespace optfarm::transforms
