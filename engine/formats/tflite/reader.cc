#include "engine/formats/tflite/reader.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/tflite/lowering.h"
#include "engine/formats/tflite/metadata.h"
#include "engine/formats/tflite/model_file.h"
#include "engine/formats/tflite/variables.h"
#include "engine/graph/model_interface.h"
#include "engine/graph/model_notes.h"
#include "engine/graph/ops/op_table.h"
#include "tflite/schema_generated.h"

namespace optfarm::formats {
namespace {

using tensorflow::NodeDef;
using tflite::Value;

constexpr absl::string_view kFormat = "tflite";
// A sparse or packed file may grow a lot; nothing may grow without bound.
constexpr int64_t kMostGrowth = 64;
constexpr int64_t kMostConstantBytes = int64_t{1} << 31;
constexpr int64_t kMostNodes = 1'000'000;

absl::string_view TextOf(const flatbuffers::String* text) {
  return text == nullptr ? absl::string_view()
                         : absl::string_view(text->c_str(), text->size());
}

// The first subgraph on its way into a graph.
class MainGraph {
 public:
  explicit MainGraph(const tflite::ModelFile& file, int64_t file_bytes)
      : file_(file),
        model_(file),
        maker_(&model_.budget),
        subgraph_(&model_, 0, &maker_, &variables_) {
    model_.budget.constant_bytes =
        std::min(kMostConstantBytes, kMostGrowth * (file_bytes + (1 << 20)));
    model_.budget.nodes = kMostNodes;
  }

  absl::StatusOr<tensorflow::GraphDef> Lower() {
    model_.open_subgraphs.push_back(0);
    OPTFARM_RETURN_IF_ERROR(AddInputs());
    OPTFARM_RETURN_IF_ERROR(subgraph_.LowerOperators());
    OPTFARM_RETURN_IF_ERROR(AddOutputs());
    OPTFARM_RETURN_IF_ERROR(maker_.status());
    tensorflow::GraphDef graph;
    for (NodeDef& node : maker_.Take(roots_)) {
      *graph.add_node() = std::move(node);
    }
    *graph.mutable_library() = std::move(model_.library);
    return graph;
  }

 private:
  absl::Status AddInputs() {
    const auto* inputs = subgraph_.subgraph().inputs();
    if (inputs == nullptr) return absl::OkStatus();
    for (uint32_t i = 0; i < inputs->size(); ++i) {
      const int index = inputs->Get(i);
      const tflite::Tensor& tensor = subgraph_.tensor(index);
      const tensorflow::DataType type = tflite::TypeOf(tensor);
      if (type == tensorflow::DT_INVALID || type == tensorflow::DT_RESOURCE) {
        return tflite::Unsupported(
            absl::StrCat("input '", TextOf(tensor.name()), "' of type ",
                         tflite::EnumNameTensorType(tensor.type())));
      }
      const Value value = maker_.Add(
          "Placeholder", subgraph_.NameOf(index), {}, [&](NodeDef* node) {
            (*node->mutable_attr())["dtype"].set_type(type);
            (*node->mutable_attr())["shape"].mutable_shape();
            tflite::SetShape(node, "shape", tflite::ShapeOf(tensor));
            graph::DeclareInput(kFormat, static_cast<int>(i),
                                TextOf(tensor.name()), {}, node);
            Sign(index, /*is_input=*/true, node);
          });
      OPTFARM_RETURN_IF_ERROR(maker_.status());
      subgraph_.Bind(index, value);
      declared_.insert(value.node);
      roots_.push_back(value.node);
    }
    return absl::OkStatus();
  }

  absl::Status AddOutputs() {
    const auto* outputs = subgraph_.subgraph().outputs();
    if (outputs == nullptr || outputs->size() == 0) {
      return absl::InvalidArgumentError("the model has no outputs");
    }
    std::vector<Value> values;
    for (const int index : *outputs) {
      OPTFARM_ASSIGN_OR_RETURN(const Value value, subgraph_.Stored(index));
      values.push_back(value);
    }
    const std::vector<Value> stores =
        tflite::StoreVariables(&maker_, &variables_);
    OPTFARM_RETURN_IF_ERROR(maker_.status());
    for (uint32_t i = 0; i < outputs->size(); ++i) {
      OPTFARM_RETURN_IF_ERROR(
          AddOutput(static_cast<int>(i), outputs->Get(i), values[i], stores));
    }
    return absl::OkStatus();
  }

  // The node itself where it can be declared, else an Identity behind it.
  absl::Status AddOutput(int position, int index, Value value,
                         const std::vector<Value>& stores) {
    const tflite::Tensor& tensor = subgraph_.tensor(index);
    if (value.type == tensorflow::DT_RESOURCE) {
      return tflite::Unsupported("an output that is the handle of a variable");
    }
    if (!stores.empty() || value.port != 0 || declared_.contains(value.node) ||
        graph::IsConst(maker_.NodeOf(value)->op())) {
      value = maker_.Add("Identity", subgraph_.NameOf(index), {value});
      for (const Value& store : stores) maker_.AddControl(value, store);
    }
    OPTFARM_RETURN_IF_ERROR(maker_.status());
    declared_.insert(value.node);
    roots_.push_back(value.node);
    NodeDef* node = maker_.NodeOf(value);
    graph::DeclareOutput(kFormat, position, TextOf(tensor.name()), {}, node);
    Sign(index, /*is_input=*/false, node);
    if (position == 0) KeepMetadata(node);
    return absl::OkStatus();
  }

  // Records what the model's signatures call the tensor.
  void Sign(int index, bool is_input, NodeDef* node) const {
    const auto* signatures = file_.model().signature_defs();
    if (signatures == nullptr) return;
    std::vector<std::string> names;
    for (const tflite::SignatureDef* signature : *signatures) {
      if (signature->subgraph_index() != 0) continue;
      const auto* map = is_input ? signature->inputs() : signature->outputs();
      if (map == nullptr) continue;
      for (const tflite::TensorMap* entry : *map) {
        if (static_cast<int64_t>(entry->tensor_index()) != index) continue;
        names.push_back(std::string(TextOf(signature->signature_key())));
        names.push_back(std::string(TextOf(entry->name())));
      }
    }
    SetTexts(kSignatureAttr, names, node);
  }

  void KeepMetadata(NodeDef* node) const {
    const absl::string_view description = TextOf(file_.model().description());
    if (!description.empty()) {
      (*node->mutable_attr())[std::string(kDescriptionAttr)].set_s(
          std::string(description));
    }
    graph::ModelNotes notes;
    const auto* metadata = file_.model().metadata();
    if (metadata == nullptr) return;
    int64_t bytes = 0;
    bool is_read = false;
    for (const tflite::Metadata* entry : *metadata) {
      const absl::string_view content = file_.Buffer(entry->buffer());
      bytes += static_cast<int64_t>(content.size());
      // Entries that share their bytes may be many.
      if (bytes > model_.budget.constant_bytes) break;
      notes.properties.emplace_back(TextOf(entry->name()), content);
      if (notes.properties.back().first != kTfliteMetadataName) continue;
      if (std::exchange(is_read, true)) continue;
      const TfliteMetadata read = ParseTfliteMetadata(content, file_.bytes());
      notes.labels = read.labels;
      notes.mean = read.mean;
      notes.std = read.std;
    }
    graph::SetModelNotes(notes, node);
  }

  static void SetTexts(absl::string_view attribute,
                       const std::vector<std::string>& texts, NodeDef* node) {
    if (texts.empty()) return;
    auto* list = (*node->mutable_attr())[std::string(attribute)].mutable_list();
    for (const std::string& text : texts) list->add_s(text);
  }

  const tflite::ModelFile& file_;
  tflite::ModelLowering model_;
  tflite::NodeMaker maker_;
  std::map<std::string, tflite::Variable> variables_;
  tflite::SubgraphLowering subgraph_;
  absl::flat_hash_set<std::string> declared_;
  std::vector<std::string> roots_;
};

}  // namespace

bool IsTflite(absl::string_view bytes) {
  return bytes.size() >= 8 && bytes.substr(4, 4) == "TFL3";
}

absl::StatusOr<tensorflow::GraphDef> ReadTflite(absl::string_view bytes,
                                                absl::string_view name) {
  OPTFARM_ASSIGN_OR_RETURN(const std::unique_ptr<tflite::ModelFile> file,
                           tflite::ModelFile::Open(bytes, name));
  MainGraph main(*file, static_cast<int64_t>(bytes.size()));
  absl::StatusOr<tensorflow::GraphDef> graph = main.Lower();
  if (graph.ok()) return graph;
  return absl::Status(graph.status().code(),
                      absl::StrCat("cannot read TensorFlow Lite model ", name,
                                   ": ", graph.status().message()));
}

}  // namespace optfarm::formats
