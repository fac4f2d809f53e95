// Debian 12 has no CRC-32C library. Two forms: the processor's instruction on
// x86-64, and a table of 256 entries anywhere.

#include "engine/formats/files/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace optfarm::formats {
namespace {

// Castagnoli's polynomial, lowest bit first.
constexpr uint32_t kPolynomial = 0x82f63b78;

constexpr std::array<uint32_t, 256> MakeTable() {
  std::array<uint32_t, 256> table = {};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    }
    table[i] = crc;
  }
  return table;
}

constexpr std::array<uint32_t, 256> kTable = MakeTable();

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t ExtendByInstruction(
    uint32_t crc, absl::string_view bytes) {
  uint64_t state = ~crc;
  while (bytes.size() >= 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data(), 8);
    state = _mm_crc32_u64(state, word);
    bytes.remove_prefix(8);
  }
  auto small = static_cast<uint32_t>(state);
  for (const char c : bytes) {
    small = _mm_crc32_u8(small, static_cast<unsigned char>(c));
  }
  return ~small;
}
#endif

}  // namespace

uint32_t ExtendCrc32cByTable(uint32_t crc, absl::string_view bytes) {
  uint32_t state = ~crc;
  for (const char c : bytes) {
    state =
        kTable[(state ^ static_cast<unsigned char>(c)) & 0xff] ^ (state >> 8);
  }
  return ~state;
}

uint32_t ExtendCrc32c(uint32_t crc, absl::string_view bytes) {
#if defined(__x86_64__)
  static const bool kHasInstruction = __builtin_cpu_supports("sse4.2");
  if (kHasInstruction) return ExtendByInstruction(crc, bytes);
#endif
  return ExtendCrc32cByTable(crc, bytes);
}

}  // namespace optfarm::formats
