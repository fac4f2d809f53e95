// The epilogue on rows of 16 accumulators in 256-bit registers. For files that
// are compiled for AVX2; each has its own copy.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_EPILOGUE_AVX2_INL_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_EPILOGUE_AVX2_INL_H_

#include <immintrin.h>

#include <cstdint>

#include "engine/runtime/ukernels/always_inline.h"
#include "engine/runtime/ukernels/int8/int8_epilogue.h"

namespace optfarm::runtime {
namespace {

// The first `count` of 16 bytes.
OPTFARM_INLINE void StoreSixteen(__m128i bytes, int count, uint8_t* out) {
  if (count >= 16) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), bytes);
    return;
  }
  if (count >= 8) {
    _mm_storel_epi64(reinterpret_cast<__m128i*>(out), bytes);
    bytes = _mm_unpackhi_epi64(bytes, bytes);
    out += 8;
    count -= 8;
  }
  uint64_t left = static_cast<uint64_t>(_mm_cvtsi128_si64(bytes));
  for (; count > 0; --count, left >>= 8) *out++ = static_cast<uint8_t>(left);
}

class EpilogueAvx2 {
 public:
  // Rows are stored from `row` on, and channels from `channel` on, both counted
  // from epilogue.out.
  OPTFARM_INLINE explicit EpilogueAvx2(const Int8Epilogue& epilogue,
                                       int64_t row = 0, int channel = 0)
      : low_(_mm256_loadu_ps(epilogue.scales + channel)),
        high_(_mm256_loadu_ps(epilogue.scales + channel + 8)),
        most_(_mm256_set1_ps(epilogue.most)),
        zero_(_mm256_set1_epi16(static_cast<int16_t>(epilogue.zero_point))),
        least_(_mm256_set1_epi8(static_cast<char>(epilogue.least))),
        channels_(epilogue.channels - channel),
        stride_(epilogue.stride),
        out_(epilogue.out + row * epilogue.stride + channel) {}

  // Two rows: channels [0, 8) and [8, 16) of each.
  OPTFARM_INLINE void Two(__m256i a_low, __m256i a_high, __m256i b_low,
                          __m256i b_high) {
    const __m256i values = _mm256_max_epu8(
        _mm256_packus_epi16(Row(a_low, a_high), Row(b_low, b_high)), least_);
    // Packing leaves fours of channels lane by lane.
    const __m128i begin = _mm256_castsi256_si128(values);
    const __m128i end = _mm256_extracti128_si256(values, 1);
    Store(_mm_unpacklo_epi32(begin, end));
    Store(_mm_unpackhi_epi32(begin, end));
  }
  OPTFARM_INLINE void One(__m256i low, __m256i high) {
    const __m256i row = Row(low, high);
    const __m256i values =
        _mm256_max_epu8(_mm256_packus_epi16(row, row), least_);
    Store(_mm_unpacklo_epi32(_mm256_castsi256_si128(values),
                             _mm256_extracti128_si256(values, 1)));
  }

 private:
  // Values far below range become INT32_MIN, and 0 when they are packed.
  OPTFARM_INLINE __m256i Whole(__m256i sums, __m256 scales) const {
    const __m256 x = _mm256_mul_ps(_mm256_cvtepi32_ps(sums), scales);
    return _mm256_cvtps_epi32(_mm256_min_ps(x, most_));
  }
  OPTFARM_INLINE __m256i Row(__m256i low, __m256i high) const {
    return _mm256_adds_epi16(
        _mm256_packs_epi32(Whole(low, low_), Whole(high, high_)), zero_);
  }
  OPTFARM_INLINE void Store(__m128i row) {
    StoreSixteen(row, channels_, out_);
    out_ += stride_;
  }

  __m256 low_, high_, most_;
  __m256i zero_, least_;
  int channels_;
  int64_t stride_;
  uint8_t* out_;
};

}  // namespace
}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_EPILOGUE_AVX2_INL_H_
