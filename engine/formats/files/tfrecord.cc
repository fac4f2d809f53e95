#include "engine/formats/files/tfrecord.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/files/crc32c.h"

namespace optfarm::formats {
namespace {

constexpr uint64_t kCrcBytes = 4;
constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kHeadBytes = kLengthBytes + kCrcBytes;

template <typename T>
void AppendLittleEndian(T value, std::string* bytes) {
  for (size_t i = 0; i < sizeof(T); ++i) {
    bytes->push_back(static_cast<char>(value >> (8 * i)));
  }
}

// REQUIRES: sizeof(T) bytes.
template <typename T>
T ReadLittleEndian(absl::string_view bytes) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) {
    value |= static_cast<T>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  return value;
}

bool HasGoodLength(absl::string_view head) {
  return UnmaskCrc(ReadLittleEndian<uint32_t>(head.substr(kLengthBytes))) ==
         Crc32c(head.substr(0, kLengthBytes));
}

// Why the first record cannot be read.
std::string WhyNoRecords(absl::string_view head) {
  const bool is_gzip = head.substr(0, 2) == "\x1f\x8b";
  const bool is_zlib = head.substr(0, 1) == "\x78";
  if (is_gzip || is_zlib) {
    return "the file is compressed; unpack it first (gzip -d, or write it "
           "without compression)";
  }
  return "its length has a wrong checksum; the file is no TFRecord file";
}

}  // namespace

void AppendRecord(absl::string_view record, std::string* file) {
  std::string length;
  AppendLittleEndian(static_cast<uint64_t>(record.size()), &length);
  file->append(length);
  AppendLittleEndian(MaskCrc(Crc32c(length)), file);
  file->append(record.data(), record.size());
  AppendLittleEndian(MaskCrc(Crc32c(record)), file);
}

bool IsRecordFile(absl::string_view bytes) {
  return bytes.size() >= kHeadBytes && HasGoodLength(bytes);
}

absl::StatusOr<RecordFile> RecordFile::Index(
    std::unique_ptr<RandomAccessFile> file) {
  RecordFile result;
  const uint64_t size = file->size();
  const auto wrong = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", file->name(), "', record ", result.records_.size(), ": ", what));
  };
  for (uint64_t at = 0; at < size;) {
    if (size - at < kHeadBytes) return wrong("the file ends within its length");
    OPTFARM_ASSIGN_OR_RETURN(const std::string head,
                             file->Read(at, kHeadBytes));
    if (!HasGoodLength(head)) {
      return wrong(at == 0 ? WhyNoRecords(head)
                           : "its length has a wrong checksum; the file is "
                             "damaged from there on");
    }
    const auto bytes = ReadLittleEndian<uint64_t>(head);
    if (bytes > kMaxRecordBytes) {
      return wrong(absl::StrCat("it has ", bytes, " bytes; at most ",
                                kMaxRecordBytes, " are read"));
    }
    at += kHeadBytes;
    if (size - at < bytes + kCrcBytes) {
      return wrong(absl::StrCat("it has ", bytes, " bytes, but the file ends ",
                                "before; it was cut off"));
    }
    if (result.records_.size() == kMaxRecords) {
      return wrong(absl::StrCat("at most ", kMaxRecords, " are read"));
    }
    result.records_.push_back({at, bytes});
    at += bytes + kCrcBytes;
  }
  result.file_ = std::move(file);
  return result;
}

absl::StatusOr<RecordFile> RecordFile::Open(const std::string& path) {
  OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<RandomAccessFile> file,
                           RandomAccessFile::Open(path));
  return Index(std::move(file));
}

absl::StatusOr<RecordFile> RecordFile::FromBytes(std::string bytes,
                                                 std::string name) {
  return Index(RandomAccessFile::FromBytes(std::move(bytes), std::move(name)));
}

absl::StatusOr<std::string> RecordFile::Read(int64_t index) const {
  const Place& place = records_[index];
  OPTFARM_ASSIGN_OR_RETURN(std::string record,
                           file_->Read(place.offset, place.bytes + kCrcBytes));
  const auto crc =
      ReadLittleEndian<uint32_t>(absl::string_view(record).substr(place.bytes));
  record.resize(place.bytes);
  if (UnmaskCrc(crc) != Crc32c(record)) {
    return absl::DataLossError(
        absl::StrCat("'", file_->name(), "', record ", index,
                     ": the checksum is wrong; the file is damaged"));
  }
  return record;
}

}  // namespace optfarm::formats
