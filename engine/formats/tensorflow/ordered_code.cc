#include "engine/formats/tensorflow/ordered_code.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace optfarm::formats {
namespace {

using Bytes10 = std::array<unsigned char, 10>;

// The value in two's complement over 10 bytes, most significant first.
Bytes10 SignExtended(int64_t value) {
  Bytes10 bytes;
  bytes.fill(value < 0 ? 0xff : 0x00);
  for (size_t i = 0; i < 8; ++i) {
    bytes[9 - i] = static_cast<unsigned char>(value >> (8 * i));
  }
  return bytes;
}

// How many bytes hold the value: n bytes have n header bits, and of the other
// 7n one is the sign.
size_t OrderedIntLength(int64_t value) {
  const uint64_t magnitude = static_cast<uint64_t>(value < 0 ? ~value : value);
  size_t n = 1;
  while (n < 10 && (magnitude >> (7 * n - 1)) != 0) ++n;
  return n;
}

// n leading one bits. A negative number has them as zeros: the header is
// XORed onto its sign bits.
Bytes10 Header(size_t n) {
  Bytes10 header = {};
  for (size_t bit = 0; bit < n; ++bit) {
    header[bit / 8] |= static_cast<unsigned char>(0x80 >> (bit % 8));
  }
  return header;
}

}  // namespace

void AppendOrderedUint(uint64_t value, std::string* out) {
  std::string digits;
  for (; value > 0; value >>= 8) digits += static_cast<char>(value & 0xff);
  out->push_back(static_cast<char>(digits.size()));
  out->append(digits.rbegin(), digits.rend());
}

bool TakeOrderedUint(absl::string_view* bytes, uint64_t* value) {
  if (bytes->empty()) return false;
  const auto length = static_cast<unsigned char>((*bytes)[0]);
  if (length > 8 || bytes->size() < size_t{1} + length) return false;
  if (length > 0 && (*bytes)[1] == 0) return false;
  *value = 0;
  for (size_t i = 1; i <= length; ++i) {
    *value = *value << 8 | static_cast<unsigned char>((*bytes)[i]);
  }
  bytes->remove_prefix(size_t{1} + length);
  return true;
}

void AppendOrderedString(absl::string_view text, std::string* out) {
  for (const char c : text) {
    out->push_back(c);
    if (c == '\0') out->push_back('\xff');
    if (c == '\xff') out->push_back('\0');
  }
  out->append("\0\1", 2);
}

bool TakeOrderedString(absl::string_view* bytes, std::string* text) {
  text->clear();
  for (size_t i = 0; i < bytes->size(); ++i) {
    const char c = (*bytes)[i];
    if (c != '\0' && c != '\xff') {
      text->push_back(c);
      continue;
    }
    if (i + 1 == bytes->size()) return false;
    const char next = (*bytes)[++i];
    if (c == '\0' && next == '\1') {
      bytes->remove_prefix(i + 1);
      return true;
    }
    if (next != (c == '\0' ? '\xff' : '\0')) return false;
    text->push_back(c);
  }
  return false;
}

void AppendOrderedInt(int64_t value, std::string* out) {
  const Bytes10 bytes = SignExtended(value);
  const size_t n = OrderedIntLength(value);
  const Bytes10 header = Header(n);
  for (size_t i = 0; i < n; ++i) {
    out->push_back(static_cast<char>(bytes[10 - n + i] ^ header[i]));
  }
}

bool TakeOrderedInt(absl::string_view* bytes, int64_t* value) {
  if (bytes->empty()) return false;
  const bool negative = ((*bytes)[0] & 0x80) == 0;
  const size_t most = std::min<size_t>(bytes->size(), 10);
  // Header bits up to the first one that differs. That one, the sign, may be
  // the first bit of the second or third byte.
  size_t n = 0;
  while (n < 8 * most && n <= 10) {
    const auto byte = static_cast<unsigned char>((*bytes)[n / 8]);
    const bool bit = (byte & (0x80 >> (n % 8))) != 0;
    if (bit == negative) break;
    ++n;
  }
  if (n == 0 || n > 10 || n > most) return false;
  const Bytes10 header = Header(n);
  uint64_t result = negative ? ~uint64_t{0} : 0;
  for (size_t i = 0; i < n; ++i) {
    const auto byte = static_cast<unsigned char>(
        static_cast<unsigned char>((*bytes)[i]) ^ header[i]);
    result = result << 8 | byte;
  }
  const auto taken = static_cast<int64_t>(result);
  std::string canonical;
  AppendOrderedInt(taken, &canonical);
  if (bytes->substr(0, n) != canonical) return false;
  *value = taken;
  bytes->remove_prefix(n);
  return true;
}

}  // namespace optfarm::formats
