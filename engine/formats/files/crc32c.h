// CRC-32C (Castagnoli), the checksum of tables and checkpoints, and the masked
// form in which their files store it.

#ifndef OPTFARM_ENGINE_FORMATS_FILES_CRC32C_H_
#define OPTFARM_ENGINE_FORMATS_FILES_CRC32C_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace optfarm::formats {

// The CRC of the bytes that gave `crc`, followed by `bytes`.
uint32_t ExtendCrc32c(uint32_t crc, absl::string_view bytes);

inline uint32_t Crc32c(absl::string_view bytes) {
  return ExtendCrc32c(0, bytes);
}

// Without the processor's instruction; the same result everywhere.
uint32_t ExtendCrc32cByTable(uint32_t crc, absl::string_view bytes);

// A CRC over bytes that hold CRCs is weak, hence files store a masked one.
inline uint32_t MaskCrc(uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}
inline uint32_t UnmaskCrc(uint32_t masked) {
  const uint32_t rotated = masked - 0xa282ead8u;
  return (rotated >> 17) | (rotated << 15);
}

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_FILES_CRC32C_H_
