#include "engine/formats/tensorflow/memmapped_package.h"

#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/nearest_names.h"
#include "base/status_macros.h"
#include "engine/formats/files/byte_reader.h"
#include "engine/formats/tensorflow/binary_graph.h"
#include "engine/graph/attr.h"
#include "engine/graph/ops/op_table.h"
#include "engine/graph/tensor_proto.h"
#include "google/protobuf/stubs/logging.h"
#include "tensorflow/core/util/memmapped_file_system.pb.h"

namespace optfarm::formats {
namespace {

using tensorflow::GraphDef;
using tensorflow::MemmappedFileSystemDirectory;
using tensorflow::NodeDef;

// The name of the region that has the graph, behind the prefix.
constexpr char kGraphRegion[] = ".";
constexpr uint64_t kOffsetBytes = 8;

std::shared_ptr<void> AlignedCopy(absl::string_view bytes) {
  const size_t rounded =
      (bytes.size() / kRegionAlignment + 1) * kRegionAlignment;
  std::shared_ptr<void> memory(std::aligned_alloc(kRegionAlignment, rounded),
                               std::free);
  if (memory != nullptr) std::memcpy(memory.get(), bytes.data(), bytes.size());
  return memory;
}

absl::Status MakeConstant(const MemmappedPackage& package, NodeDef* node) {
  OPTFARM_ASSIGN_OR_RETURN(const tensorflow::DataType dtype,
                           graph::GetType(*node, "dtype"));
  OPTFARM_ASSIGN_OR_RETURN(const std::string name,
                           graph::GetString(*node, "memory_region_name"));
  const tensorflow::AttrValue* shape = graph::FindAttr(*node, "shape");
  if (shape == nullptr || !shape->has_shape()) {
    return absl::InvalidArgumentError("attribute 'shape' is missing");
  }
  OPTFARM_ASSIGN_OR_RETURN(const int64_t elements,
                           graph::ElementCount(shape->shape()));
  OPTFARM_ASSIGN_OR_RETURN(const absl::string_view region, package.Find(name));
  const int64_t width = graph::ElementBytes(dtype);
  if (width == 0 || elements > static_cast<int64_t>(region.size()) / width) {
    return absl::InvalidArgumentError(absl::StrCat(
        "region '", name, "' has ", region.size(), " bytes, too few for ",
        elements, " elements of type ", graph::DataTypeName(dtype)));
  }
  tensorflow::TensorProto value;
  value.set_dtype(dtype);
  *value.mutable_tensor_shape() = shape->shape();
  value.set_tensor_content(region.data(), elements * width);
  node->set_op("Const");
  node->clear_attr();
  graph::SetType(node, "dtype", dtype);
  *(*node->mutable_attr())["value"].mutable_tensor() = std::move(value);
  return absl::OkStatus();
}

}  // namespace

absl::Status MemmappedPackage::Corrupted(absl::string_view what) const {
  return absl::DataLossError(absl::StrCat("Corrupted memmapped model file: '",
                                          name_, "' ", what,
                                          "; copy or convert it again"));
}

absl::StatusOr<std::shared_ptr<const MemmappedPackage>> MemmappedPackage::Parse(
    std::unique_ptr<MemmappedPackage> package) {
  OPTFARM_RETURN_IF_ERROR(package->ReadDirectory());
  return std::shared_ptr<const MemmappedPackage>(std::move(package));
}

absl::StatusOr<std::shared_ptr<const MemmappedPackage>> MemmappedPackage::Open(
    const std::string& path) {
  OPTFARM_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file,
                           MappedFile::Open(path));
  return FromFile(std::move(file), path);
}

absl::StatusOr<std::shared_ptr<const MemmappedPackage>>
MemmappedPackage::FromFile(std::shared_ptr<const MappedFile> file,
                           const std::string& path) {
  const absl::string_view bytes = file->bytes();
  std::unique_ptr<MemmappedPackage> package(
      new MemmappedPackage(path, bytes, std::move(file)));
  package->is_mapped_ = true;
  return Parse(std::move(package));
}

std::shared_ptr<const MemmappedPackage> MemmappedPackage::OfParts(
    std::shared_ptr<const MappedFile> file, const std::string& path,
    absl::flat_hash_map<std::string, absl::string_view> parts) {
  const absl::string_view bytes = file->bytes();
  std::shared_ptr<MemmappedPackage> package(
      new MemmappedPackage(path, bytes, std::move(file)));
  package->is_mapped_ = true;
  package->regions_ = std::move(parts);
  return package;
}

absl::StatusOr<std::shared_ptr<const MemmappedPackage>>
MemmappedPackage::FromBytes(absl::string_view bytes, const std::string& name) {
  std::shared_ptr<void> memory = AlignedCopy(bytes);
  if (memory == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for the ", bytes.size(), " bytes of ", name));
  }
  const absl::string_view copy(static_cast<const char*>(memory.get()),
                               bytes.size());
  return Parse(std::unique_ptr<MemmappedPackage>(
      new MemmappedPackage(name, copy, std::move(memory))));
}

absl::StatusOr<std::shared_ptr<const MemmappedPackage>>
MemmappedPackage::FromShared(SharedBytes bytes, const std::string& name) {
  return Parse(std::unique_ptr<MemmappedPackage>(
      new MemmappedPackage(name, bytes.bytes, std::move(bytes.owner))));
}

absl::StatusOr<std::shared_ptr<const MemmappedPackage>>
MemmappedPackage::FromView(absl::string_view bytes, const std::string& name) {
  return Parse(std::unique_ptr<MemmappedPackage>(
      new MemmappedPackage(name, bytes, nullptr)));
}

absl::Status MemmappedPackage::ReadDirectory() {
  google::protobuf::LogSilencer silencer;
  if (bytes_.size() <= kOffsetBytes) return Corrupted("is too short");
  const uint64_t end = bytes_.size() - kOffsetBytes;
  const uint64_t begin = ReadFixed64(bytes_.data() + end);
  if (begin >= end) {
    return Corrupted(absl::StrCat("has its directory at ", begin,
                                  ", which is not in its ", end, " bytes"));
  }
  MemmappedFileSystemDirectory directory;
  if (end - begin > kMaxGraphBytes ||
      !directory.ParseFromArray(bytes_.data() + begin,
                                static_cast<int>(end - begin))) {
    return Corrupted("has a directory that does not parse");
  }
  // Walked from the end, each region ends where the one after it begins.
  uint64_t next = begin;
  for (int i = directory.element_size() - 1; i >= 0; --i) {
    const auto& element = directory.element(i);
    const std::string what = absl::StrCat("region '", element.name(), "'");
    if (element.offset() >= next) {
      return Corrupted(absl::StrCat("has ", what, " at ", element.offset(),
                                    ", behind the one that follows it"));
    }
    // Old files do not tell the length.
    const uint64_t most = next - element.offset();
    const uint64_t length = element.length() == 0 ? most : element.length();
    if (length > most) {
      return Corrupted(absl::StrCat("has ", what, " of ", length,
                                    " bytes in the place of ", most));
    }
    if (!regions_
             .emplace(element.name(), bytes_.substr(element.offset(), length))
             .second) {
      return Corrupted(absl::StrCat("has ", what, " twice"));
    }
    next = element.offset();
  }
  return absl::OkStatus();
}

absl::StatusOr<absl::string_view> MemmappedPackage::Find(
    absl::string_view region) const {
  const auto it = regions_.find(region);
  if (it != regions_.end()) return it->second;
  std::vector<std::string> names;
  for (const auto& [name, bytes] : regions_) names.push_back(name);
  return absl::NotFoundError(absl::StrCat("'", name_, "' has no region '",
                                          region, "'",
                                          NearestNamesHint(region, names)));
}

absl::StatusOr<GraphDef> MemmappedPackage::Graph() const {
  const auto it = regions_.find(absl::StrCat(kRegionPrefix, kGraphRegion));
  if (it == regions_.end()) return Corrupted("has no graph");
  absl::StatusOr<GraphDef> graph = ParseBinaryGraphDef(
      it->second, absl::StrCat("the graph in '", name_, "'"));
  if (graph.ok()) return graph;
  return Corrupted(
      absl::StrCat("is damaged: ", std::string(graph.status().message())));
}

absl::StatusOr<GraphDef> MemmappedPackage::GraphWithConstants() const {
  OPTFARM_ASSIGN_OR_RETURN(GraphDef graph, Graph());
  for (NodeDef& node : *graph.mutable_node()) {
    if (!graph::HasRole(node.op(), graph::OpRole::kMappedConst)) continue;
    const absl::Status status = MakeConstant(*this, &node);
    if (!status.ok()) {
      return Corrupted(absl::StrCat("is damaged: node '", node.name(),
                                    "': ", std::string(status.message())));
    }
  }
  return graph;
}

}  // namespace optfarm::formats
