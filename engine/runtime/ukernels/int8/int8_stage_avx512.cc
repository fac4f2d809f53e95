// int8 output stages with AVX-512; by hand where compilers make slow code.

#include <immintrin.h>

#include "engine/runtime/ukernels/always_inline.h"
#include "engine/runtime/ukernels/int8/int8_epilogue_avx512_inl.h"
#include "engine/runtime/ukernels/int8/int8_stage_loops.h"
#include "engine/runtime/ukernels/micro_kernel.h"

namespace optfarm::runtime {
namespace {

struct Avx512 : Int8StageLoops<Avx512> {
  using Loops = Int8StageLoops<Avx512>;

  // With scale = h * 2^32 + l, -2^31 <= l < 2^31, v * scale >> 32 is
  // v * h + (v * l >> 32), and all of it fits in 32 bits: |v * scale| < 2^62.
  template <typename Nr>
  static void Requantize(const Int8Stage& stage, Nr nr, int32_t* row) {
    const auto low_half = static_cast<int32_t>(stage.scale);
    const int64_t high_half = (stage.scale - low_half) >> 32;
    constexpr int64_t kMost = int64_t{1} << 30;
    if (high_half >= kMost || stage.offset >= kMost || stage.offset <= -kMost) {
      return Loops::Requantize(stage, nr, row);
    }
    const __m512i low = _mm512_set1_epi32(stage.low);
    const __m512i high = _mm512_set1_epi32(stage.high);
    const __m512i l = _mm512_set1_epi32(low_half);
    const __m512i h = _mm512_set1_epi32(static_cast<int32_t>(high_half));
    const __m512i offset =
        _mm512_set1_epi32(static_cast<int32_t>(stage.offset));
    for (int i = 0; i < nr; i += 16) {
      __m512i v = _mm512_load_si512(row + i);
      v = _mm512_min_epi32(_mm512_max_epi32(v, low), high);
      const __m512i even = _mm512_mul_epi32(v, l);
      const __m512i odd = _mm512_mul_epi32(_mm512_srli_epi64(v, 32), l);
      __m512i q =
          _mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd);
      q = _mm512_add_epi32(q, _mm512_mullo_epi32(v, h));
      q = _mm512_srai_epi32(_mm512_add_epi32(q, offset), 16);
      q = _mm512_max_epi32(q, _mm512_setzero_si512());
      q = _mm512_min_epi32(q, _mm512_set1_epi32(255));
      _mm512_store_si512(row + i, q);
    }
  }

  template <typename Nr>
  static void Table(const Int8Stage& stage, const int32_t* add, Nr nr,
                    int32_t* row) {
    for (int i = 0; i < nr; i += 16) {
      const __m512i values = _mm512_load_si512(row + i);
      const __m512i a = _mm512_i32gather_epi32(values, stage.table, 4);
      const __m512i b = _mm512_loadu_si512(add + i);
      const __m512i sum = _mm512_add_epi32(a, b);
      // Both of one sign and the sum of the other: it did not fit.
      const __m512i wrapped =
          _mm512_andnot_si512(_mm512_xor_si512(a, b), _mm512_xor_si512(sum, a));
      const __mmask16 overflow = _mm512_movepi32_mask(wrapped);
      const __m512i most = _mm512_xor_si512(_mm512_srai_epi32(a, 31),
                                            _mm512_set1_epi32(INT32_MAX));
      _mm512_store_si512(row + i, _mm512_mask_mov_epi32(sum, overflow, most));
    }
  }

  // Truncated, this is x rounded with halves away from zero.
  static __m512 AddHalf(__m512 x) {
    const __m512i half = _mm512_castps_si512(_mm512_set1_ps(0.49999997f));
    const __m512i sign = _mm512_set1_epi32(INT32_MIN);
    // The sign of x, the rest of `half`.
    const __m512i toward =
        _mm512_ternarylogic_epi32(sign, _mm512_castps_si512(x), half, 0xca);
    return _mm512_add_ps(x, _mm512_castsi512_ps(toward));
  }

  template <typename Nr>
  static void Rounded(const Int8Stage& stage, const int32_t* add, Nr nr,
                      int32_t* row) {
    const __m512 factor = _mm512_set1_ps(stage.factor);
    const __m512 summand = _mm512_set1_ps(stage.summand);
    const __m512 unit = _mm512_set1_ps(stage.unit);
    const __m512i low = _mm512_set1_epi32(stage.low);
    for (int i = 0; i < nr; i += 16) {
      const __m512 value = _mm512_cvtepi32_ps(_mm512_load_si512(row + i));
      const __m512 x =
          _mm512_mul_ps(_mm512_fmadd_ps(value, factor, summand), unit);
      const __m512i whole = _mm512_cvttps_epi32(AddHalf(x));
      const __m512i sum = _mm512_add_epi32(low, _mm512_loadu_si512(add + i));
      _mm512_store_si512(row + i, _mm512_add_epi32(whole, sum));
    }
  }

  static __m512i Quantized(__m512 floats, __m512 factor, __m512 summand) {
    __m512 value = _mm512_roundscale_ps(AddHalf(_mm512_mul_ps(floats, factor)),
                                        _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    value = _mm512_sub_ps(value, summand);
    // The second operand comes out where one is NaN.
    value = _mm512_max_ps(value, _mm512_setzero_ps());
    return _mm512_cvttps_epi32(_mm512_min_ps(value, _mm512_set1_ps(255.0f)));
  }

  template <typename Nr>
  static void Quantize(const Int8Stage& stage, Nr nr, int32_t* row) {
    const __m512 factor = _mm512_set1_ps(stage.factor);
    const __m512 summand = _mm512_set1_ps(stage.summand);
    for (int i = 0; i < nr; i += 16) {
      _mm512_store_si512(row + i,
                         Quantized(_mm512_load_ps(row + i), factor, summand));
    }
  }

  template <typename Nr>
  static void RequantizeFloat(const Int8Stage& stage, const float* scales,
                              Nr nr, int32_t* row) {
    const __m512 low = _mm512_set1_ps(stage.factor);
    const __m512 high = _mm512_set1_ps(stage.summand);
    const __m512i zero = _mm512_set1_epi32(stage.low);
    for (int i = 0; i < nr; i += 16) {
      __m512 x = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_load_si512(row + i)),
                               _mm512_loadu_ps(scales + i));
      x = _mm512_min_ps(_mm512_max_ps(x, low), high);
      const __m512i value = _mm512_cvt_roundps_epi32(
          x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
      _mm512_store_si512(row + i, _mm512_add_epi32(value, zero));
    }
  }

  static void FindRange(const Int8Accumulators& tile, int32_t* low,
                        int32_t* high) {
    Loops::WithNr(tile.nr, [&](auto nr) {
      for (int i = 0; i < nr; i += 16) {
        __m512i least = _mm512_loadu_si512(low + i);
        __m512i most = _mm512_loadu_si512(high + i);
        for (int r = 0; r < tile.rows; ++r) {
          const __m512i v = _mm512_load_si512(tile.data + r * nr + i);
          least = _mm512_min_epi32(least, v);
          most = _mm512_max_epi32(most, v);
        }
        _mm512_storeu_si512(low + i, least);
        _mm512_storeu_si512(high + i, most);
      }
    });
  }

  static void FindFloatRange(const Int8Accumulators& tile, int32_t* low,
                             int32_t* high) {
    Loops::WithNr(tile.nr, [&](auto nr) {
      for (int i = 0; i < nr; i += 16) {
        __m512 least = _mm512_loadu_ps(low + i);
        __m512 most = _mm512_loadu_ps(high + i);
        for (int r = 0; r < tile.rows; ++r) {
          const __m512 x = _mm512_load_ps(tile.data + r * nr + i);
          // The second operand comes out where one is NaN.
          least = _mm512_min_ps(x, least);
          most = _mm512_max_ps(x, most);
        }
        _mm512_storeu_ps(low + i, least);
        _mm512_storeu_ps(high + i, most);
      }
    });
  }

  static int32_t SumValues(const uint8_t* values, int64_t count) {
    const __m512i zero = _mm512_setzero_si512();
    __m512i sums = zero;
    int64_t i = 0;
    for (; i + 64 <= count; i += 64) {
      sums = _mm512_add_epi64(
          sums, _mm512_sad_epu8(_mm512_loadu_si512(values + i), zero));
    }
    if (i < count) {
      const __mmask64 left = ~uint64_t{0} >> (64 - (count - i));
      sums = _mm512_add_epi64(
          sums,
          _mm512_sad_epu8(_mm512_maskz_loadu_epi8(left, values + i), zero));
    }
    return static_cast<int32_t>(_mm512_reduce_add_epi64(sums));
  }

  // Unpacking leaves sixteens of values lane by lane, and packing puts them
  // where they came from.
  static void LinearSum(const uint8_t* a, const uint8_t* b, int64_t count,
                        const Int8LinearSum& sum, uint8_t* out) {
    const __m512i none = _mm512_setzero_si512();
    __m512i steps[Int8LinearSum::kLimbs], zeros[Int8LinearSum::kLimbs];
    for (int limb = 0; limb < Int8LinearSum::kLimbs; ++limb) {
      int32_t both;
      std::memcpy(&both, sum.steps[limb], sizeof(both));
      steps[limb] = _mm512_set1_epi32(both);
      zeros[limb] = _mm512_set1_epi32(sum.zeros[limb]);
    }
    const __m512i least = _mm512_set1_epi8(static_cast<char>(sum.least));
    const __m512i most = _mm512_set1_epi8(static_cast<char>(sum.most));
    const auto line = [&](__m512i pairs) {
      __m512i t =
          _mm512_add_epi32(_mm512_madd_epi16(pairs, steps[0]), zeros[0]);
      for (int limb = 1; limb < Int8LinearSum::kLimbs; ++limb) {
        t = _mm512_add_epi32(
            _mm512_srai_epi32(t, Int8LinearSum::kLimbBits),
            _mm512_add_epi32(_mm512_madd_epi16(pairs, steps[limb]),
                             zeros[limb]));
      }
      return _mm512_srai_epi32(t, Int8LinearSum::kLimbBits);
    };
    for (int64_t i = 0; i < count; i += 64) {
      const __mmask64 exist =
          count - i < 64 ? ~uint64_t{0} >> (64 - (count - i)) : ~uint64_t{0};
      const __m512i x = _mm512_maskz_loadu_epi8(exist, a + i);
      const __m512i y = _mm512_maskz_loadu_epi8(exist, b + i);
      const __m512i low = _mm512_unpacklo_epi8(x, y);
      const __m512i high = _mm512_unpackhi_epi8(x, y);
      const __m512i first =
          _mm512_packs_epi32(line(_mm512_unpacklo_epi8(low, none)),
                             line(_mm512_unpackhi_epi8(low, none)));
      const __m512i second =
          _mm512_packs_epi32(line(_mm512_unpacklo_epi8(high, none)),
                             line(_mm512_unpackhi_epi8(high, none)));
      __m512i values = _mm512_packus_epi16(first, second);
      values = _mm512_min_epu8(_mm512_max_epu8(values, least), most);
      _mm512_mask_storeu_epi8(out + i, exist, values);
    }
  }

  static void QuantizeFloats(const Int8Stage& stage, const float* floats,
                             int64_t count, uint8_t* out) {
    const __m512 factor = _mm512_set1_ps(stage.factor);
    const __m512 summand = _mm512_set1_ps(stage.summand);
    for (int64_t i = QuantizeInPacks(stage, floats, count, out); i < count;
         i += 16) {
      const __mmask16 exist =
          count - i < 16
              ? static_cast<__mmask16>((uint32_t{1} << (count - i)) - 1)
              : static_cast<__mmask16>(0xffff);
      const __m512i values =
          Quantized(_mm512_maskz_loadu_ps(exist, floats + i), factor, summand);
      _mm_mask_storeu_epi8(out + i, exist, _mm512_cvtepi32_epi8(values));
    }
  }

  // Quantizes 64 floats at a time; returns how many. Packs saturate: with a
  // small summand, what does not fit in 16 bits is out of range, so that only
  // what does not fit in 32 has to be clamped before.
  static int64_t QuantizeInPacks(const Int8Stage& stage, const float* floats,
                                 int64_t count, uint8_t* out) {
    constexpr float kMostSummand = 1 << 14;
    if (!(stage.summand >= -kMostSummand && stage.summand <= kMostSummand)) {
      return 0;
    }
    const auto zero = static_cast<int16_t>(stage.summand);
    if (static_cast<float>(zero) != stage.summand) return 0;
    const __m512 factor = _mm512_set1_ps(stage.factor);
    const __m512 most = _mm512_set1_ps(1 << 16);
    const __m512i summand = _mm512_set1_epi16(zero);
    const __m512i order =
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const auto whole = [&](const float* from) {
      _mm_prefetch(reinterpret_cast<const char*>(from) + 4096, _MM_HINT_T0);
      const __m512 x = AddHalf(_mm512_mul_ps(_mm512_loadu_ps(from), factor));
      // NaN comes out, and becomes the least number there is.
      return _mm512_cvttps_epi32(_mm512_min_ps(most, x));
    };
    const auto two = [&](const float* from) {
      const __m512i both = _mm512_packs_epi32(whole(from), whole(from + 16));
      return _mm512_subs_epi16(both, summand);
    };
    int64_t i = 0;
    for (; i + 64 <= count; i += 64) {
      const __m512i values =
          _mm512_packus_epi16(two(floats + i), two(floats + i + 32));
      _mm512_storeu_si512(out + i, _mm512_permutexvar_epi32(order, values));
    }
    return i;
  }

  static void RunEpilogue(const Int8Accumulators& tile,
                          const Int8Epilogue& by) {
    // The epilogue in registers is for tiles of 32 channels.
    if (tile.nr != UsualNr()) return Loops::RunEpilogue(tile, by);
    EpilogueAvx512<Packing::kNothing> epilogue(by);
    const int32_t* row = tile.data;
    int r = 0;
    for (; r + 1 < tile.rows; r += 2, row += 64) {
      epilogue.Two(_mm512_load_si512(row), _mm512_load_si512(row + 16),
                   _mm512_load_si512(row + 32), _mm512_load_si512(row + 48));
    }
    if (r < tile.rows) {
      epilogue.One(_mm512_load_si512(row), _mm512_load_si512(row + 16));
    }
  }

  static __mmask16 MaskOf(int left) {
    return left >= 16 ? 0xffff : static_cast<__mmask16>((1 << left) - 1);
  }

  // Storing while converting takes many times as long.
  OPTFARM_INLINE static void StoreVector(const int32_t* from, __mmask16 exist,
                                         uint8_t* out) {
    _mm_mask_storeu_epi8(out, exist,
                         _mm512_cvtepi32_epi8(_mm512_load_si512(from)));
  }

  static void StoreQuantized(const Int8Accumulators& tile, int channels,
                             int64_t stride, uint8_t* out) {
    const int32_t* row = tile.data;
    if (tile.nr == UsualNr()) {
      const __mmask16 first = MaskOf(channels);
      const __mmask16 second = channels <= 16 ? 0 : MaskOf(channels - 16);
      for (int r = 0; r < tile.rows; ++r, row += UsualNr(), out += stride) {
        StoreVector(row, first, out);
        if (second != 0) StoreVector(row + 16, second, out + 16);
      }
      return;
    }
    for (int r = 0; r < tile.rows; ++r, row += tile.nr, out += stride) {
      for (int c = 0; c < channels; c += 16) {
        StoreVector(row + c, MaskOf(channels - c), out + c);
      }
    }
  }
};

constexpr Int8StageFunctions kFunctions = Avx512::Functions();

}  // namespace

constexpr MicroKernel kInt8OutputStagesAvx512 = {
    .name = "int8_output_stages_avx512",
    .kind = MicroKernelKind::kInt8OutputStages,
    .needs = {.avx512 = true},
    .epilogue = kRequantizes,
    .run = {.int8_stages = &kFunctions},
};

}  // namespace optfarm::runtime
