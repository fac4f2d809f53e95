// The epilogue on rows of 32 accumulators in 512-bit registers. For files that
// are compiled for AVX-512; each has its own copy.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_EPILOGUE_AVX512_INL_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_EPILOGUE_AVX512_INL_H_

#include <immintrin.h>

#include "engine/runtime/ukernels/always_inline.h"
#include "engine/runtime/ukernels/int8/int8_epilogue.h"

namespace optfarm::runtime {
namespace {

// What saturating packs do by themselves: nothing; the clamping of large values
// (Int8Epilogue::has_small_scales); all clamping, where the zero point is 0.
enum class Packing { kNothing, kMost, kAll };

inline Packing PackingOf(const Int8Epilogue& epilogue) {
  if (!epilogue.has_small_scales) return Packing::kNothing;
  return epilogue.zero_point == 0 && epilogue.least == 0 ? Packing::kAll
                                                         : Packing::kMost;
}

template <Packing kPacking>
class EpilogueAvx512 {
 public:
  // `row`: where rows are stored from, counted from epilogue.out.
  OPTFARM_INLINE explicit EpilogueAvx512(const Int8Epilogue& epilogue,
                                         int64_t row = 0)
      : low_(_mm512_loadu_ps(epilogue.scales)),
        high_(_mm512_loadu_ps(epilogue.scales + 16)),
        most_(_mm512_set1_ps(epilogue.most)),
        zero_(_mm512_set1_epi16(static_cast<int16_t>(epilogue.zero_point))),
        least_(_mm512_set1_epi8(static_cast<char>(epilogue.least))),
        exist_(~uint32_t{0} >> (32 - epilogue.channels)),
        stride_(epilogue.stride),
        out_(epilogue.out + row * epilogue.stride) {}

  // Two rows: channels [0, 16) and [16, 32) of each.
  OPTFARM_INLINE void Two(__m512i a_low, __m512i a_high, __m512i b_low,
                          __m512i b_high) {
    const __m512i values = Quantized(a_low, a_high, b_low, b_high);
    Store(_mm512_castsi512_si256(values));
    Store(_mm512_extracti64x4_epi64(values, 1));
  }
  // The same of one row and of the row `below` bytes behind it.
  OPTFARM_INLINE void Pair(__m512i a_low, __m512i a_high, __m512i b_low,
                           __m512i b_high, int64_t below) {
    const __m512i values = Quantized(a_low, a_high, b_low, b_high);
    StoreAt(out_ + below, _mm512_extracti64x4_epi64(values, 1));
    Store(_mm512_castsi512_si256(values));
  }
  OPTFARM_INLINE void One(__m512i low, __m512i high) {
    Store(_mm512_castsi512_si256(Quantized(low, high, low, high)));
  }

 private:
  // Values far below range become INT32_MIN, and 0 when they are packed.
  OPTFARM_INLINE __m512i Whole(__m512i sums, __m512 scales) const {
    __m512 x = _mm512_mul_ps(_mm512_cvtepi32_ps(sums), scales);
    if constexpr (kPacking == Packing::kNothing) x = _mm512_min_ps(x, most_);
    return _mm512_cvt_roundps_epi32(
        x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  OPTFARM_INLINE __m512i Row(__m512i low, __m512i high) const {
    const __m512i row =
        _mm512_packs_epi32(Whole(low, low_), Whole(high, high_));
    if constexpr (kPacking == Packing::kAll) return row;
    return _mm512_adds_epi16(row, zero_);
  }
  // Row a in the lower half. Packing leaves fours of channels lane by lane.
  OPTFARM_INLINE __m512i Quantized(__m512i a_low, __m512i a_high, __m512i b_low,
                                   __m512i b_high) const {
    const __m512i order =
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m512i values =
        _mm512_packus_epi16(Row(a_low, a_high), Row(b_low, b_high));
    if constexpr (kPacking != Packing::kAll) {
      values = _mm512_max_epu8(values, least_);
    }
    return _mm512_permutexvar_epi32(order, values);
  }
  OPTFARM_INLINE void StoreAt(uint8_t* out, __m256i row) const {
    if (exist_ == ~uint32_t{0}) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), row);
    } else {
      _mm256_mask_storeu_epi8(out, exist_, row);
    }
  }
  OPTFARM_INLINE void Store(__m256i row) {
    StoreAt(out_, row);
    out_ += stride_;
  }

  __m512 low_, high_, most_;
  __m512i zero_, least_;
  __mmask32 exist_;
  int64_t stride_;
  uint8_t* out_;
};

}  // namespace
}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_EPILOGUE_AVX512_INL_H_
