// What the GEMM micro-kernels for NEON share: the accumulators' way in and out.
// For files that are compiled for this instruction set.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_GEMM_NEON_INL_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_GEMM_NEON_INL_H_

#include <arm_neon.h>

#include <cstring>

#include "engine/runtime/ukernels/always_inline.h"
#include "engine/runtime/ukernels/int8/int8_epilogue_neon_inl.h"
#include "engine/runtime/ukernels/int8/int8_gemm_bands_inl.h"
#include "engine/runtime/ukernels/int8/int8_loads_neon_inl.h"

namespace optfarm::runtime {
namespace {

// Accumulator init of row r, channels [c, c + 4) of a band.
OPTFARM_INLINE int32x4_t InitOf(const Int8Band& band, int r, int c) {
  return vaddq_s32(vld1q_s32(band.tile.init + band.channel + c),
                   vdupq_n_s32(band.tile.row_init[band.row + r]));
}

// Stores them into tiles of kNr channels.
template <int kNr>
OPTFARM_INLINE void StoreAt(const Int8Band& band, int r, int c,
                            int32x4_t sums) {
  vst1q_s32(band.tile.out + (band.row + r) * kNr + band.channel + c, sums);
}

// Bands have functions of their own, in which all registers are theirs.
#define OPTFARM_NOINLINE __attribute__((noinline))

#if defined(__aarch64__)

// Depth that is packed at a time: a vector of each row.
constexpr int64_t kChunk = 16;

// So many vectors side by side, four or two in one instruction.
template <int kFirst = 0, int kRows>
OPTFARM_INLINE void StoreVectors(const uint8x16_t (&values)[kRows],
                                 uint8_t* to) {
  constexpr int kLeft = kRows - kFirst;
  if constexpr (kLeft >= 4) {
    vst1q_u8_x4(to, {{values[kFirst], values[kFirst + 1], values[kFirst + 2],
                      values[kFirst + 3]}});
    StoreVectors<kFirst + 4>(values, to + 4 * kChunk);
  } else if constexpr (kLeft >= 2) {
    vst1q_u8_x2(to, {{values[kFirst], values[kFirst + 1]}});
    StoreVectors<kFirst + 2>(values, to + 2 * kChunk);
  } else if constexpr (kLeft == 1) {
    vst1q_u8(to, values[kFirst]);
  }
}

// Copies a band's activations less 128: chunk by chunk, in each row by row.
template <int kKr, int kRows>
OPTFARM_NOINLINE void PackSigned(const Int8Band& band, int64_t first_tap) {
  const uint8x16_t shift = vdupq_n_u8(0x80);
  uint8_t* packed = band.packed();
  int64_t at = first_tap * band.tile.depth;
  for (int64_t tap = first_tap; tap < band.tile.all_taps(); ++tap) {
    const int64_t depth = band.tile.DepthOf(tap, kKr);
    const uint8_t* inputs[kRows];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) inputs[r] = band.indirection(tap)[r];
    int64_t k = 0;
    if (kKr % kChunk == 0 || at % kChunk == 0) {
      uint8_t* to = packed + at * kRows;
      for (; k + kChunk <= depth; k += kChunk, to += kChunk * kRows) {
        uint8x16_t values[kRows];
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) {
          values[r] = veorq_u8(vld1q_u8(inputs[r] + k), shift);
        }
        StoreVectors(values, to);
      }
    }
    if constexpr (kKr % kChunk != 0) {
      static_assert(kKr == sizeof(uint32_t));
      for (; k < depth; k += kKr) {
        const int64_t place = at + k;
        uint8_t* to = packed + place / kChunk * kChunk * kRows + place % kChunk;
#pragma GCC unroll 1
        for (int r = 0; r < kRows; ++r, to += kChunk) {
          uint32_t group;
          std::memcpy(&group, inputs[r] + k, sizeof(group));
          group ^= 0x80808080;
          std::memcpy(to, &group, sizeof(group));
        }
      }
    }
    at += depth;
  }
}

// Adds a row's own accumulator init to its sums.
template <int kVectors>
OPTFARM_INLINE void AddRowInit(const Int8Band& band, int r,
                               int32x4_t (&sums)[kVectors]) {
  const int32x4_t init = vdupq_n_s32(band.tile.row_init[band.row + r]);
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) sums[v] = vaddq_s32(sums[v], init);
}

// Whether a band of a tile that is requantized has no channel that exists.
OPTFARM_INLINE bool IsBeyond(const Int8Band& band) {
  return band.tile.epilogue != nullptr &&
         band.channel >= band.tile.epilogue->channels;
}

// `rows` rows of `channels` out of sixteen values. Rare: one small copy of the
// code is enough.
[[maybe_unused]] __attribute__((noinline, noclone)) void CopyRows(
    const uint8_t* values, int rows, int channels, int64_t stride,
    uint8_t* out) {
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < channels; ++c) {
      asm volatile("");
      out[r * stride + c] = values[r * 16 + c];
    }
  }
}

// Zeros for the accumulators of channels that do not exist, from `channel` on.
template <int kNr>
__attribute__((noinline, noclone)) void ClearRest(const Int8Band& band,
                                                  int rows, int channel) {
  for (int r = 0; r < rows; ++r) {
    for (int c = channel; c < kNr; c += 4) {
      StoreAt<kNr>(band, r, c, vdupq_n_s32(0));
    }
  }
}

// Ends bands of sixteen channels of the same rows.
template <int kNr>
class BandEnd {
 public:
  explicit OPTFARM_INLINE BandEnd(const Int8Band& band)
      : by_(band.tile.epilogue), stored_(band.tile.out + band.row * kNr) {
    if (by_ != nullptr) out_ = by_->out + band.row * by_->stride;
  }

  // `sums` are the accumulators of the rows from `channel` of the tile on, four
  // vectors each, which are requantized or stored into tiles of kNr channels.
  template <int kRows>
  OPTFARM_INLINE void End(int channel, const int32x4_t (&sums)[kRows][4],
                          int rows) const {
    if (by_ == nullptr) {
      int32_t* to = stored_ + channel;
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        if (r == rows) return;
#pragma GCC unroll 4
        for (int v = 0; v < 4; ++v) vst1q_s32(to + r * kNr + 4 * v, sums[r][v]);
      }
      return;
    }
    if (EpilogueNeon::IsPlain(*by_)) {
      Quantize<true>(channel, sums, rows);
    } else {
      Quantize<false>(channel, sums, rows);
    }
  }

 private:
  template <bool kIsPlain, int kRows>
  OPTFARM_INLINE void Quantize(int channel, const int32x4_t (&sums)[kRows][4],
                               int rows) const {
    const EpilogueNeon epilogue(*by_, channel);
    const int left = by_->channels - channel;
    const int64_t out_stride = by_->stride;
    uint8_t* out = out_ + channel;
    uint8_t some[16 * kRows];
    uint8_t* to = left < 16 ? some : out;
    const int64_t stride = left < 16 ? 16 : out_stride;
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r, to += stride) {
      if (r == rows) break;
      vst1q_u8(to, epilogue.Quantize<kIsPlain>(sums[r]));
    }
    if (left < 16) CopyRows(some, rows, left, out_stride, out);
  }

  const Int8Epilogue* const by_;
  int32_t* const stored_;
  uint8_t* out_ = nullptr;
};

#endif  // defined(__aarch64__)

}  // namespace
}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_GEMM_NEON_INL_H_
