// Table files: every entry is visited, and each one's key found again. The
// first byte tells whether the rest is a file, or a block (0 plain, 1 snappy)
// that is put into one with a right checksum.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/check.h"
#include "engine/formats/tensorflow/table_file.h"
#include "tests/fuzz/table_maker.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace formats = optfarm::formats;
  if (size == 0) return 0;
  std::string bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  if (data[0] < 2) {
    bytes = optfarm::testing::TableOf(bytes, static_cast<char>(data[0]));
  }
  const auto table = formats::TableFile::Open(
      formats::RandomAccessFile::FromBytes(bytes, "fuzz"));
  if (!table.ok()) return 0;
  std::vector<std::string> keys;
  const absl::Status status =
      (*table)->ForEach([&](absl::string_view key, absl::string_view) {
        if (keys.size() < 100) keys.emplace_back(key);
        return absl::OkStatus();
      });
  if (!status.ok()) return 0;
  for (const std::string& key : keys) {
    const auto found = (*table)->Find(key);
    OPTFARM_CHECK(found.ok() && found->has_value());
  }
  return 0;
}
