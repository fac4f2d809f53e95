// Makes a memory-mapped package of a graph.

#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/graph_file.h"
#include "engine/formats/memmapped_package.h"
#include "engine/formats/tensor_values.h"
#include "engine/graph/attr.h"
#include "engine/graph/tensor_proto.h"
#include "tensorflow/core/util/memmapped_file_system.pb.h"

namespace optfarm::formats {
namespace {

using tensorflow::NodeDef;

class PackageWriter {
 public:
  explicit PackageWriter(int64_t min_bytes) : min_bytes_(min_bytes) {
    names_.insert(GraphName());
  }

  // Moves the node's value into a region if it is large enough.
  absl::Status Convert(NodeDef* node);
  absl::StatusOr<MemmappedBytes> Finish(const tensorflow::GraphDef& graph) &&;

 private:
  static std::string GraphName() { return absl::StrCat(kRegionPrefix, "."); }
  std::string RegionName(absl::string_view node);
  void AddRegion(const std::string& name, absl::string_view bytes);

  int64_t min_bytes_;
  absl::flat_hash_set<std::string> names_;
  tensorflow::MemmappedFileSystemDirectory directory_;
  MemmappedBytes out_;
};

std::string PackageWriter::RegionName(absl::string_view node) {
  std::string name = kRegionPrefix;
  for (const char c : node) {
    name += absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' ||
                    c == '.'
                ? c
                : '_';
  }
  // As TensorFlow does it, but not for ever: a graph may have many names that
  // differ only in what is replaced.
  constexpr int kMostUnderscores = 16;
  for (int tries = 0; !names_.insert(name).second; ++tries) {
    name += '_';
    if (tries >= kMostUnderscores) absl::StrAppend(&name, out_.converted_nodes);
  }
  return name;
}

void PackageWriter::AddRegion(const std::string& name,
                              absl::string_view bytes) {
  auto* element = directory_.add_element();
  element->set_offset(out_.bytes.size());
  element->set_name(name);
  element->set_length(bytes.size());
  out_.bytes.append(bytes.data(), bytes.size());
}

absl::Status PackageWriter::Convert(NodeDef* node) {
  if (node->op() != "Const") return absl::OkStatus();
  const auto value = graph::GetTensor(*node, "value");
  if (!value.ok()) return value.status();
  const tensorflow::DataType dtype = (*value)->dtype();
  OPTFARM_ASSIGN_OR_RETURN(const int64_t elements,
                           graph::ElementCount((*value)->tensor_shape()));
  const int64_t width = graph::ElementBytes(dtype);
  if (width == 0 || elements < (min_bytes_ + width - 1) / width) {
    return absl::OkStatus();
  }
  OPTFARM_ASSIGN_OR_RETURN(const std::string bytes, RawBytes(**value));
  const tensorflow::TensorShapeProto shape = (*value)->tensor_shape();
  const std::string region = RegionName(node->name());
  out_.bytes.resize((out_.bytes.size() + kRegionAlignment - 1) /
                    kRegionAlignment * kRegionAlignment);
  AddRegion(region, bytes);
  node->set_op("ImmutableConst");
  node->clear_attr();
  graph::SetType(node, "dtype", dtype);
  graph::SetString(node, "memory_region_name", region);
  *(*node->mutable_attr())["shape"].mutable_shape() = shape;
  ++out_.converted_nodes;
  return absl::OkStatus();
}

absl::StatusOr<MemmappedBytes> PackageWriter::Finish(
    const tensorflow::GraphDef& graph) && {
  OPTFARM_ASSIGN_OR_RETURN(const std::string bytes, SerializeGraphDef(graph));
  AddRegion(GraphName(), bytes);
  const uint64_t directory_at = out_.bytes.size();
  directory_.AppendToString(&out_.bytes);
  for (int i = 0; i < 8; ++i) {
    out_.bytes += static_cast<char>(directory_at >> (8 * i));
  }
  return std::move(out_);
}

}  // namespace

absl::StatusOr<MemmappedBytes> SerializeMemmapped(tensorflow::GraphDef graph,
                                                  int64_t min_bytes) {
  if (min_bytes < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the least size of a tensor to convert must be above 0, got ",
        min_bytes));
  }
  PackageWriter writer(min_bytes);
  for (NodeDef& node : *graph.mutable_node()) {
    OPTFARM_RETURN_IF_ERROR(Annotate(
        writer.Convert(&node), absl::StrCat("constant '", node.name(), "'")));
  }
  return std::move(writer).Finish(graph);
}

}  // namespace optfarm::formats
