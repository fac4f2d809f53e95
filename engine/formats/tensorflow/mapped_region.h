// The regions of a file that tensors are used in: what they are called and
// where they may begin.

#ifndef OPTFARM_ENGINE_FORMATS_TENSORFLOW_MAPPED_REGION_H_
#define OPTFARM_ENGINE_FORMATS_TENSORFLOW_MAPPED_REGION_H_

#include <cstdint>

namespace optfarm::formats {

// What the names of regions begin with.
inline constexpr char kRegionPrefix[] = "memmapped_package://";
// UNITS: bytes. Every tensor in a file begins at a multiple of this.
inline constexpr uint64_t kRegionAlignment = 64;

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_TENSORFLOW_MAPPED_REGION_H_
