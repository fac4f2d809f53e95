// int8 output stages with AVX2; by hand where compilers make slow code.

#include <immintrin.h>

#include "engine/runtime/ukernels/always_inline.h"
#include "engine/runtime/ukernels/int8/int8_epilogue_avx2_inl.h"
#include "engine/runtime/ukernels/int8/int8_stage_loops.h"
#include "engine/runtime/ukernels/micro_kernel.h"

namespace optfarm::runtime {
namespace {

OPTFARM_INLINE __m256i Load(const void* from) {
  return _mm256_load_si256(static_cast<const __m256i*>(from));
}
OPTFARM_INLINE __m256i LoadUnaligned(const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}
OPTFARM_INLINE void Store(void* to, __m256i values) {
  _mm256_store_si256(static_cast<__m256i*>(to), values);
}

// The 32 values as bytes, saturated first to int16, then to uint8. Packing
// works lane by lane: fours of values come out in another order.
OPTFARM_INLINE __m256i PackBytes(__m256i a, __m256i b, __m256i c, __m256i d) {
  const __m256i bytes =
      _mm256_packus_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
  return _mm256_permutevar8x32_epi32(bytes,
                                     _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

// The first `count` of 32 bytes.
OPTFARM_INLINE void StoreBytes(__m256i bytes, int count, uint8_t* out) {
  if (count >= 32) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), bytes);
    return;
  }
  StoreSixteen(_mm256_castsi256_si128(bytes), count, out);
  if (count <= 16) return;
  StoreSixteen(_mm256_extracti128_si256(bytes, 1), count - 16, out + 16);
}

struct Avx2 : Int8StageLoops<Avx2> {
  using Loops = Int8StageLoops<Avx2>;

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
    const __m256i low = _mm256_set1_epi32(stage.low);
    const __m256i high = _mm256_set1_epi32(stage.high);
    const __m256i l = _mm256_set1_epi32(low_half);
    const __m256i h = _mm256_set1_epi32(static_cast<int32_t>(high_half));
    const __m256i offset =
        _mm256_set1_epi32(static_cast<int32_t>(stage.offset));
    for (int i = 0; i < nr; i += 8) {
      const __m256i v =
          _mm256_min_epi32(_mm256_max_epi32(Load(row + i), low), high);
      const __m256i even = _mm256_mul_epi32(v, l);
      const __m256i odd = _mm256_mul_epi32(_mm256_srli_epi64(v, 32), l);
      __m256i q = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
      q = _mm256_add_epi32(q, _mm256_mullo_epi32(v, h));
      q = _mm256_srai_epi32(_mm256_add_epi32(q, offset), 16);
      q = _mm256_max_epi32(q, _mm256_setzero_si256());
      Store(row + i, _mm256_min_epi32(q, _mm256_set1_epi32(255)));
    }
  }

  template <typename Nr>
  static void Table(const Int8Stage& stage, const int32_t* add, Nr nr,
                    int32_t* row) {
    for (int i = 0; i < nr; i += 8) {
      const __m256i a = _mm256_i32gather_epi32(stage.table, Load(row + i), 4);
      const __m256i b = LoadUnaligned(add + i);
      const __m256i sum = _mm256_add_epi32(a, b);
      // Both of one sign and the sum of the other: it did not fit.
      const __m256i wrapped =
          _mm256_andnot_si256(_mm256_xor_si256(a, b), _mm256_xor_si256(sum, a));
      const __m256i most = _mm256_xor_si256(_mm256_srai_epi32(a, 31),
                                            _mm256_set1_epi32(INT32_MAX));
      // By the sign bits of `wrapped`.
      const __m256 result =
          _mm256_blendv_ps(_mm256_castsi256_ps(sum), _mm256_castsi256_ps(most),
                           _mm256_castsi256_ps(wrapped));
      Store(row + i, _mm256_castps_si256(result));
    }
  }

  // Truncated, this is x rounded with halves away from zero.
  OPTFARM_INLINE static __m256 AddHalf(__m256 x) {
    const __m256 half = _mm256_set1_ps(0.49999997f);
    const __m256 sign = _mm256_set1_ps(-0.0f);
    return _mm256_add_ps(x, _mm256_or_ps(_mm256_and_ps(sign, x), half));
  }

  template <typename Nr>
  static void Rounded(const Int8Stage& stage, const int32_t* add, Nr nr,
                      int32_t* row) {
    const __m256 factor = _mm256_set1_ps(stage.factor);
    const __m256 summand = _mm256_set1_ps(stage.summand);
    const __m256 unit = _mm256_set1_ps(stage.unit);
    const __m256i low = _mm256_set1_epi32(stage.low);
    for (int i = 0; i < nr; i += 8) {
      const __m256 value = _mm256_cvtepi32_ps(Load(row + i));
      const __m256 x =
          _mm256_mul_ps(_mm256_fmadd_ps(value, factor, summand), unit);
      const __m256i whole = _mm256_cvttps_epi32(AddHalf(x));
      const __m256i sum = _mm256_add_epi32(low, LoadUnaligned(add + i));
      Store(row + i, _mm256_add_epi32(whole, sum));
    }
  }

  OPTFARM_INLINE static __m256i Quantized(__m256 floats, __m256 factor,
                                          __m256 summand) {
    __m256 value = _mm256_round_ps(AddHalf(_mm256_mul_ps(floats, factor)),
                                   _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    value = _mm256_sub_ps(value, summand);
    // The second operand comes out where one is NaN.
    value = _mm256_max_ps(value, _mm256_setzero_ps());
    return _mm256_cvttps_epi32(_mm256_min_ps(value, _mm256_set1_ps(255.0f)));
  }

  template <typename Nr>
  static void Quantize(const Int8Stage& stage, Nr nr, int32_t* row) {
    const __m256 factor = _mm256_set1_ps(stage.factor);
    const __m256 summand = _mm256_set1_ps(stage.summand);
    for (int i = 0; i < nr; i += 8) {
      const __m256 floats = _mm256_castsi256_ps(Load(row + i));
      Store(row + i, Quantized(floats, factor, summand));
    }
  }

  // Eight accumulators.
  struct ByFloat {
    explicit ByFloat(const Int8Stage& stage)
        : low(_mm256_set1_ps(stage.factor)),
          high(_mm256_set1_ps(stage.summand)),
          zero(_mm256_set1_epi32(stage.low)) {}
    OPTFARM_INLINE __m256i operator()(const int32_t* row,
                                      const float* scales) const {
      __m256 x =
          _mm256_mul_ps(_mm256_cvtepi32_ps(Load(row)), _mm256_loadu_ps(scales));
      x = _mm256_min_ps(_mm256_max_ps(x, low), high);
      return _mm256_add_epi32(_mm256_cvtps_epi32(x), zero);
    }
    __m256 low, high;
    __m256i zero;
  };

  template <typename Nr>
  static void RequantizeFloat(const Int8Stage& stage, const float* scales,
                              Nr nr, int32_t* row) {
    const ByFloat quantize(stage);
    for (int i = 0; i < nr; i += 8) {
      Store(row + i, quantize(row + i, scales + i));
    }
  }

  // Results go from the registers to their place; accumulators of channels that
  // do not exist are left alone.
  static void RunEpilogue(const Int8Accumulators& tile,
                          const Int8Epilogue& epilogue) {
    Int8Stage stage;
    stage.factor = static_cast<float>(epilogue.least - epilogue.zero_point);
    stage.summand = epilogue.most;
    stage.low = epilogue.zero_point;
    const ByFloat quantize(stage);
    const int32_t* row = tile.data;
    uint8_t* out = epilogue.out;
    for (int r = 0; r < tile.rows;
         ++r, row += tile.nr, out += epilogue.stride) {
      int c = 0;
      for (; c + 16 < epilogue.channels && c + 32 <= tile.nr; c += 32) {
        const float* scales = epilogue.scales + c;
        StoreBytes(PackBytes(quantize(row + c, scales),
                             quantize(row + c + 8, scales + 8),
                             quantize(row + c + 16, scales + 16),
                             quantize(row + c + 24, scales + 24)),
                   epilogue.channels - c, out + c);
      }
      for (; c < epilogue.channels; c += 16) {
        const __m256i a = quantize(row + c, epilogue.scales + c);
        const __m256i b = quantize(row + c + 8, epilogue.scales + c + 8);
        const int left = epilogue.channels - c;
        StoreBytes(PackBytes(a, b, a, b), left < 16 ? left : 16, out + c);
      }
    }
  }

  // The lowest 8 bits of each, which saturating packs would not leave.
  OPTFARM_INLINE static __m256i LowBits(const int32_t* from) {
    return _mm256_and_si256(Load(from), _mm256_set1_epi32(255));
  }

  static void StoreQuantized(const Int8Accumulators& tile, int channels,
                             int64_t stride, uint8_t* out) {
    const int32_t* row = tile.data;
    for (int r = 0; r < tile.rows; ++r, row += tile.nr, out += stride) {
      for (int c = 0; c < channels; c += 16) {
        const __m256i a = LowBits(row + c);
        const __m256i b = LowBits(row + c + 8);
        const int left = channels - c;
        StoreBytes(PackBytes(a, b, a, b), left < 16 ? left : 16, out + c);
      }
    }
  }

  static int32_t SumValues(const uint8_t* values, int64_t count) {
    int64_t sum = 0;
    int64_t i = 0;
    if (count >= 32) {
      __m256i sums = _mm256_setzero_si256();
      for (; i + 32 <= count; i += 32) {
        sums = _mm256_add_epi64(sums, _mm256_sad_epu8(LoadUnaligned(values + i),
                                                      _mm256_setzero_si256()));
      }
      alignas(32) int64_t parts[4];
      Store(parts, sums);
      sum = parts[0] + parts[1] + parts[2] + parts[3];
    }
    for (; i + 8 <= count; i += 8) {
      const __m128i eight =
          _mm_loadl_epi64(reinterpret_cast<const __m128i*>(values + i));
      sum += _mm_cvtsi128_si64(_mm_sad_epu8(eight, _mm_setzero_si128()));
    }
    for (; i < count; ++i) sum += values[i];
    return static_cast<int32_t>(sum);
  }

  // Unpacking leaves eights of values lane by lane, and packing puts them where
  // they came from.
  static void LinearSum(const uint8_t* a, const uint8_t* b, int64_t count,
                        const Int8LinearSum& sum, uint8_t* out) {
    const __m256i none = _mm256_setzero_si256();
    __m256i steps[Int8LinearSum::kLimbs], zeros[Int8LinearSum::kLimbs];
    for (int limb = 0; limb < Int8LinearSum::kLimbs; ++limb) {
      int32_t both;
      std::memcpy(&both, sum.steps[limb], sizeof(both));
      steps[limb] = _mm256_set1_epi32(both);
      zeros[limb] = _mm256_set1_epi32(sum.zeros[limb]);
    }
    const __m256i least = _mm256_set1_epi8(static_cast<char>(sum.least));
    const __m256i most = _mm256_set1_epi8(static_cast<char>(sum.most));
    const auto line = [&](__m256i pairs) {
      __m256i t =
          _mm256_add_epi32(_mm256_madd_epi16(pairs, steps[0]), zeros[0]);
      for (int limb = 1; limb < Int8LinearSum::kLimbs; ++limb) {
        t = _mm256_add_epi32(
            _mm256_srai_epi32(t, Int8LinearSum::kLimbBits),
            _mm256_add_epi32(_mm256_madd_epi16(pairs, steps[limb]),
                             zeros[limb]));
      }
      return _mm256_srai_epi32(t, Int8LinearSum::kLimbBits);
    };
    int64_t i = 0;
    for (; i + 32 <= count; i += 32) {
      const __m256i x = LoadUnaligned(a + i);
      const __m256i y = LoadUnaligned(b + i);
      const __m256i low = _mm256_unpacklo_epi8(x, y);
      const __m256i high = _mm256_unpackhi_epi8(x, y);
      const __m256i first =
          _mm256_packs_epi32(line(_mm256_unpacklo_epi8(low, none)),
                             line(_mm256_unpackhi_epi8(low, none)));
      const __m256i second =
          _mm256_packs_epi32(line(_mm256_unpacklo_epi8(high, none)),
                             line(_mm256_unpackhi_epi8(high, none)));
      __m256i values = _mm256_packus_epi16(first, second);
      values = _mm256_min_epu8(_mm256_max_epu8(values, least), most);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), values);
    }
    Loops::LinearSum(a + i, b + i, count - i, sum, out + i);
  }

  static void QuantizeFloats(const Int8Stage& stage, const float* floats,
                             int64_t count, uint8_t* out) {
    const __m256 factor = _mm256_set1_ps(stage.factor);
    const __m256 summand = _mm256_set1_ps(stage.summand);
    int64_t i = 0;
    for (; i + 32 <= count; i += 32) {
      const auto eight = [&](int64_t at) {
        return Quantized(_mm256_loadu_ps(floats + at), factor, summand);
      };
      StoreBytes(
          PackBytes(eight(i), eight(i + 8), eight(i + 16), eight(i + 24)), 32,
          out + i);
    }
    Loops::QuantizeFloats(stage, floats + i, count - i, out + i);
  }
};

constexpr Int8StageFunctions kFunctions = Avx2::Functions();

}  // namespace

constexpr MicroKernel kInt8OutputStagesAvx2 = {
    .name = "int8_output_stages_avx2",
    .kind = MicroKernelKind::kInt8OutputStages,
    .needs = {.avx2 = true},
    .epilogue = kRequantizes,
    .run = {.int8_stages = &kFunctions},
};

}  // namespace optfarm::runtime
