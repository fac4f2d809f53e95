// Makes a memory-mapped package of a graph.

#include <functional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "engine/formats/tensorflow/graph_file.h"
#include "engine/formats/tensorflow/memmapped_package.h"
#include "engine/formats/tensorflow/tensor_values.h"
#include "engine/graph/attr.h"
#include "engine/graph/ops/op_table.h"
#include "engine/graph/tensor_proto.h"
#include "tensorflow/core/util/memmapped_file_system.pb.h"

namespace optfarm::formats {
namespace {

using tensorflow::NodeDef;

// Takes the file's bytes, piece by piece.
using Sink = std::function<absl::Status(absl::string_view bytes)>;

class PackageWriter {
 public:
  PackageWriter(int64_t min_bytes, Sink sink)
      : min_bytes_(min_bytes), sink_(std::move(sink)) {
    names_.insert(GraphName());
  }

  // Moves the node's value into a region if it is large enough.
  absl::Status Convert(NodeDef* node);
  // Returns the number of nodes that were converted.
  absl::StatusOr<int> Finish(const tensorflow::GraphDef& graph);

 private:
  static std::string GraphName() { return absl::StrCat(kRegionPrefix, "."); }
  std::string RegionName(absl::string_view node);
  absl::Status AddRegion(const std::string& name, absl::string_view bytes);
  absl::Status Append(absl::string_view bytes);

  int64_t min_bytes_;
  Sink sink_;
  absl::flat_hash_set<std::string> names_;
  tensorflow::MemmappedFileSystemDirectory directory_;
  uint64_t size_ = 0;
  int converted_nodes_ = 0;
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
    if (tries >= kMostUnderscores) absl::StrAppend(&name, converted_nodes_);
  }
  return name;
}

absl::Status PackageWriter::Append(absl::string_view bytes) {
  size_ += bytes.size();
  return sink_(bytes);
}

absl::Status PackageWriter::AddRegion(const std::string& name,
                                      absl::string_view bytes) {
  auto* element = directory_.add_element();
  element->set_offset(size_);
  element->set_name(name);
  element->set_length(bytes.size());
  return Append(bytes);
}

absl::Status PackageWriter::Convert(NodeDef* node) {
  if (!graph::IsConst(node->op())) return absl::OkStatus();
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
  const uint64_t padding =
      (kRegionAlignment - size_ % kRegionAlignment) % kRegionAlignment;
  OPTFARM_RETURN_IF_ERROR(Append(std::string(padding, '\0')));
  OPTFARM_RETURN_IF_ERROR(AddRegion(region, bytes));
  node->set_op("ImmutableConst");
  node->clear_attr();
  graph::SetType(node, "dtype", dtype);
  graph::SetString(node, "memory_region_name", region);
  *(*node->mutable_attr())["shape"].mutable_shape() = shape;
  ++converted_nodes_;
  return absl::OkStatus();
}

absl::StatusOr<int> PackageWriter::Finish(const tensorflow::GraphDef& graph) {
  OPTFARM_ASSIGN_OR_RETURN(const std::string bytes, SerializeGraphDef(graph));
  OPTFARM_RETURN_IF_ERROR(AddRegion(GraphName(), bytes));
  std::string end = directory_.SerializeAsString();
  for (int i = 0; i < 8; ++i) end += static_cast<char>(size_ >> (8 * i));
  OPTFARM_RETURN_IF_ERROR(Append(end));
  return converted_nodes_;
}

absl::StatusOr<int> WriteTo(Sink sink, tensorflow::GraphDef graph,
                            int64_t min_bytes) {
  if (min_bytes < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the least size of a tensor to convert must be above 0, got ",
        min_bytes));
  }
  PackageWriter writer(min_bytes, std::move(sink));
  for (NodeDef& node : *graph.mutable_node()) {
    OPTFARM_RETURN_IF_ERROR(Annotate(
        writer.Convert(&node), absl::StrCat("constant '", node.name(), "'")));
  }
  return writer.Finish(graph);
}

}  // namespace

absl::StatusOr<MemmappedBytes> SerializeMemmapped(tensorflow::GraphDef graph,
                                                  int64_t min_bytes) {
  MemmappedBytes made;
  const Sink sink = [&made](absl::string_view bytes) {
    made.bytes.append(bytes.data(), bytes.size());
    return absl::OkStatus();
  };
  OPTFARM_ASSIGN_OR_RETURN(made.converted_nodes,
                           WriteTo(sink, std::move(graph), min_bytes));
  return made;
}

absl::StatusOr<int> SaveMemmapped(tensorflow::GraphDef graph, int64_t min_bytes,
                                  const std::string& path) {
  OPTFARM_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  const Sink sink = [&file](absl::string_view bytes) {
    return file.Append(bytes);
  };
  OPTFARM_ASSIGN_OR_RETURN(const int converted,
                           WriteTo(sink, std::move(graph), min_bytes));
  OPTFARM_RETURN_IF_ERROR(file.Commit());
  return converted;
}

}  // namespace optfarm::formats
