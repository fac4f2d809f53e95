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
      StoreChannels(EpilogueNeon(by, c).Quantize(four), by.channels - c,
                    out + c);
    }
  }
}

// The usual window in one set of weights, requantized: sixteen channels at a
// time, whose weights stay in registers.
template <typename Isa>
void RequantizeUsual(const Int8DepthwiseTile& tile, int pixels) {
  const Int8Epilogue& by = *tile.epilogue;
  Int8DepthwiseLoops<Isa>::InterleaveColumns(tile,
                                             (pixels - 1) * tile.stride + 3, 1);
  for (int c = 0; c < by.channels; c += 16) {
    const EpilogueNeon epilogue(by, c);
    int8x16_t weights[3][4];
    int32x4_t init[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      init[i] = vld1q_s32(tile.init + c + 4 * i);
#pragma GCC unroll 3
      for (int x = 0; x < 3; ++x) {
        weights[x][i] =
            vld1q_s8(tile.weights + x * kColumnBytes + c * kKr + i * 16);
      }
    }
    const uint8_t* values = tile.scratch + c * kKr;
    const int64_t step = tile.stride * kColumnBytes;
    uint8_t* out = by.out + c;
    const int left = by.channels - c;
    for (int p = 0; p < pixels; ++p, values += step, out += by.stride) {
      int32x4_t sums[4];
      Isa::AddWindow(values, weights, init, sums);
      StoreChannels(epilogue.Quantize(sums), left, out);
    }
  }
}

// Isa as Int8DepthwiseLoops wants it, with InterleaveNeon, and
//   void AddWindow(values, weights, init, sums)   three columns of sixteen
//     channels, kColumnBytes apart
template <typename Isa>
void RunNeonDepthwise(const Int8DepthwiseTile& tile, int pixels) {
  if (tile.epilogue != nullptr && tile.taps_y <= kKr && tile.taps_x == 3 &&
      tile.dilation == 1 && tile.sets == 1) {
    return RequantizeUsual<Isa>(tile, pixels);
  }
  Int8DepthwiseLoops<Isa>::Run(tile, pixels);
}

#else

constexpr uint32_t kDepthwiseEpilogue = kStoresAccumulators;

template <typename Isa>
void RunNeonDepthwise(const Int8DepthwiseTile& tile, int pixels) {
  Int8DepthwiseLoops<Isa>::Run(tile, pixels);
}

#endif

}  // namespace
}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_DEPTHWISE_NEON_INL_H_
