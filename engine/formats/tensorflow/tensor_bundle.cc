#include "engine/formats/tensorflow/tensor_bundle.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "engine/formats/files/byte_reader.h"
#include "engine/formats/files/crc32c.h"
#include "engine/formats/tensorflow/table_file.h"
#include "engine/graph/attr.h"
#include "engine/graph/tensor_proto.h"
#include "google/protobuf/stubs/logging.h"
#include "tensorflow/core/protobuf/tensor_bundle.pb.h"

namespace optfarm::formats {
namespace {

using tensorflow::BundleEntryProto;
using tensorflow::BundleHeaderProto;

// What we can read; a writer that needs a newer reader says so.
constexpr int kReaderVersion = 1;
constexpr int kMaxShards = 99999;

// Turns the byte order of elements of `unit` bytes around.
void SwapBytes(size_t unit, std::string* bytes) {
  if (unit < 2) return;
  for (size_t at = 0; at + unit <= bytes->size(); at += unit) {
    std::reverse(bytes->begin() + at, bytes->begin() + at + unit);
  }
}

size_t SwapUnit(tensorflow::DataType dtype) {
  const auto width = static_cast<size_t>(graph::ElementBytes(dtype));
  const bool is_complex =
      dtype == tensorflow::DT_COMPLEX64 || dtype == tensorflow::DT_COMPLEX128;
  return is_complex ? width / 2 : width;
}

class TensorBundle final : public Checkpoint {
 public:
  TensorBundle(const std::string& prefix, bool is_big_endian,
               std::vector<std::unique_ptr<RandomAccessFile>> shards,
               uint64_t stored_bytes)
      : Checkpoint(prefix, 2, stored_bytes),
        is_big_endian_(is_big_endian),
        shards_(std::move(shards)) {}

  // Takes the entries of the index.
  absl::Status Fill(const std::map<std::string, std::string>& entries);

 private:
  absl::Status AddTensor(const std::string& name, BundleEntryProto entry,
                         const std::map<std::string, std::string>& entries,
                         std::vector<SavedTensor>* tensors);
  absl::Status AddPiece(TensorSlice slice, BundleEntryProto entry,
                        SavedTensor* tensor);
  absl::StatusOr<Values> ReadPiece(const SavedTensor& tensor,
                                   const SavedPiece& piece) const override;
  absl::StatusOr<Values> ReadStrings(const std::string& bytes, int64_t count,
                                     uint32_t wanted_crc) const;
  // A number as the machine that wrote the file had it in memory.
  std::string WriterBytes(uint64_t value, size_t width) const;

  bool is_big_endian_;
  std::vector<std::unique_ptr<RandomAccessFile>> shards_;
  std::vector<BundleEntryProto> places_;
};

absl::StatusOr<BundleEntryProto> ParseEntry(const std::string& bytes) {
  BundleEntryProto entry;
  if (!entry.ParseFromString(bytes)) {
    return absl::DataLossError("its index entry does not parse");
  }
  return entry;
}

absl::Status TensorBundle::AddPiece(TensorSlice slice, BundleEntryProto entry,
                                    SavedTensor* tensor) {
  if (entry.shard_id() < 0 ||
      static_cast<size_t>(entry.shard_id()) >= shards_.size()) {
    return absl::DataLossError(absl::StrCat(
        "it is in data file ", entry.shard_id(), " of ", shards_.size()));
  }
  const RandomAccessFile& shard = *shards_[entry.shard_id()];
  const auto offset = static_cast<uint64_t>(entry.offset());
  const auto size = static_cast<uint64_t>(entry.size());
  if (entry.offset() < 0 || entry.size() < 0 || offset > shard.size() ||
      size > shard.size() - offset) {
    return absl::DataLossError(absl::StrCat(
        "its ", entry.size(), " bytes at ", entry.offset(), " are not in '",
        shard.name(), "', which has ", shard.size(), "; is it complete?"));
  }
  // What cannot be read may still be in the file.
  const int64_t width = graph::ElementBytes(tensor->dtype);
  const int64_t elements = slice.Volume();
  const bool is_string = tensor->dtype == tensorflow::DT_STRING;
  if ((width > 0 &&
       (entry.size() / width != elements || entry.size() % width != 0)) ||
      (is_string && elements > entry.size())) {
    return absl::DataLossError(
        absl::StrCat(entry.size(), " bytes are stored for ", elements,
                     " elements of type ", graph::DataTypeName(tensor->dtype)));
  }
  tensor->pieces.push_back({std::move(slice), places_.size()});
  places_.push_back(std::move(entry));
  return absl::OkStatus();
}

absl::Status TensorBundle::AddTensor(
    const std::string& name, BundleEntryProto entry,
    const std::map<std::string, std::string>& entries,
    std::vector<SavedTensor>* tensors) {
  SavedTensor tensor;
  tensor.name = name;
  tensor.dtype = entry.dtype();
  absl::StatusOr<std::vector<int64_t>> shape = KnownShape(entry.shape());
  if (!shape.ok()) {
    return absl::DataLossError(std::string(shape.status().message()));
  }
  tensor.shape = *std::move(shape);
  if (entry.slices().empty()) {
    OPTFARM_RETURN_IF_ERROR(
        AddPiece(WholeTensor(tensor.shape), std::move(entry), &tensor));
  }
  for (const tensorflow::TensorSliceProto& slice : entry.slices()) {
    absl::StatusOr<TensorSlice> box = ResolveSlice(slice, tensor.shape);
    if (!box.ok()) {
      return absl::DataLossError(std::string(box.status().message()));
    }
    const auto part = entries.find(EncodeSliceKey(name, slice));
    if (part == entries.end()) {
      return absl::DataLossError(
          absl::StrCat("part ", box->ToString(), " is missing in the index"));
    }
    OPTFARM_ASSIGN_OR_RETURN(BundleEntryProto piece, ParseEntry(part->second));
    if (piece.dtype() != tensor.dtype) {
      return absl::DataLossError(
          absl::StrCat("part ", box->ToString(), " is of type ",
                       graph::DataTypeName(piece.dtype()), ", the tensor is ",
                       graph::DataTypeName(tensor.dtype)));
    }
    OPTFARM_RETURN_IF_ERROR(
        AddPiece(*std::move(box), std::move(piece), &tensor));
  }
  tensors->push_back(std::move(tensor));
  return absl::OkStatus();
}

absl::Status TensorBundle::Fill(
    const std::map<std::string, std::string>& entries) {
  std::vector<SavedTensor> tensors;
  for (const auto& [key, value] : entries) {
    // Parts are found by way of the tensor they belong to.
    if (key.empty() || key[0] == '\0') continue;
    absl::StatusOr<BundleEntryProto> entry = ParseEntry(value);
    absl::Status status = entry.status();
    if (status.ok()) {
      status = AddTensor(key, *std::move(entry), entries, &tensors);
    }
    OPTFARM_RETURN_IF_ERROR(
        Annotate(status, absl::StrCat("'", name(), "': tensor '", key, "'")));
  }
  return SetTensors(std::move(tensors));
}

std::string TensorBundle::WriterBytes(uint64_t value, size_t width) const {
  std::string bytes;
  for (size_t i = 0; i < width; ++i) {
    bytes += static_cast<char>(value >> (8 * i));
  }
  if (is_big_endian_) std::reverse(bytes.begin(), bytes.end());
  return bytes;
}

absl::StatusOr<Checkpoint::Values> TensorBundle::ReadStrings(
    const std::string& bytes, int64_t count, uint32_t wanted_crc) const {
  ByteReader reader(bytes);
  std::vector<uint64_t> lengths(count);
  uint32_t crc = 0;
  for (uint64_t& length : lengths) {
    if (!reader.TakeVarint64(&length)) {
      return absl::DataLossError("the lengths of its strings are cut off");
    }
    crc = ExtendCrc32c(crc, WriterBytes(length, length > UINT32_MAX ? 8 : 4));
  }
  absl::string_view stored;
  if (!reader.TakeBytes(4, &stored) || stored != WriterBytes(MaskCrc(crc), 4)) {
    return absl::DataLossError(
        "checksum mismatch in the lengths of its strings");
  }
  crc = ExtendCrc32c(crc, stored);
  Values values;
  for (const uint64_t length : lengths) {
    absl::string_view text;
    if (!reader.TakeBytes(length, &text)) {
      return absl::DataLossError("its strings are cut off");
    }
    crc = ExtendCrc32c(crc, text);
    values.strings.emplace_back(text);
  }
  if (!reader.empty()) {
    return absl::DataLossError("bytes are left over behind its strings");
  }
  if (crc != wanted_crc) return absl::DataLossError("checksum mismatch");
  return values;
}

absl::StatusOr<Checkpoint::Values> TensorBundle::ReadPiece(
    const SavedTensor& tensor, const SavedPiece& piece) const {
  const BundleEntryProto& entry = places_[piece.place];
  const RandomAccessFile& shard = *shards_[entry.shard_id()];
  const std::string where =
      absl::StrCat("bytes ", entry.offset(), " to ",
                   entry.offset() + entry.size(), " of '", shard.name(), "'");
  OPTFARM_ASSIGN_OR_RETURN(std::string bytes,
                           shard.Read(entry.offset(), entry.size()));
  const uint32_t wanted = UnmaskCrc(entry.crc32c());
  if (tensor.dtype == tensorflow::DT_STRING) {
    absl::StatusOr<Values> values =
        ReadStrings(bytes, piece.slice.Volume(), wanted);
    if (!values.ok()) return Annotate(values.status(), where);
    return values;
  }
  if (Crc32c(bytes) != wanted) {
    return absl::DataLossError(absl::StrCat(
        where, ": checksum mismatch; copy or download the file again"));
  }
  if (is_big_endian_) SwapBytes(SwapUnit(tensor.dtype), &bytes);
  Values values;
  values.bytes = std::move(bytes);
  return values;
}

absl::StatusOr<BundleHeaderProto> ParseHeader(
    const std::map<std::string, std::string>& entries) {
  const auto it = entries.find("");
  BundleHeaderProto header;
  if (it == entries.end() || !header.ParseFromString(it->second)) {
    return absl::DataLossError(
        "it has no header; is it the .index file of a V2 checkpoint?");
  }
  if (header.version().min_consumer() > kReaderVersion) {
    return absl::InvalidArgumentError(absl::StrCat(
        "it needs a reader of version ", header.version().min_consumer(),
        ", this one is version ", kReaderVersion));
  }
  if (header.num_shards() < 0 || header.num_shards() > kMaxShards ||
      !BundleHeaderProto::Endianness_IsValid(header.endianness())) {
    return absl::DataLossError(
        absl::StrCat("its header speaks of ", header.num_shards(),
                     " data files and byte order ", header.endianness()));
  }
  return header;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Checkpoint>> OpenTensorBundle(
    const std::string& prefix, const FileOpener& open) {
  google::protobuf::LogSilencer silencer;
  const std::string index_path = absl::StrCat(prefix, ".index");
  OPTFARM_ASSIGN_OR_RETURN(auto index_file, open(index_path));
  OPTFARM_ASSIGN_OR_RETURN(const auto table,
                           TableFile::Open(std::move(index_file)));
  std::map<std::string, std::string> entries;
  OPTFARM_RETURN_IF_ERROR(
      table->ForEach([&](absl::string_view key, absl::string_view value) {
        entries.emplace(key, value);
        return absl::OkStatus();
      }));
  absl::StatusOr<BundleHeaderProto> header = ParseHeader(entries);
  if (!header.ok()) {
    return Annotate(header.status(), absl::StrCat("'", index_path, "'"));
  }
  std::vector<std::unique_ptr<RandomAccessFile>> shards;
  uint64_t stored_bytes = 0;
  for (int i = 0; i < header->num_shards(); ++i) {
    absl::StatusOr<std::unique_ptr<RandomAccessFile>> shard =
        open(absl::StrFormat("%s.data-%05d-of-%05d", prefix, i,
                             header->num_shards()));
    if (!shard.ok()) {
      return Annotate(
          shard.status(),
          absl::StrCat("data file ", i + 1, " of ", header->num_shards(),
                       " of checkpoint '", prefix, "'"));
    }
    stored_bytes += (*shard)->size();
    shards.push_back(*std::move(shard));
  }
  const bool is_big_endian = header->endianness() == BundleHeaderProto::BIG;
  auto bundle = std::make_unique<TensorBundle>(prefix, is_big_endian,
                                               std::move(shards), stored_bytes);
  OPTFARM_RETURN_IF_ERROR(bundle->Fill(entries));
  return bundle;
}

}  // namespace optfarm::formats
