#include "engine/formats/tensorflow/saved_model.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files.h"
#include "base/nearest_names.h"
#include "base/status_macros.h"
#include "engine/formats/files/wire_reader.h"
#include "engine/formats/tensorflow/file_kind.h"
#include "engine/formats/tensorflow/graph_file.h"
#include "engine/graph/tensor_name.h"
#include "google/protobuf/text_format.h"

namespace optfarm::formats {
namespace {

using tensorflow::MetaGraphDef;
using tensorflow::SavedModel;

constexpr int kSchemaVersion = 1;
constexpr char kDefaultSignature[] = "serving_default";
// TensorFlow's own entries begin like this.
constexpr char kInternalSignature[] = "__saved_model_";

// Bytes of graph nodes found by walking down `path`, field by field.
int64_t CountNodes(absl::string_view bytes, absl::Span<const int> path) {
  int64_t count = 0;
  WireReader reader(bytes);
  while (const std::optional<WireField> field = reader.Next()) {
    if (!field->is_bytes || field->number != path[0]) continue;
    count += path.size() == 1 ? 1 : CountNodes(field->bytes, path.subspan(1));
  }
  return count;
}

absl::Status CheckSize(absl::string_view bytes, absl::string_view name,
                       absl::Span<const int> path_to_nodes) {
  if (bytes.size() > kMaxGraphBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(name, " has ", bytes.size(), " bytes; at most ",
                     kMaxGraphBytes, " are taken"));
  }
  const int64_t nodes = CountNodes(bytes, path_to_nodes);
  if (nodes > kMaxGraphNodes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(name, " has ", nodes, " nodes; at most ", kMaxGraphNodes,
                     " are taken"));
  }
  return absl::OkStatus();
}

absl::Status IsSomethingElse(FileKind kind, absl::string_view name,
                             absl::string_view wanted) {
  std::string is = AdviceForGraph(kind);
  // The advice is about graphs; only what the file is matters here.
  is = is.substr(0, is.find_first_of(";:."));
  return absl::InvalidArgumentError(
      absl::StrCat(name, is.empty() ? "" : absl::StrCat(" ", is, ","),
                   is.empty() ? " is no " : " not a ", wanted));
}

template <typename Message>
absl::Status Parse(absl::string_view bytes, absl::string_view name,
                   bool is_text, absl::string_view wanted, Message* message) {
  google::protobuf::LogSilencer silencer;
  if (is_text) {
    google::protobuf::TextFormat::Parser parser;
    parser.SetRecursionLimit(100);
    if (parser.ParseFromString(std::string(bytes), message)) {
      return absl::OkStatus();
    }
  } else if (message->ParseFromArray(bytes.data(),
                                     static_cast<int>(bytes.size()))) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(name, " is damaged: it begins like a ", wanted,
                   " but does not parse; copy or download it again"));
}

bool IsText(absl::string_view bytes) {
  return !bytes.empty() && bytes[0] >= ' ' && bytes[0] < 0x7f;
}

std::string Braces(const std::set<std::string>& tags) {
  return absl::StrCat("{", absl::StrJoin(tags, ","), "}");
}

absl::StatusOr<std::vector<SignatureTensor>> ReadEnds(
    const google::protobuf::Map<std::string, tensorflow::TensorInfo>& infos) {
  std::vector<SignatureTensor> ends;
  for (const auto& [key, info] : infos) {
    SignatureTensor end;
    end.key = key;
    if (info.encoding_case() != tensorflow::TensorInfo::kName) {
      return absl::UnimplementedError(
          absl::StrCat("'", key,
                       "' is not one dense tensor; name the tensors yourself "
                       "(--inputs, --outputs)"));
    }
    absl::StatusOr<graph::TensorName> tensor =
        graph::ParseTensorName(info.name());
    if (!tensor.ok()) {
      return Annotate(tensor.status(), absl::StrCat("'", key, "'"));
    }
    end.tensor = graph::ToString(*tensor);
    end.dtype = info.dtype();
    if (info.has_tensor_shape() && !info.tensor_shape().unknown_rank()) {
      end.shape.emplace();
      for (const auto& dim : info.tensor_shape().dim()) {
        end.shape->push_back(std::max<int64_t>(dim.size(), -1));
      }
    }
    ends.push_back(std::move(end));
  }
  std::sort(ends.begin(), ends.end(),
            [](const SignatureTensor& a, const SignatureTensor& b) {
              return a.key < b.key;
            });
  return ends;
}

}  // namespace

bool IsSavedModelFolder(const std::string& path) {
  return IsFolder(path) && (Exists(JoinPath(path, "saved_model.pb")) ||
                            Exists(JoinPath(path, "saved_model.pbtxt")));
}

absl::StatusOr<SavedModel> ParseSavedModel(absl::string_view bytes,
                                           absl::string_view name) {
  // SavedModel.meta_graphs, MetaGraphDef.graph_def, GraphDef.node.
  OPTFARM_RETURN_IF_ERROR(CheckSize(bytes, name, {2, 2, 1}));
  const FileKind kind = IdentifyBytes(bytes);
  if (kind != FileKind::kSavedModel) {
    return IsSomethingElse(kind, name, "SavedModel");
  }
  SavedModel model;
  OPTFARM_RETURN_IF_ERROR(
      Parse(bytes, name, IsText(bytes), "SavedModel", &model));
  if (model.saved_model_schema_version() != kSchemaVersion) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is a SavedModel of schema version ",
                     model.saved_model_schema_version(), "; only version ",
                     kSchemaVersion, " is known"));
  }
  return model;
}

absl::StatusOr<MetaGraphDef> ParseMetaGraph(absl::string_view bytes,
                                            absl::string_view name) {
  OPTFARM_RETURN_IF_ERROR(CheckSize(bytes, name, {2, 1}));
  const FileKind kind = IdentifyBytes(bytes);
  if (kind != FileKind::kMetaGraph) {
    return IsSomethingElse(kind, name, "MetaGraphDef (a .meta file)");
  }
  MetaGraphDef meta_graph;
  OPTFARM_RETURN_IF_ERROR(
      Parse(bytes, name, IsText(bytes), "MetaGraphDef", &meta_graph));
  return meta_graph;
}

absl::StatusOr<SavedModel> LoadSavedModel(const std::string& folder) {
  for (const char* file : {"saved_model.pb", "saved_model.pbtxt"}) {
    const std::string path = JoinPath(folder, file);
    if (!Exists(path)) continue;
    OPTFARM_ASSIGN_OR_RETURN(const std::string bytes,
                             ReadFile(path, kMaxGraphBytes));
    return ParseSavedModel(bytes, absl::StrCat("'", path, "'"));
  }
  return absl::NotFoundError(
      absl::StrCat("'", folder,
                   "' is no SavedModel: it has neither saved_model.pb nor "
                   "saved_model.pbtxt"));
}

absl::StatusOr<MetaGraphDef> LoadMetaGraph(const std::string& path) {
  OPTFARM_ASSIGN_OR_RETURN(const std::string bytes,
                           ReadFile(path, kMaxGraphBytes));
  return ParseMetaGraph(bytes, absl::StrCat("'", path, "'"));
}

absl::StatusOr<MetaGraphDef> TakeMetaGraph(
    SavedModel model, const std::vector<std::string>& tags) {
  const std::set<std::string> wanted(tags.begin(), tags.end());
  if (tags.empty() && model.meta_graphs_size() == 1) {
    return std::move(*model.mutable_meta_graphs(0));
  }
  std::vector<std::string> known;
  for (MetaGraphDef& meta_graph : *model.mutable_meta_graphs()) {
    const auto& own = meta_graph.meta_info_def().tags();
    const std::set<std::string> set(own.begin(), own.end());
    if (!tags.empty() && set == wanted) return std::move(meta_graph);
    known.push_back(Braces(set));
  }
  return absl::NotFoundError(absl::StrCat(
      "the SavedModel has no graph with exactly the tags ", Braces(wanted),
      "; it has ", known.empty() ? "none" : absl::StrJoin(known, ", ")));
}

std::vector<std::string> SignatureNames(const MetaGraphDef& meta_graph) {
  std::vector<std::string> names;
  for (const auto& [key, signature] : meta_graph.signature_def()) {
    if (!absl::StartsWith(key, kInternalSignature)) names.push_back(key);
  }
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<Signature> FindSignature(const MetaGraphDef& meta_graph,
                                        absl::string_view key) {
  const std::vector<std::string> names = SignatureNames(meta_graph);
  std::string wanted(key);
  if (key.empty()) {
    wanted = names.size() == 1 ? names[0] : kDefaultSignature;
  }
  const auto it = meta_graph.signature_def().find(wanted);
  if (it == meta_graph.signature_def().end()) {
    return absl::NotFoundError(absl::StrCat(
        "the model has no signature '", wanted, "'",
        NearestNamesHint(wanted, names),
        names.empty()
            ? "; it has none at all"
            : absl::StrCat("; it has '", absl::StrJoin(names, "', '"), "'")));
  }
  const std::string what = absl::StrCat("signature '", wanted, "'");
  Signature signature;
  signature.key = wanted;
  signature.method = it->second.method_name();
  auto inputs = ReadEnds(it->second.inputs());
  if (!inputs.ok()) return Annotate(inputs.status(), what);
  signature.inputs = *std::move(inputs);
  auto outputs = ReadEnds(it->second.outputs());
  if (!outputs.ok()) return Annotate(outputs.status(), what);
  signature.outputs = *std::move(outputs);
  return signature;
}

absl::StatusOr<std::string> InitOpOf(const MetaGraphDef& meta_graph) {
  const auto signature =
      meta_graph.signature_def().find("__saved_model_init_op");
  if (signature != meta_graph.signature_def().end()) {
    const auto& outputs = signature->second.outputs();
    const auto end = outputs.find("__saved_model_init_op");
    if (end != outputs.end()) return end->second.name();
  }
  for (const char* name : {"saved_model_main_op", "legacy_init_op"}) {
    const auto it = meta_graph.collection_def().find(name);
    if (it == meta_graph.collection_def().end()) continue;
    const auto& nodes = it->second.node_list().value();
    if (nodes.size() != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("collection '", name, "' must name one node, it names ",
                       nodes.size()));
    }
    return nodes[0];
  }
  return "";
}

}  // namespace optfarm::formats
