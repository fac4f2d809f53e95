// int8 depthwise for NEON. Activations are interleaved less 128, which makes
// them signed (MicroKernel::activation_shift).

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_DEPTHWISE_NEON_INL_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_DEPTHWISE_NEON_INL_H_

#include <arm_neon.h>

#include <cstdint>

#include "engine/runtime/ukernels/int8/int8_depthwise_loops.h"
#include "engine/runtime/ukernels/int8/int8_epilogue_neon_inl.h"
#include "engine/runtime/ukernels/int8/int8_loads_neon_inl.h"
#include "engine/runtime/ukernels/micro_kernel.h"

namespace optfarm::runtime {
namespace {

// Four rows of 32 values side by side, less 128.
inline void InterleaveNeon(const uint8_t* const* rows, uint8_t* out) {
  const uint8x16_t shift = vdupq_n_u8(0x80);
  for (int c = 0; c < kNr; c += 16) {
    uint8x16x4_t four;
#pragma GCC unroll 4
    for (int y = 0; y < kKr; ++y) {
      four.val[y] = veorq_u8(vld1q_u8(rows[y] + c), shift);
    }
    vst4q_u8(out + c * kKr, four);
  }
}

#if defined(__aarch64__)

constexpr uint32_t kDepthwiseEpilogue = kStoresAccumulators | kRequantizes;

// The first `channels` of sixteen values.
OPTFARM_INLINE void StoreChannels(uint8x16_t values, int channels,
                                  uint8_t* out) {
  if (channels >= 16) return vst1q_u8(out, values);
  uint8_t some[16];
  vst1q_u8(some, values);
  for (int c = 0; c < channels; ++c) {
    asm volatile("");
    out[c] = some[c];
  }
}

// Int8DepthwiseLoops::Run requantizes what sums_of(pixel) gives.
template <typename Isa, typename SumsOf>
void RequantizeNeon(const Int8Epilogue& by, int pixels, const SumsOf& sums_of) {
  uint8_t* out = by.out;
  for (int p = 0; p < pixels; ++p, out += by.stride) {
    int32_t sums[kNr];
    Isa::Store(sums_of(p), sums);
    for (int c = 0; c < by.channels; c += 16) {
      const int32x4_t four[4] = {vld1q_s32(sums + c), vld1q_s32(sums + c + 4),
                                 vld1q_s32(sums + c + 8),
                                 vld1q_s32(sums + c + 12)};
      StoreChannels(EpilogueNeon(by, c).Quantize<false>(four), by.channels - c,
                    out + c);
    }
  }
}

// Whether a window of three columns in one set of weights is requantized.
OPTFARM_INLINE bool IsUsual(const Int8DepthwiseTile& tile) {
  return tile.epilogue != nullptr && tile.taps_x == 3 && tile.dilation == 1 &&
         tile.sets == 1;
}

// Requantizes channels [c, c + 16) of a usual window: add_window(values, sums)
// makes their sums from what scratch has of them, a column every kColumnBytes.
template <bool kIsPlain, typename AddWindow>
OPTFARM_INLINE void RequantizeAs(const Int8DepthwiseTile& tile, int pixels,
                                 int c, const AddWindow& add_window) {
  const Int8Epilogue& by = *tile.epilogue;
  const EpilogueNeon epilogue(by, c);
  const uint8_t* values = tile.scratch + c * kKr;
  const int64_t step = tile.stride * kColumnBytes;
  const int64_t out_step = by.stride;
  uint8_t* out = by.out + c;
  const int left = by.channels - c;
  for (int p = 0; p < pixels; ++p, values += step, out += out_step) {
    int32x4_t sums[4];
    add_window(reinterpret_cast<const int8_t*>(values), sums);
    StoreChannels(epilogue.Quantize<kIsPlain>(sums), left, out);
  }
}
template <typename AddWindow>
OPTFARM_INLINE void RequantizeWindows(const Int8DepthwiseTile& tile, int pixels,
                                      int c, const AddWindow& add_window) {
  if (EpilogueNeon::IsPlain(*tile.epilogue)) {
    RequantizeAs<true>(tile, pixels, c, add_window);
  } else {
    RequantizeAs<false>(tile, pixels, c, add_window);
  }
}

#else

constexpr uint32_t kDepthwiseEpilogue = kStoresAccumulators;

#endif

}  // namespace
}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_DEPTHWISE_NEON_INL_H_
