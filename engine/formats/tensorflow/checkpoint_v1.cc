#include "engine/formats/tensorflow/checkpoint_v1.h"

#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/tensorflow/table_file.h"
#include "engine/formats/tensorflow/tensor_values.h"
#include "engine/graph/attr.h"
#include "engine/graph/tensor_proto.h"
#include "google/protobuf/stubs/logging.h"
#include "tensorflow/core/util/saved_tensor_slice.pb.h"

namespace optfarm::formats {
namespace {

using tensorflow::SavedSliceMeta;
using tensorflow::SavedTensorSlices;
using tensorflow::TensorProto;

constexpr int kReaderVersion = 1;
// Elements that one byte of a compressed file can hold at most.
constexpr uint64_t kMostElementsAByte = 22;

class CheckpointV1 final : public Checkpoint {
 public:
  CheckpointV1(const std::string& name, uint64_t most_elements,
               std::vector<std::unique_ptr<TableFile>> tables)
      : Checkpoint(name, 1, most_elements), tables_(std::move(tables)) {}

  absl::Status ReadLists();

 private:
  absl::Status AddList(size_t table, std::map<std::string, SavedTensor>* all);
  absl::Status AddParts(size_t table, const SavedSliceMeta& meta,
                        std::map<std::string, SavedTensor>* all);
  absl::StatusOr<Values> ReadPiece(const SavedTensor& tensor,
                                   const SavedPiece& piece) const override;

  struct Place {
    size_t table = 0;
    std::string key;
  };

  std::vector<std::unique_ptr<TableFile>> tables_;
  std::vector<Place> places_;
};

absl::Status CheckpointV1::AddParts(size_t table, const SavedSliceMeta& meta,
                                    std::map<std::string, SavedTensor>* all) {
  absl::StatusOr<std::vector<int64_t>> shape = KnownShape(meta.shape());
  if (!shape.ok()) {
    return absl::DataLossError(std::string(shape.status().message()));
  }
  const auto [it, added] = all->try_emplace(meta.name());
  SavedTensor& tensor = it->second;
  if (added) {
    tensor.name = meta.name();
    tensor.dtype = meta.type();
    tensor.shape = *shape;
  } else if (tensor.dtype != meta.type() || tensor.shape != *shape) {
    return absl::DataLossError(
        "two of the files give it different types or shapes");
  }
  for (const tensorflow::TensorSliceProto& slice : meta.slice()) {
    absl::StatusOr<TensorSlice> box = ResolveSlice(slice, tensor.shape);
    if (!box.ok()) {
      return absl::DataLossError(std::string(box.status().message()));
    }
    tensor.pieces.push_back({*std::move(box), places_.size()});
    places_.push_back({table, EncodeSliceKey(meta.name(), slice)});
  }
  return absl::OkStatus();
}

absl::Status CheckpointV1::AddList(size_t table,
                                   std::map<std::string, SavedTensor>* all) {
  const std::string& file = tables_[table]->name();
  OPTFARM_ASSIGN_OR_RETURN(const std::optional<std::string> bytes,
                           tables_[table]->Find(""));
  SavedTensorSlices list;
  if (!bytes || !list.ParseFromString(*bytes) || !list.has_meta()) {
    return absl::DataLossError(absl::StrCat(
        "'", file,
        "' is a table, but has no list of tensors: it is no V1 checkpoint. "
        "Of a V2 checkpoint give the prefix, without .index"));
  }
  const int needs = list.meta().versions().min_consumer();
  if (needs > kReaderVersion) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", file, "' needs a reader of version ", needs,
                     ", this one is version ", kReaderVersion));
  }
  for (const SavedSliceMeta& meta : list.meta().tensor()) {
    OPTFARM_RETURN_IF_ERROR(
        Annotate(AddParts(table, meta, all),
                 absl::StrCat("'", file, "': tensor '", meta.name(), "'")));
  }
  return absl::OkStatus();
}

absl::Status CheckpointV1::ReadLists() {
  google::protobuf::LogSilencer silencer;
  std::map<std::string, SavedTensor> all;
  for (size_t table = 0; table < tables_.size(); ++table) {
    OPTFARM_RETURN_IF_ERROR(AddList(table, &all));
  }
  std::vector<SavedTensor> tensors;
  for (auto& [name, tensor] : all) tensors.push_back(std::move(tensor));
  return SetTensors(std::move(tensors));
}

absl::StatusOr<Checkpoint::Values> CheckpointV1::ReadPiece(
    const SavedTensor& tensor, const SavedPiece& piece) const {
  google::protobuf::LogSilencer silencer;
  const Place& place = places_[piece.place];
  const TableFile& table = *tables_[place.table];
  const std::string where =
      absl::StrCat("part ", piece.slice.ToString(), " in '", table.name(), "'");
  OPTFARM_ASSIGN_OR_RETURN(const std::optional<std::string> bytes,
                           table.Find(place.key));
  if (!bytes) return absl::DataLossError(absl::StrCat(where, " is missing"));
  SavedTensorSlices saved;
  if (!saved.ParseFromString(*bytes) || !saved.has_data() ||
      saved.data().name() != tensor.name) {
    return absl::DataLossError(absl::StrCat(where, " does not parse"));
  }
  Values values;
  TensorProto& data = *saved.mutable_data()->mutable_data();
  const int64_t elements = piece.slice.Volume();
  int64_t stored = 0;
  if (tensor.dtype == tensorflow::DT_STRING) {
    stored = data.string_val_size();
    for (std::string& text : *data.mutable_string_val()) {
      values.strings.push_back(std::move(text));
    }
  } else {
    std::optional<std::string> listed = ListedBytes(tensor.dtype, data);
    if (!listed) {
      return absl::UnimplementedError(
          absl::StrCat(where, ": values of type ",
                       graph::DataTypeName(tensor.dtype), " cannot be read"));
    }
    values.bytes = *std::move(listed);
    stored = static_cast<int64_t>(values.bytes.size()) /
             graph::ElementBytes(tensor.dtype);
  }
  if (stored != elements) {
    return absl::DataLossError(absl::StrCat(
        where, " has ", stored, " values of type ",
        graph::DataTypeName(tensor.dtype), ", its shape asks for ", elements));
  }
  return values;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Checkpoint>> OpenCheckpointV1(
    const std::string& name,
    std::vector<std::unique_ptr<RandomAccessFile>> files) {
  std::vector<std::unique_ptr<TableFile>> tables;
  uint64_t bytes = 0;
  for (std::unique_ptr<RandomAccessFile>& file : files) {
    bytes += file->size();
    OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<TableFile> table,
                             TableFile::Open(std::move(file)));
    tables.push_back(std::move(table));
  }
  auto checkpoint = std::make_unique<CheckpointV1>(
      name, bytes * kMostElementsAByte, std::move(tables));
  OPTFARM_RETURN_IF_ERROR(checkpoint->ReadLists());
  return checkpoint;
}

}  // namespace optfarm::formats
