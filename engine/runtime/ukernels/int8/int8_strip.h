// The innermost loop of convolutions over few channels: many windows of one
// output line, which lie as far apart as their line says, so that no window has
// pointers of its own.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_STRIP_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_STRIP_H_

#include <cstdint>

#include "engine/runtime/ukernels/int8/int8_tile.h"

namespace optfarm::runtime {

// The fewest rows of a strip.
inline constexpr int kInt8StripRows = 8;

// As tiles of `rows` rows, of which `first` has the first one's pixels, a tap
// for each group; those of each other row lie `step` bytes behind those of the
// row before. REQUIRES: rows >= kInt8StripRows, first.depth == kInt8Group,
// first.finish is set and first.row_start is all zeros.
using Int8StripFunction = void (*)(const Int8Tile& first, int64_t step,
                                   int64_t rows);

void RunInt8StripAvx512Vnni(const Int8Tile& first, int64_t step, int64_t rows);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_STRIP_H_
