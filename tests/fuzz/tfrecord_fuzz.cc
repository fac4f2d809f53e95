// TFRecord files: every record is read; what reads well is written again and
// reads the same. The first byte tells whether the rest is a file, or a record
// that is put into one with right checksums.

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "engine/formats/files/tfrecord.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace formats = optfarm::formats;
  if (size == 0) return 0;
  std::string bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  if (data[0] % 2 == 1) {
    std::string file;
    formats::AppendRecord(bytes, &file);
    formats::AppendRecord("", &file);
    OPTFARM_CHECK(formats::IsRecordFile(file));
    bytes = std::move(file);
  }
  const bool looks_right = formats::IsRecordFile(bytes);
  const auto file = formats::RecordFile::FromBytes(bytes, "fuzz");
  if (!file.ok()) return 0;
  OPTFARM_CHECK(looks_right || file->size() == 0);
  std::string again;
  for (int64_t i = 0; i < file->size(); ++i) {
    const auto record = file->Read(i);
    if (!record.ok()) return 0;
    formats::AppendRecord(*record, &again);
  }
  OPTFARM_CHECK(again == bytes);
  return 0;
}
