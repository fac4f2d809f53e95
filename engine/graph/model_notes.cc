#include "engine/graph/model_notes.h"

#include <cmath>

#include "absl/algorithm/container.h"
#include "engine/graph/attr.h"

namespace optfarm::graph {
namespace {

tensorflow::AttrValue::ListValue* ListOf(absl::string_view name,
                                         tensorflow::NodeDef* node) {
  return (*node->mutable_attr())[std::string(name)].mutable_list();
}

// nullptr where the node has no such attribute.
const tensorflow::AttrValue::ListValue* FindList(
    const tensorflow::NodeDef& node, absl::string_view name) {
  const tensorflow::AttrValue* value = FindAttr(node, name);
  return value == nullptr ? nullptr : &value->list();
}

ModelNotes NotesOf(const tensorflow::NodeDef& node) {
  ModelNotes notes;
  if (const auto* list = FindList(node, kLabelsAttr)) {
    notes.labels.assign(list->s().begin(), list->s().end());
  }
  const auto* mean = FindList(node, kInputMeanAttr);
  const auto* std = FindList(node, kInputStdAttr);
  if (mean != nullptr && std != nullptr && IsScale(mean->f(), std->f())) {
    notes.mean.assign(mean->f().begin(), mean->f().end());
    notes.std.assign(std->f().begin(), std->f().end());
  }
  if (const auto* list = FindList(node, kModelMetadataAttr)) {
    for (int i = 0; i + 1 < list->s_size(); i += 2) {
      notes.properties.emplace_back(list->s(i), list->s(i + 1));
    }
  }
  return notes;
}

}  // namespace

bool IsScale(absl::Span<const float> mean, absl::Span<const float> std) {
  constexpr size_t kMostChannels = 4096;
  return mean.size() == std.size() && mean.size() <= kMostChannels &&
         absl::c_all_of(mean, [](float x) { return std::isfinite(x); }) &&
         absl::c_all_of(std,
                        [](float x) { return std::isfinite(x) && x != 0; });
}

void SetModelNotes(const ModelNotes& notes, tensorflow::NodeDef* node) {
  if (!notes.labels.empty()) {
    auto* labels = ListOf(kLabelsAttr, node);
    for (const std::string& label : notes.labels) labels->add_s(label);
  }
  if (!notes.mean.empty()) {
    ListOf(kInputMeanAttr, node)
        ->mutable_f()
        ->Add(notes.mean.begin(), notes.mean.end());
    ListOf(kInputStdAttr, node)
        ->mutable_f()
        ->Add(notes.std.begin(), notes.std.end());
  }
  if (notes.properties.empty()) return;
  auto* properties = ListOf(kModelMetadataAttr, node);
  for (const auto& [key, value] : notes.properties) {
    properties->add_s(key);
    properties->add_s(value);
  }
}

ModelNotes ReadModelNotes(const Graph& graph) {
  for (NodeId id : graph.Ids()) {
    ModelNotes notes = NotesOf(graph.node(id).def());
    if (!notes.empty()) return notes;
  }
  return {};
}

ModelNotes ReadModelNotes(const tensorflow::GraphDef& graph) {
  for (const tensorflow::NodeDef& node : graph.node()) {
    ModelNotes notes = NotesOf(node);
    if (!notes.empty()) return notes;
  }
  return {};
}

}  // namespace optfarm::graph
