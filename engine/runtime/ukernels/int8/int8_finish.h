// The end of a tile whose sums become codes by one step (Int8StageKind::
// kNarrow), which tile functions may take in the registers.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_FINISH_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_FINISH_H_

#include <cstdint>

namespace optfarm::runtime {

// out[r, c] = min(max(round(min(sum[r, c] * factors[c], most)) + zero, least),
// 255), halves to even. OWNERSHIP: all borrowed.
struct Int8Finish {
  // kInt8Columns of them.
  const float* factors = nullptr;
  // Whether all factors are at most 1/2, so that what is above `most` may be
  // cut when it is narrow already.
  bool is_small = false;
  // 255 - zero.
  float most = 0;
  // 0..255.
  int32_t zero = 0;
  int32_t least = 0;
  // Columns that exist, 1 to kInt8Columns.
  int columns = 0;
  // UNITS: bytes from row to row.
  int64_t stride = 0;
  uint8_t* out = nullptr;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_FINISH_H_
