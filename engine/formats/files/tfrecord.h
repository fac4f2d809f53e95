// TFRecord files, also those that TensorBoard reads: records one after the
// other, each
//
//   length       uint64, little endian
//   masked CRC   of the length's eight bytes
//   bytes        as many as the length says
//   masked CRC   of these bytes
//
// with CRC-32C (crc32c.h). The files have no mark and no index.

#ifndef OPTFARM_ENGINE_FORMATS_FILES_TFRECORD_H_
#define OPTFARM_ENGINE_FORMATS_FILES_TFRECORD_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/formats/files/random_access_file.h"

namespace optfarm::formats {

// UNITS: bytes. Longer records are refused.
inline constexpr uint64_t kMaxRecordBytes = uint64_t{256} << 20;
// More records in one file are refused.
inline constexpr size_t kMaxRecords = 10'000'000;

// Adds a record to the bytes of a file.
void AppendRecord(absl::string_view record, std::string* file);

// Whether a file that begins with these bytes is one of records: its first
// length has the checksum that belongs to it. 12 bytes are enough.
bool IsRecordFile(absl::string_view bytes);

// THREADS: Read may be called from several threads.
class RecordFile {
 public:
  // Goes through the file from length to length.
  // ERRORS: those of opening and reading the file; InvalidArgument naming the
  // record for a length with a wrong checksum (compressed files are named as
  // such), one that is beyond the file's end or the limit; too many records.
  static absl::StatusOr<RecordFile> Open(const std::string& path);
  // The same over bytes in memory.
  static absl::StatusOr<RecordFile> FromBytes(std::string bytes,
                                              std::string name);

  int64_t size() const { return static_cast<int64_t>(records_.size()); }

  // The bytes of one record. REQUIRES: 0 <= index < size().
  // ERRORS: DataLoss for a wrong checksum; Unavailable when reading fails.
  absl::StatusOr<std::string> Read(int64_t index) const;

 private:
  struct Place {
    uint64_t offset = 0;
    uint64_t bytes = 0;
  };

  static absl::StatusOr<RecordFile> Index(
      std::unique_ptr<RandomAccessFile> file);

  std::unique_ptr<RandomAccessFile> file_;
  std::vector<Place> records_;
};

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_FILES_TFRECORD_H_
