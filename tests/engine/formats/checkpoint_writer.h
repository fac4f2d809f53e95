// Writes tables and checkpoints for tests. Tables are written by LevelDB, whose
// layout is the same: an independent judge of our reader.

#ifndef OPTFARM_TESTS_ENGINE_FORMATS_CHECKPOINT_WRITER_H_
#define OPTFARM_TESTS_ENGINE_FORMATS_CHECKPOINT_WRITER_H_

#include <gtest/gtest.h>
#include <leveldb/env.h>
#include <leveldb/options.h>
#include <leveldb/table_builder.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/files.h"
#include "engine/formats/files/crc32c.h"
#include "engine/formats/tensorflow/tensor_slice.h"
#include "tensorflow/core/framework/types.pb.h"
#include "tensorflow/core/protobuf/tensor_bundle.pb.h"
#include "tensorflow/core/util/saved_tensor_slice.pb.h"
#include "tests/support/test_data.h"

namespace optfarm::testing {

struct TableOptions {
  bool snappy = false;
  // UNITS: bytes. Small: many blocks.
  size_t block_size = 4096;
};

// Writes a table file.
inline void WriteTable(const std::string& path,
                       const std::map<std::string, std::string>& entries,
                       const TableOptions& options = {}) {
  leveldb::WritableFile* raw = nullptr;
  ASSERT_TRUE(leveldb::Env::Default()->NewWritableFile(path, &raw).ok());
  const std::unique_ptr<leveldb::WritableFile> file(raw);
  leveldb::Options how;
  how.block_size = options.block_size;
  how.compression =
      options.snappy ? leveldb::kSnappyCompression : leveldb::kNoCompression;
  leveldb::TableBuilder builder(how, file.get());
  for (const auto& [key, value] : entries) builder.Add(key, value);
  ASSERT_TRUE(builder.Finish().ok());
  ASSERT_TRUE(file->Close().ok());
}

// The same as bytes.
inline std::string TableBytes(const std::map<std::string, std::string>& entries,
                              const TableOptions& options = {}) {
  const std::string path = JoinPath(FreshFolder(), "table");
  WriteTable(path, entries, options);
  return ReadFile(path).value_or("");
}

inline std::string FloatBytes(const std::vector<float>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()),
                     values.size() * sizeof(float));
}

// A box given as {start, length} for each axis.
inline tensorflow::TensorSliceProto SliceOf(
    const std::vector<std::pair<int64_t, int64_t>>& extents) {
  tensorflow::TensorSliceProto slice;
  for (const auto& [start, length] : extents) {
    auto* extent = slice.add_extent();
    extent->set_start(start);
    if (length >= 0) extent->set_length(length);
  }
  return slice;
}

inline void SetShape(const std::vector<int64_t>& sizes,
                     tensorflow::TensorShapeProto* shape) {
  for (const int64_t size : sizes) shape->add_dim()->set_size(size);
}

// A V2 checkpoint. Entries may be changed before Write.
class BundleWriter {
 public:
  explicit BundleWriter(int shards = 1, bool big_endian = false)
      : data(shards), big_endian_(big_endian) {
    header.set_num_shards(shards);
    header.mutable_version()->set_producer(1);
    if (big_endian) {
      header.set_endianness(tensorflow::BundleHeaderProto::BIG);
    }
  }

  // `bytes` as the writing machine has them in memory.
  void Add(const std::string& name, tensorflow::DataType dtype,
           const std::vector<int64_t>& shape, const std::string& bytes,
           int shard = 0) {
    Store(name, dtype, shape, bytes, formats::Crc32c(bytes), shard);
  }

  void AddStrings(const std::string& name, const std::vector<int64_t>& shape,
                  const std::vector<std::string>& texts) {
    std::string lengths, counted;
    for (const std::string& text : texts) {
      lengths += static_cast<char>(text.size());  // Varints below 128.
      counted += Number(static_cast<uint32_t>(text.size()));
    }
    const std::string check =
        Number(formats::MaskCrc(formats::Crc32c(counted)));
    std::string all = counted + check, bytes = lengths + check;
    for (const std::string& text : texts) {
      all += text;
      bytes += text;
    }
    Store(name, tensorflow::DT_STRING, shape, bytes, formats::Crc32c(all), 0);
  }

  // Declares a tensor that is stored in parts; AddPart adds them.
  void AddPartitioned(const std::string& name, tensorflow::DataType dtype,
                      const std::vector<int64_t>& shape,
                      const std::vector<tensorflow::TensorSliceProto>& slices) {
    tensorflow::BundleEntryProto& entry = entries[name];
    entry.set_dtype(dtype);
    SetShape(shape, entry.mutable_shape());
    for (const auto& slice : slices) *entry.add_slices() = slice;
  }
  void AddPart(const std::string& name,
               const tensorflow::TensorSliceProto& slice,
               tensorflow::DataType dtype, const std::vector<int64_t>& shape,
               const std::string& bytes, int shard = 0) {
    Store(formats::EncodeSliceKey(name, slice), dtype, shape, bytes,
          formats::Crc32c(bytes), shard);
  }

  void Write(const std::string& prefix, const TableOptions& options = {}) {
    std::map<std::string, std::string> table;
    table[""] = header.SerializeAsString();
    for (const auto& [key, entry] : entries) {
      table[key] = entry.SerializeAsString();
    }
    WriteTable(absl::StrCat(prefix, ".index"), table, options);
    for (size_t i = 0; i < data.size(); ++i) {
      ASSERT_TRUE(WriteFileAtomically(absl::StrFormat("%s.data-%05d-of-%05d",
                                                      prefix, i, data.size()),
                                      data[i])
                      .ok());
    }
  }

  tensorflow::BundleHeaderProto header;
  std::map<std::string, tensorflow::BundleEntryProto> entries;
  std::vector<std::string> data;

 private:
  std::string Number(uint32_t value) const {
    std::string bytes(reinterpret_cast<const char*>(&value), 4);
    if (big_endian_) std::reverse(bytes.begin(), bytes.end());
    return bytes;
  }

  void Store(const std::string& key, tensorflow::DataType dtype,
             const std::vector<int64_t>& shape, const std::string& bytes,
             uint32_t crc, int shard) {
    tensorflow::BundleEntryProto& entry = entries[key];
    entry.set_dtype(dtype);
    SetShape(shape, entry.mutable_shape());
    entry.set_shard_id(shard);
    entry.set_offset(static_cast<int64_t>(data[shard].size()));
    entry.set_size(static_cast<int64_t>(bytes.size()));
    entry.set_crc32c(formats::MaskCrc(crc));
    data[shard] += bytes;
  }

  bool big_endian_;
};

// One file of a V1 checkpoint.
class CheckpointV1Writer {
 public:
  // The values are those of `data`, in its typed list.
  void AddPart(const std::string& name, tensorflow::DataType dtype,
               const std::vector<int64_t>& shape,
               const tensorflow::TensorSliceProto& slice,
               const tensorflow::TensorProto& data) {
    tensorflow::SavedSliceMeta* meta = nullptr;
    for (auto& known : *list.mutable_meta()->mutable_tensor()) {
      if (known.name() == name) meta = &known;
    }
    if (meta == nullptr) {
      meta = list.mutable_meta()->add_tensor();
      meta->set_name(name);
      meta->set_type(dtype);
      SetShape(shape, meta->mutable_shape());
    }
    *meta->add_slice() = slice;
    tensorflow::SavedTensorSlices part;
    part.mutable_data()->set_name(name);
    *part.mutable_data()->mutable_slice() = slice;
    *part.mutable_data()->mutable_data() = data;
    parts[formats::EncodeSliceKey(name, slice)] = part.SerializeAsString();
  }

  void AddFloats(const std::string& name, const std::vector<int64_t>& shape,
                 const std::vector<float>& values) {
    tensorflow::TensorProto data;
    for (const float value : values) data.add_float_val(value);
    tensorflow::TensorSliceProto whole;
    for (size_t i = 0; i < shape.size(); ++i) whole.add_extent();
    AddPart(name, tensorflow::DT_FLOAT, shape, whole, data);
  }

  void Write(const std::string& path, const TableOptions& options = {}) {
    std::map<std::string, std::string> table = parts;
    table[""] = list.SerializeAsString();
    WriteTable(path, table, options);
  }

  tensorflow::SavedTensorSlices list;
  std::map<std::string, std::string> parts;
};

}  // namespace optfarm::testing

#endif  // OPTFARM_TESTS_ENGINE_FORMATS_CHECKPOINT_WRITER_H_
