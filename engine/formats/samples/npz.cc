#include "engine/formats/samples/npz.h"

#include <zlib.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"

namespace optfarm::formats {
namespace {

// Signatures and fixed lengths of ZIP's records, from PKWARE's APPNOTE 6.3.
constexpr uint32_t kLocalHeader = 0x04034b50;
constexpr uint32_t kDirectoryEntry = 0x02014b50;
constexpr uint32_t kDirectoryEnd = 0x06054b50;
constexpr size_t kLocalHeaderBytes = 30;
constexpr size_t kDirectoryEntryBytes = 46;
constexpr size_t kDirectoryEndBytes = 22;
constexpr size_t kMaxComment = 65535;
// Stands for a number that is in a 64-bit record elsewhere.
constexpr uint32_t kElsewhere = 0xFFFFFFFF;

uint64_t LittleEndian(absl::string_view bytes, size_t at, int width) {
  uint64_t value = 0;
  for (int i = width - 1; i >= 0; --i) {
    value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  }
  return value;
}

// Where the record that ends the archive begins.
std::optional<size_t> FindDirectoryEnd(absl::string_view bytes) {
  if (bytes.size() < kDirectoryEndBytes) return std::nullopt;
  const size_t last = bytes.size() - kDirectoryEndBytes;
  const size_t first = last > kMaxComment ? last - kMaxComment : 0;
  for (size_t at = last + 1; at-- > first;) {
    if (LittleEndian(bytes, at, 4) == kDirectoryEnd) return at;
  }
  return std::nullopt;
}

absl::Status Damaged(absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("the .npz archive is damaged: ", what));
}

// Reads the entry at `*at` and moves behind it.
absl::StatusOr<NpzMember> ReadEntry(absl::string_view bytes, size_t* at) {
  if (bytes.size() - *at < kDirectoryEntryBytes ||
      LittleEndian(bytes, *at, 4) != kDirectoryEntry) {
    return Damaged("its directory ends early");
  }
  const uint64_t flags = LittleEndian(bytes, *at + 8, 2);
  const uint64_t method = LittleEndian(bytes, *at + 10, 2);
  NpzMember member;
  member.packed_bytes = LittleEndian(bytes, *at + 20, 4);
  member.bytes = LittleEndian(bytes, *at + 24, 4);
  member.offset = LittleEndian(bytes, *at + 42, 4);
  const size_t name = LittleEndian(bytes, *at + 28, 2);
  const size_t rest =
      LittleEndian(bytes, *at + 30, 2) + LittleEndian(bytes, *at + 32, 2);
  if (bytes.size() - *at - kDirectoryEntryBytes < name + rest) {
    return Damaged("its directory ends early");
  }
  member.name = std::string(bytes.substr(*at + kDirectoryEntryBytes, name));
  *at += kDirectoryEntryBytes + name + rest;
  if (member.packed_bytes == kElsewhere || member.bytes == kElsewhere ||
      member.offset == kElsewhere) {
    return absl::UnimplementedError(
        ".npz archives over 4 GiB are not read; give .npy files");
  }
  if ((flags & 1) != 0 || (method != 0 && method != 8)) {
    return absl::UnimplementedError(
        absl::StrCat("member '", member.name,
                     "' of the .npz is encrypted or compressed in another way "
                     "than deflate; write it with numpy.savez"));
  }
  member.deflated = method == 8;
  return member;
}

absl::StatusOr<std::string> Inflate(absl::string_view packed, uint64_t size) {
  std::string out(size, '\0');
  z_stream stream = {};
  // Negative: no header of zlib's own.
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) {
    return absl::ResourceExhaustedError("no memory to unpack an .npz");
  }
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int result = inflate(&stream, Z_FINISH);
  const bool whole = result == Z_STREAM_END && stream.total_out == size;
  inflateEnd(&stream);
  if (!whole) return Damaged("a member does not unpack to its size");
  return out;
}

}  // namespace

absl::StatusOr<std::vector<NpzMember>> ListNpz(absl::string_view bytes) {
  const std::optional<size_t> end = FindDirectoryEnd(bytes);
  if (!end.has_value()) return Damaged("it does not end as a ZIP file");
  const uint64_t count = LittleEndian(bytes, *end + 10, 2);
  size_t at = LittleEndian(bytes, *end + 16, 4);
  if (at > *end) return Damaged("its directory lies behind its end");
  std::vector<NpzMember> members;
  for (uint64_t i = 0; i < count; ++i) {
    OPTFARM_ASSIGN_OR_RETURN(NpzMember member,
                             ReadEntry(bytes.substr(0, *end), &at));
    absl::string_view name = member.name;
    if (!absl::ConsumeSuffix(&name, ".npy")) continue;
    member.name = std::string(name);
    members.push_back(std::move(member));
  }
  return members;
}

absl::StatusOr<std::string> ReadNpzMember(absl::string_view bytes,
                                          const NpzMember& member,
                                          uint64_t max_bytes) {
  if (member.bytes > max_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("array '", member.name, "' has ", member.bytes,
                     " bytes; at most ", max_bytes, " are read"));
  }
  // Deflate packs 1032 to one at best, so nothing larger needs memory.
  if (member.bytes / 1040 > member.packed_bytes) {
    return Damaged("a member claims more bytes than it can hold");
  }
  if (member.offset > bytes.size() ||
      bytes.size() - member.offset < kLocalHeaderBytes ||
      LittleEndian(bytes, member.offset, 4) != kLocalHeader) {
    return Damaged("a member is not where the directory says");
  }
  const size_t begin = member.offset + kLocalHeaderBytes +
                       LittleEndian(bytes, member.offset + 26, 2) +
                       LittleEndian(bytes, member.offset + 28, 2);
  if (begin > bytes.size() || bytes.size() - begin < member.packed_bytes) {
    return Damaged("a member ends behind the archive");
  }
  const absl::string_view packed = bytes.substr(begin, member.packed_bytes);
  if (member.deflated) return Inflate(packed, member.bytes);
  if (packed.size() != member.bytes) {
    return Damaged("a stored member has two sizes");
  }
  return std::string(packed);
}

}  // namespace optfarm::formats
