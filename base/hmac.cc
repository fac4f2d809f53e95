#include "base/hmac.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/digest.h"

namespace optfarm {
namespace {

// UNITS: bytes that SHA-256 works on at once.
constexpr size_t kBlockBytes = 64;

std::string Padded(std::string key, char pad) {
  key.resize(kBlockBytes, '\0');
  for (char& c : key) c = static_cast<char>(c ^ pad);
  return key;
}

}  // namespace

std::string HmacSha256Hex(absl::string_view key, absl::string_view bytes) {
  const std::string short_key = key.size() > kBlockBytes
                                    ? absl::HexStringToBytes(Sha256Hex(key))
                                    : std::string(key);
  const std::string inner = absl::HexStringToBytes(
      Sha256Hex(absl::StrCat(Padded(short_key, 0x36), bytes)));
  return Sha256Hex(absl::StrCat(Padded(short_key, 0x5C), inner));
}

}  // namespace optfarm
