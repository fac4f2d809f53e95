#include "engine/formats/tensorflow/table_file.h"

#include <snappy.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/files/byte_reader.h"
#include "engine/formats/files/crc32c.h"

namespace optfarm::formats {
namespace {

constexpr uint64_t kFooterBytes = 48;
constexpr uint64_t kMagic = 0xdb4775248b80fb57;
// Type byte and CRC behind every block.
constexpr uint64_t kTrailerBytes = 5;

enum Compression : char { kUncompressed = 0, kSnappy = 1 };

// Snappy's densest element makes 64 bytes of 3.
constexpr uint64_t kMostSnappyGrowth = 22;

// Walks the entries of one uncompressed block.
class BlockReader {
 public:
  explicit BlockReader(absl::string_view block) : all_(block), entries_("") {}

  // Finds the entries between the block's begin and its restart points.
  // Returns false when they do not fit in.
  bool Start() {
    if (all_.size() < 4) return false;
    const uint64_t restarts = ReadFixed32(all_.data() + all_.size() - 4);
    if (restarts > (all_.size() - 4) / 4) return false;
    entries_ = ByteReader(all_.substr(0, all_.size() - 4 - restarts * 4));
    return true;
  }

  bool AtEnd() const { return entries_.empty(); }

  // Returns what is wrong with the next entry, "" for nothing.
  absl::string_view Next() {
    uint32_t shared = 0, unshared = 0, value_size = 0;
    absl::string_view suffix;
    if (!entries_.TakeVarint32(&shared) || !entries_.TakeVarint32(&unshared) ||
        !entries_.TakeVarint32(&value_size) || shared > key_.size() ||
        !entries_.TakeBytes(unshared, &suffix) ||
        !entries_.TakeBytes(value_size, &value_)) {
      return "an entry is cut off";
    }
    if (shared + suffix.size() > kMaxTableKeyBytes) return "a key is too long";
    // What is shared is equal: the rest decides.
    if (!first_ && suffix <= absl::string_view(key_).substr(shared)) {
      return "the keys do not rise";
    }
    first_ = false;
    key_.resize(shared);
    key_.append(suffix.data(), suffix.size());
    return "";
  }

  absl::string_view key() const { return key_; }
  absl::string_view value() const { return value_; }

 private:
  absl::string_view all_;
  ByteReader entries_;
  bool first_ = true;
  std::string key_;
  absl::string_view value_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TableFile>> TableFile::Open(
    std::unique_ptr<RandomAccessFile> file) {
  std::unique_ptr<TableFile> table(new TableFile(std::move(file)));
  OPTFARM_RETURN_IF_ERROR(table->ReadFooterAndIndex());
  return table;
}

absl::Status TableFile::Damaged(const Handle& handle,
                                absl::string_view what) const {
  return absl::DataLossError(absl::StrCat(
      "'", name(), "' is damaged: ", what, " (block of ", handle.size,
      " bytes at ", handle.offset, "); copy or download it again"));
}

absl::StatusOr<TableFile::Handle> TableFile::ParseHandle(
    absl::string_view* bytes, absl::string_view what) const {
  ByteReader reader(*bytes);
  Handle handle;
  const bool whole =
      reader.TakeVarint64(&handle.offset) && reader.TakeVarint64(&handle.size);
  const uint64_t end = file_->size() - kFooterBytes;
  if (!whole || handle.offset > end || handle.size > end - handle.offset ||
      kTrailerBytes > end - handle.offset - handle.size) {
    return absl::DataLossError(absl::StrCat(
        "'", name(), "' is damaged: the place of ", what,
        whole
            ? absl::StrCat(" (", handle.size, " bytes at ", handle.offset, ")")
            : "",
        " is not in the file, which has ", file_->size(),
        " bytes; copy or download it again"));
  }
  *bytes = reader.rest();
  return handle;
}

absl::Status TableFile::ReadFooterAndIndex() {
  if (file_->size() < kFooterBytes) {
    return absl::DataLossError(absl::StrCat(
        "'", name(), "': file is too short to be an sstable: ", file_->size(),
        " bytes; was it copied completely?"));
  }
  OPTFARM_ASSIGN_OR_RETURN(
      const std::string footer,
      file_->Read(file_->size() - kFooterBytes, kFooterBytes));
  if (ReadFixed64(footer.data() + kFooterBytes - 8) != kMagic) {
    return absl::DataLossError(
        absl::StrCat("'", name(),
                     "': not an sstable (bad magic number): no checkpoint, or "
                     "cut off"));
  }
  absl::string_view handles(footer.data(), kFooterBytes - 8);
  OPTFARM_RETURN_IF_ERROR(ParseHandle(&handles, "the meta index").status());
  OPTFARM_ASSIGN_OR_RETURN(const Handle index,
                           ParseHandle(&handles, "the index"));
  return VisitBlock(index, [&](absl::string_view key, absl::string_view value) {
    OPTFARM_ASSIGN_OR_RETURN(const Handle block,
                             ParseHandle(&value, "a block"));
    if (!value.empty()) return Damaged(index, "an index entry is too long");
    index_.push_back({std::string(key), block});
    return absl::OkStatus();
  });
}

absl::StatusOr<std::string> TableFile::ReadBlock(const Handle& handle) const {
  if (handle.size > kMaxTableBlockBytes) {
    return Damaged(handle, "the block is larger than any checkpoint has");
  }
  OPTFARM_ASSIGN_OR_RETURN(
      std::string bytes,
      file_->Read(handle.offset, handle.size + kTrailerBytes));
  const uint32_t stored = UnmaskCrc(ReadFixed32(&bytes[handle.size + 1]));
  if (stored != Crc32c(absl::string_view(bytes).substr(0, handle.size + 1))) {
    return Damaged(handle, "block checksum mismatch");
  }
  const char type = bytes[handle.size];
  bytes.resize(handle.size);
  if (type == kUncompressed) return bytes;
  if (type != kSnappy) return Damaged(handle, "bad block type");
  size_t size = 0;
  if (!snappy::GetUncompressedLength(bytes.data(), bytes.size(), &size) ||
      size > kMaxTableBlockBytes || size / kMostSnappyGrowth > bytes.size()) {
    return Damaged(handle, "corrupted compressed block contents");
  }
  std::string plain;
  if (!snappy::Uncompress(bytes.data(), bytes.size(), &plain)) {
    return Damaged(handle, "corrupted compressed block contents");
  }
  return plain;
}

absl::Status TableFile::VisitBlock(const Handle& handle,
                                   const Visitor& visit) const {
  OPTFARM_ASSIGN_OR_RETURN(const std::string block, ReadBlock(handle));
  BlockReader reader(block);
  if (!reader.Start()) return Damaged(handle, "its restart points do not fit");
  while (!reader.AtEnd()) {
    const absl::string_view problem = reader.Next();
    if (!problem.empty()) return Damaged(handle, problem);
    OPTFARM_RETURN_IF_ERROR(visit(reader.key(), reader.value()));
  }
  return absl::OkStatus();
}

absl::Status TableFile::ForEach(const Visitor& visit) const {
  // No key of a block is above its index entry, and none is below the last's:
  // within a block the keys rise.
  const std::string* lower = nullptr;
  for (const IndexEntry& entry : index_) {
    bool first = true;
    OPTFARM_RETURN_IF_ERROR(VisitBlock(
        entry.block, [&](absl::string_view key, absl::string_view value) {
          if (key > entry.last_key || (first && lower && key <= *lower)) {
            return Damaged(entry.block, "keys and index disagree");
          }
          first = false;
          return visit(key, value);
        }));
    lower = &entry.last_key;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<std::string>> TableFile::Find(
    absl::string_view key) const {
  const auto entry = std::lower_bound(
      index_.begin(), index_.end(), key,
      [](const IndexEntry& e, absl::string_view k) { return e.last_key < k; });
  std::optional<std::string> found;
  if (entry == index_.end()) return found;
  OPTFARM_RETURN_IF_ERROR(VisitBlock(
      entry->block, [&](absl::string_view k, absl::string_view value) {
        if (k == key) found.emplace(value);
        return absl::OkStatus();
      }));
  return found;
}

}  // namespace optfarm::formats
