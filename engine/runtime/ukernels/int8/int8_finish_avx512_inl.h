// Finishing rows of 32 sums in registers of 512 bits. For files that are
// compiled for AVX-512; each has its own copy.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_FINISH_AVX512_INL_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_FINISH_AVX512_INL_H_

#include <immintrin.h>

#include "engine/runtime/ukernels/always_inline.h"
#include "engine/runtime/ukernels/int8/int8_finish.h"

namespace optfarm::runtime {
namespace {

// What packing does alone: nothing; cut what is too large (Int8Finish::
// is_small); that and the rest, where the zero code is 0.
enum class Packing { kNothing, kMost, kAll };

inline Packing PackingOf(const Int8Finish& finish) {
  if (!finish.is_small) return Packing::kNothing;
  return finish.zero == 0 && finish.least == 0 ? Packing::kAll : Packing::kMost;
}

template <Packing kPacking>
class FinishAvx512 {
 public:
  // `row`: where rows are stored from, counted from finish.out.
  OPTFARM_INLINE explicit FinishAvx512(const Int8Finish& finish,
                                       int64_t row = 0)
      : low_(_mm512_loadu_ps(finish.factors)),
        high_(_mm512_loadu_ps(finish.factors + 16)),
        most_(_mm512_set1_ps(finish.most)),
        zero_(_mm512_set1_epi16(static_cast<int16_t>(finish.zero))),
        least_(_mm512_set1_epi8(static_cast<char>(finish.least))),
        exist_(~uint32_t{0} >> (32 - finish.columns)),
        stride_(finish.stride),
        out_(finish.out + row * finish.stride) {}

  // Two rows: columns [0, 16) and [16, 32) of each.
  OPTFARM_INLINE void Two(__m512i a_low, __m512i a_high, __m512i b_low,
                          __m512i b_high) {
    const __m512i codes = Codes(a_low, a_high, b_low, b_high);
    Store(_mm512_castsi512_si256(codes));
    Store(_mm512_extracti64x4_epi64(codes, 1));
  }
  // The same of one row and of the row `below` bytes behind it.
  OPTFARM_INLINE void Pair(__m512i a_low, __m512i a_high, __m512i b_low,
                           __m512i b_high, int64_t below) {
    const __m512i codes = Codes(a_low, a_high, b_low, b_high);
    StoreAt(out_ + below, _mm512_extracti64x4_epi64(codes, 1));
    Store(_mm512_castsi512_si256(codes));
  }
  OPTFARM_INLINE void One(__m512i low, __m512i high) {
    Store(_mm512_castsi512_si256(Codes(low, high, low, high)));
  }

 private:
  // What is far below becomes the least number there is, and 0 when it is
  // packed.
  OPTFARM_INLINE __m512i Whole(__m512i sums, __m512 factors) const {
    __m512 x = _mm512_mul_ps(_mm512_cvtepi32_ps(sums), factors);
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
  // Row a in the lower half. Packing leaves fours of columns lane by lane.
  OPTFARM_INLINE __m512i Codes(__m512i a_low, __m512i a_high, __m512i b_low,
                               __m512i b_high) const {
    const __m512i order =
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m512i codes = _mm512_packus_epi16(Row(a_low, a_high), Row(b_low, b_high));
    if constexpr (kPacking != Packing::kAll) {
      codes = _mm512_max_epu8(codes, least_);
    }
    return _mm512_permutexvar_epi32(order, codes);
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

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_FINISH_AVX512_INL_H_
