// Checkpoints of both versions behind the checksums of their tables. The input:
// version (odd: V1), number of entries, then each entry as length of the key,
// length of the value in two bytes, key, value; the rest is the data file.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "engine/formats/files/byte_reader.h"
#include "engine/formats/tensorflow/checkpoint_v1.h"
#include "engine/formats/tensorflow/tensor_bundle.h"
#include "tests/fuzz/table_maker.h"

namespace {

namespace formats = optfarm::formats;
using Entries = std::map<std::string, std::string>;

bool TakeEntry(formats::ByteReader* reader, Entries* entries) {
  uint8_t key_size = 0, low = 0, high = 0;
  absl::string_view key, value;
  if (!reader->TakeByte(&key_size) || !reader->TakeByte(&low) ||
      !reader->TakeByte(&high) || !reader->TakeBytes(key_size, &key) ||
      !reader->TakeBytes(low + 256u * high, &value)) {
    return false;
  }
  entries->emplace(key, value);
  return true;
}

void ReadAll(const formats::Checkpoint& checkpoint) {
  for (const formats::SavedTensor& tensor : checkpoint.tensors()) {
    (void)checkpoint.Read(tensor);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  formats::ByteReader reader(
      absl::string_view(reinterpret_cast<const char*>(data), size));
  uint8_t version = 0, count = 0;
  if (!reader.TakeByte(&version) || !reader.TakeByte(&count)) return 0;
  Entries entries;
  while (count-- > 0 && TakeEntry(&reader, &entries)) {
  }
  const std::string table = optfarm::testing::TableOf(entries);
  if (version % 2 == 1) {
    std::vector<std::unique_ptr<formats::RandomAccessFile>> files;
    files.push_back(formats::RandomAccessFile::FromBytes(table, "fuzz"));
    const auto checkpoint = formats::OpenCheckpointV1("fuzz", std::move(files));
    if (checkpoint.ok()) ReadAll(**checkpoint);
    return 0;
  }
  const std::string rest(reader.rest());
  int opened = 0;
  const auto open = [&](const std::string& path)
      -> absl::StatusOr<std::unique_ptr<formats::RandomAccessFile>> {
    if (++opened > 8) return absl::NotFoundError("enough");
    return formats::RandomAccessFile::FromBytes(
        absl::EndsWith(path, ".index") ? table : rest, path);
  };
  const auto bundle = formats::OpenTensorBundle("fuzz", open);
  if (bundle.ok()) ReadAll(**bundle);
  return 0;
}
