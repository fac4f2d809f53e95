// The epilogue of a tile whose accumulators become quantized values by one
// multiplication each (Int8StageKind::kRequantizeFloat). Micro-kernels with
// kRequantizes run it in the registers.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_EPILOGUE_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_EPILOGUE_H_

#include <cstdint>

namespace optfarm::runtime {

// out[r, c] = min(max(round(min(acc[r, c] * scales[c], most)) + zero_point,
// least), 255), halves to even. OWNERSHIP: all borrowed.
struct Int8Epilogue {
  // As many as a tile has channels (nr).
  const float* scales = nullptr;
  // Whether all scales are at most 1/2, so that values above `most` may be
  // clamped by saturating packs instead.
  bool has_small_scales = false;
  // 255 - zero_point.
  float most = 0;
  // 0..255.
  int32_t zero_point = 0;
  int32_t least = 0;
  // Channels that exist: 1 to nr.
  int channels = 0;
  // UNITS: bytes from row to row.
  int64_t stride = 0;
  uint8_t* out = nullptr;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_EPILOGUE_H_
