#include "engine/formats/tensorflow/mapped_graph.h"

#include <cstdint>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "engine/formats/files/wire_reader.h"
#include "engine/formats/tensorflow/binary_graph.h"
#include "engine/formats/tensorflow/file_kind.h"
#include "engine/formats/tensorflow/graph_stream.h"
#include "engine/graph/attr.h"
#include "engine/graph/ops/op_table.h"
#include "engine/graph/tensor_proto.h"
#include "google/protobuf/stubs/logging.h"

namespace optfarm::formats {
namespace {

using tensorflow::AttrValue;
using tensorflow::NodeDef;
using tensorflow::TensorProto;

// UNITS: bytes. Smaller constants are copied: they may be looked at where
// shapes are inferred, and a page is hardly saved.
constexpr size_t kLeastBytes = 64 * 1024;
// UNITS: bytes that tell what a file is.
constexpr size_t kHeadBytes = 256 * 1024;

// A message without one of its fields, and what is in that.
struct Cut {
  std::string rest;
  absl::string_view content;
};

// Cuts out the one large field of that number. `is_only`: no other field has
// it. nullopt when there is none, or several.
std::optional<Cut> CutField(absl::string_view message, int number,
                            bool is_only) {
  Cut cut;
  bool is_found = false;
  WireReader reader(message);
  for (size_t begin = 0; const std::optional<WireField> field = reader.Next();
       begin = reader.position()) {
    const bool is_it = field->number == number && field->is_bytes &&
                       (is_only || field->bytes.size() >= kLeastBytes);
    if (is_it && is_found) return std::nullopt;
    if (is_it) {
      is_found = true;
      cut.content = field->bytes;
    } else {
      const absl::string_view whole =
          message.substr(begin, reader.position() - begin);
      cut.rest.append(whole.data(), whole.size());
    }
  }
  if (!is_found || !reader.AtEnd() || cut.content.size() < kLeastBytes) {
    return std::nullopt;
  }
  return cut;
}

bool IsKeyOfValue(absl::string_view entry) {
  WireReader reader(entry);
  const std::optional<WireField> key = reader.Next();
  return key.has_value() && key->number == 1 && key->bytes == "value" &&
         reader.AtEnd();
}

// The elements are all that there is besides dtype and shape, and as many as
// the shape says.
bool IsWhole(TensorProto without, absl::string_view elements) {
  const int64_t width = graph::ElementBytes(without.dtype());
  const absl::StatusOr<int64_t> count =
      graph::ElementCount(without.tensor_shape());
  // Bools may have bytes that are none.
  if (width == 0 || without.dtype() == tensorflow::DT_BOOL || !count.ok() ||
      static_cast<uint64_t>(*count) != elements.size() / width ||
      elements.size() % width != 0) {
    return false;
  }
  without.clear_dtype();
  without.clear_tensor_shape();
  without.clear_version_number();
  return without.ByteSizeLong() == 0;
}

// A constant whose elements stay where they are.
struct Constant {
  NodeDef node;
  absl::string_view elements;
};

// nullopt for every other node.
std::optional<Constant> ReadConstant(absl::string_view bytes) {
  const std::optional<Cut> node =
      CutField(bytes, NodeDef::kAttrFieldNumber, false);
  if (!node) return std::nullopt;
  const std::optional<Cut> entry = CutField(node->content, 2, true);
  if (!entry || !IsKeyOfValue(entry->rest)) return std::nullopt;
  const std::optional<Cut> value =
      CutField(entry->content, AttrValue::kTensorFieldNumber, true);
  if (!value || !value->rest.empty()) return std::nullopt;
  const std::optional<Cut> tensor =
      CutField(value->content, TensorProto::kTensorContentFieldNumber, true);
  if (!tensor) return std::nullopt;
  Constant constant;
  constant.elements = tensor->content;
  TensorProto without;
  NodeDef* def = &constant.node;
  if (!def->ParseFromString(node->rest) || !graph::IsConst(def->op()) ||
      def->input_size() > 0 || def->attr().contains("value") ||
      !without.ParseFromString(tensor->rest) ||
      !IsWhole(without, constant.elements)) {
    return std::nullopt;
  }
  const auto dtype = graph::GetType(*def, "dtype");
  if (!dtype.ok() || *dtype != without.dtype()) return std::nullopt;
  const std::string region = absl::StrCat(kRegionPrefix, def->name());
  def->set_op("ImmutableConst");
  def->clear_attr();
  graph::SetType(def, "dtype", *dtype);
  graph::SetString(def, "memory_region_name", region);
  *(*def->mutable_attr())["shape"].mutable_shape() = without.tensor_shape();
  return constant;
}

class Reader {
 public:
  bool Read(absl::string_view bytes);
  // REQUIRES: Read was true.
  LoadedGraph Take(const std::shared_ptr<const MappedFile>& file,
                   const std::string& path) {
    if (!parts_.empty()) {
      graph_.package = MemmappedPackage::OfParts(file, path, std::move(parts_));
    }
    return std::move(graph_);
  }

 private:
  bool AddNode(absl::string_view bytes);

  LoadedGraph graph_;
  absl::flat_hash_map<std::string, absl::string_view> parts_;
};

bool Reader::AddNode(absl::string_view bytes) {
  if (graph_.def.node_size() >= kMaxGraphNodes) return false;
  NodeDef* node = graph_.def.add_node();
  if (bytes.size() >= kLeastBytes) {
    if (std::optional<Constant> constant = ReadConstant(bytes)) {
      *node = std::move(constant->node);
      const std::string region =
          graph::GetString(*node, "memory_region_name").value_or("");
      return parts_.emplace(region, constant->elements).second;
    }
  }
  // Regions of a package that is not here.
  return node->ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) &&
         !graph::HasRole(node->op(), graph::OpRole::kMappedConst);
}

bool Reader::Read(absl::string_view bytes) {
  // The other fields: small next to the nodes, and with rules of their own.
  std::string rest;
  WireReader reader(bytes);
  for (size_t begin = 0; const std::optional<WireField> field = reader.Next();
       begin = reader.position()) {
    if (field->number == tensorflow::GraphDef::kNodeFieldNumber) {
      if (!field->is_bytes || !AddNode(field->bytes)) return false;
      continue;
    }
    const absl::string_view whole =
        bytes.substr(begin, reader.position() - begin);
    rest.append(whole.data(), whole.size());
  }
  return reader.AtEnd() && graph_.def.MergeFromString(rest) &&
         graph_.def.node_size() > 0 && IsOpName(graph_.def.node(0).op());
}

}  // namespace

std::optional<LoadedGraph> ReadMappedGraph(
    const std::shared_ptr<const MappedFile>& file, const std::string& path) {
  const absl::string_view bytes = file->bytes();
  if (bytes.empty() || bytes.size() > kMaxGraphBytes || bytes[0] != '\n' ||
      IdentifyBytes(bytes.substr(0, kHeadBytes)) != FileKind::kUnknown) {
    return std::nullopt;
  }
  google::protobuf::LogSilencer silence;
  Reader reader;
  if (!reader.Read(bytes)) return std::nullopt;
  return reader.Take(file, path);
}

}  // namespace optfarm::formats
