#include "engine/formats/tensorflow/encrypted_model.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "engine/formats/files/byte_reader.h"
#include "engine/formats/tensorflow/mapped_region.h"

namespace optfarm::formats {
namespace {

constexpr absl::string_view kMagic = "OPTFENC";
constexpr char kVersion = '1';
constexpr size_t kNoncePrefixBytes = 8;
constexpr size_t kHeaderBytes = 8 + 4 + 8 + kNoncePrefixBytes;
// Larger chunks would be memory that a header alone can ask for.
constexpr uint32_t kMaxChunkBytes = 1 << 26;

std::string LittleEndian(uint64_t value, size_t bytes) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i) {
    text += static_cast<char>(value >> (8 * i));
  }
  return text;
}

uint64_t ChunksOf(uint64_t plain_bytes, uint64_t chunk_bytes) {
  // An empty text has one empty chunk: its tag vouches for the header.
  return std::max<uint64_t>((plain_bytes + chunk_bytes - 1) / chunk_bytes, 1);
}

// Prefix and number of the chunk.
std::string NonceOf(absl::string_view header, uint64_t chunk) {
  return absl::StrCat(header.substr(kHeaderBytes - kNoncePrefixBytes),
                      LittleEndian(chunk, kAeadNonceBytes - kNoncePrefixBytes));
}

bool IsHex(absl::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isxdigit(static_cast<unsigned char>(c));
  });
}

absl::StatusOr<AeadKey> ParseKey(absl::string_view text,
                                 absl::string_view where) {
  const absl::string_view stripped = absl::StripAsciiWhitespace(text);
  if (stripped.size() == 2 * kAeadKeyBytes && IsHex(stripped)) {
    return AeadKey(absl::HexStringToBytes(stripped));
  }
  if (text.size() == kAeadKeyBytes) return AeadKey(text);
  return absl::InvalidArgumentError(absl::StrCat(
      where,
      " has no key: 64 hex digits or 32 bytes are expected (optctl "
      "graph encrypt --make_key makes one)"));
}

}  // namespace

bool IsEncryptedModel(absl::string_view bytes) {
  return bytes.size() > kMagic.size() && absl::StartsWith(bytes, kMagic);
}

absl::StatusOr<AeadKey> ReadModelKey(const std::string& path) {
  constexpr uint64_t kMaxKeyFileBytes = 4096;
  OPTFARM_ASSIGN_OR_RETURN(const std::string text,
                           ReadFile(path, kMaxKeyFileBytes));
  return ParseKey(text, absl::StrCat("'", path, "'"));
}

absl::StatusOr<std::optional<AeadKey>> ModelKeyFromEnvironment() {
  const char* key = std::getenv(kModelKeyVariable);
  const char* file = std::getenv(kModelKeyFileVariable);
  const bool has_key = key != nullptr && key[0] != '\0';
  const bool has_file = file != nullptr && file[0] != '\0';
  if (has_key && has_file) {
    return absl::InvalidArgumentError(absl::StrCat(kModelKeyVariable, " and ",
                                                   kModelKeyFileVariable,
                                                   " are both set; keep one"));
  }
  std::optional<AeadKey> found;
  if (has_key) {
    OPTFARM_ASSIGN_OR_RETURN(found, ParseKey(key, kModelKeyVariable));
  } else if (has_file) {
    OPTFARM_ASSIGN_OR_RETURN(found, ReadModelKey(file));
  }
  return found;
}

absl::StatusOr<std::string> EncryptModel(absl::string_view plain,
                                         const AeadKey& key,
                                         uint32_t chunk_bytes) {
  if (chunk_bytes < 1 || chunk_bytes > kMaxChunkBytes ||
      ChunksOf(plain.size(), chunk_bytes) > UINT32_MAX) {
    return absl::InvalidArgumentError(
        absl::StrCat("chunks of ", chunk_bytes, " bytes do not do"));
  }
  OPTFARM_ASSIGN_OR_RETURN(const std::string prefix,
                           SecretRandomBytes(kNoncePrefixBytes));
  const std::string header = absl::StrCat(
      kMagic, std::string(1, kVersion), LittleEndian(chunk_bytes, 4),
      LittleEndian(plain.size(), 8), prefix);
  const uint64_t chunks = ChunksOf(plain.size(), chunk_bytes);
  std::string bytes = header;
  bytes.reserve(header.size() + plain.size() + chunks * kAeadTagBytes);
  for (uint64_t chunk = 0; chunk < chunks; ++chunk) {
    OPTFARM_ASSIGN_OR_RETURN(
        const std::string sealed,
        AeadEncrypt(key, NonceOf(header, chunk), header,
                    plain.substr(chunk * chunk_bytes, chunk_bytes)));
    bytes += sealed;
  }
  return bytes;
}

namespace {

// What the header says, checked against the file's size.
struct Layout {
  absl::string_view header;
  absl::string_view sealed;
  uint64_t chunk_bytes = 0;
  uint64_t plain_bytes = 0;
};

absl::StatusOr<Layout> ReadLayout(absl::string_view bytes,
                                  absl::string_view name) {
  if (!IsEncryptedModel(bytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is not an encrypted model"));
  }
  if (bytes[kMagic.size()] != kVersion) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is encrypted in a form (",
                     absl::CHexEscape(bytes.substr(kMagic.size(), 1)),
                     ") that this version does not know"));
  }
  const auto damaged = [&](absl::string_view what) {
    return absl::DataLossError(
        absl::StrCat(name, ": ", what, "; copy or download it again"));
  };
  if (bytes.size() < kHeaderBytes) return damaged("the header is cut off");
  Layout layout;
  layout.header = bytes.substr(0, kHeaderBytes);
  layout.sealed = bytes.substr(kHeaderBytes);
  layout.chunk_bytes = ReadFixed32(layout.header.data() + 8);
  layout.plain_bytes = ReadFixed64(layout.header.data() + 12);
  if (layout.chunk_bytes < 1 || layout.chunk_bytes > kMaxChunkBytes ||
      layout.plain_bytes > layout.sealed.size() ||
      ChunksOf(layout.plain_bytes, layout.chunk_bytes) * kAeadTagBytes !=
          layout.sealed.size() - layout.plain_bytes) {
    return damaged("its header and its size disagree");
  }
  return layout;
}

// REQUIRES: `plain` has room for layout.plain_bytes.
absl::Status Decrypt(const Layout& layout, const AeadKey& key,
                     absl::string_view name, char* plain) {
  absl::string_view rest = layout.sealed;
  uint64_t missing = layout.plain_bytes;
  for (uint64_t chunk = 0; !rest.empty(); ++chunk) {
    const uint64_t size = std::min<uint64_t>(layout.chunk_bytes, missing);
    const absl::StatusOr<std::string> piece =
        AeadDecrypt(key, NonceOf(layout.header, chunk), layout.header,
                    rest.substr(0, size + kAeadTagBytes));
    if (!piece.ok()) return Annotate(piece.status(), name);
    rest.remove_prefix(size + kAeadTagBytes);
    plain = std::copy(piece->begin(), piece->end(), plain);
    missing -= size;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> DecryptModel(absl::string_view bytes,
                                         const AeadKey& key,
                                         absl::string_view name) {
  OPTFARM_ASSIGN_OR_RETURN(const Layout layout, ReadLayout(bytes, name));
  std::string plain(layout.plain_bytes, '\0');
  OPTFARM_RETURN_IF_ERROR(Decrypt(layout, key, name, plain.data()));
  return plain;
}

absl::StatusOr<SharedBytes> DecryptModelAligned(absl::string_view bytes,
                                                const AeadKey& key,
                                                absl::string_view name) {
  OPTFARM_ASSIGN_OR_RETURN(const Layout layout, ReadLayout(bytes, name));
  const uint64_t room =
      (layout.plain_bytes / kRegionAlignment + 1) * kRegionAlignment;
  const std::shared_ptr<void> memory(std::aligned_alloc(kRegionAlignment, room),
                                     &std::free);
  if (memory == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "no memory for the ", layout.plain_bytes, " bytes of ", name));
  }
  char* const plain = static_cast<char*>(memory.get());
  OPTFARM_RETURN_IF_ERROR(Decrypt(layout, key, name, plain));
  return SharedBytes{{plain, static_cast<size_t>(layout.plain_bytes)}, memory};
}

}  // namespace optfarm::formats
