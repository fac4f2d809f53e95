// int8 depthwise with AVX2: activations and weights are widened to 16 bits and
// multiplied in pairs.

#include <immintrin.h>

#include "engine/runtime/ukernels/int8/int8_depthwise_loops.h"
#include "engine/runtime/ukernels/int8/int8_epilogue_avx2_inl.h"
#include "engine/runtime/ukernels/micro_kernel.h"

namespace optfarm::runtime {
namespace {

// Vectors of eight channels that there are: 1, 2, or 4 for more than 16.
template <int kParts>
struct Avx2 {
  static constexpr bool kRequantizes = true;
  static constexpr bool kHasColumns = false;
  struct Sums {
    __m256i part[kParts];
  };
  using Weights = Sums;

  static __m256i LoadBytes(const void* bytes) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(bytes));
  }
  static __m256i Widen(const uint8_t* values) {
    return _mm256_cvtepu8_epi32(
        _mm_loadl_epi64(reinterpret_cast<const __m128i*>(values)));
  }
  static void Interleave(const uint8_t* const* rows, uint8_t* out) {
    for (int c = 0; c < kParts * 8; c += 8) {
      const __m256i two = _mm256_or_si256(
          Widen(rows[0] + c), _mm256_slli_epi32(Widen(rows[1] + c), 8));
      const __m256i other =
          _mm256_or_si256(_mm256_slli_epi32(Widen(rows[2] + c), 16),
                          _mm256_slli_epi32(Widen(rows[3] + c), 24));
      _mm256_store_si256(reinterpret_cast<__m256i*>(out + c * kKr),
                         _mm256_or_si256(two, other));
    }
  }
  static Sums Load(const int32_t* init) {
    Sums sums;
    for (int i = 0; i < kParts; ++i) sums.part[i] = LoadBytes(init + i * 8);
    return sums;
  }
  static Weights LoadWeights(const int8_t* weights) {
    Weights loaded;
    for (int i = 0; i < kParts; ++i) {
      loaded.part[i] = LoadBytes(weights + i * 32);
    }
    return loaded;
  }
  static void Store(const Sums& sums, int32_t* out) {
    for (int i = 0; i < kParts; ++i) {
      _mm256_store_si256(reinterpret_cast<__m256i*>(out + i * 8), sums.part[i]);
    }
    for (int c = kParts * 8; c < kNr; c += 8) {
      _mm256_store_si256(reinterpret_cast<__m256i*>(out + c),
                         _mm256_setzero_si256());
    }
  }
  template <typename SumsOf>
  static void Requantize(const Int8Epilogue& by, int pixels,
                         const SumsOf& sums_of) {
    EpilogueAvx2 begin(by);
    if constexpr (kParts <= 2) {
      for (int p = 0; p < pixels; ++p) {
        const Sums sums = sums_of(p);
        begin.One(sums.part[0], sums.part[kParts - 1]);
      }
    } else {
      EpilogueAvx2 end(by, 0, 16);
      for (int p = 0; p < pixels; ++p) {
        const Sums sums = sums_of(p);
        begin.One(sums.part[0], sums.part[1]);
        end.One(sums.part[2], sums.part[3]);
      }
    }
  }
  static Sums AddWeights(const Sums& sums, const uint8_t* values,
                         const Weights& weights) {
    Sums made;
    for (int i = 0; i < kParts; ++i) {
      const __m256i c = LoadBytes(values + i * 32);
      const __m256i w = weights.part[i];
      const __m256i even =
          _mm256_madd_epi16(_mm256_and_si256(c, _mm256_set1_epi16(0xff)),
                            _mm256_srai_epi16(_mm256_slli_epi16(w, 8), 8));
      const __m256i odd =
          _mm256_madd_epi16(_mm256_srli_epi16(c, 8), _mm256_srai_epi16(w, 8));
      made.part[i] =
          _mm256_add_epi32(sums.part[i], _mm256_add_epi32(even, odd));
    }
    return made;
  }
  static Sums Add(const Sums& sums, const uint8_t* values,
                  const int8_t* weights) {
    return AddWeights(sums, values, LoadWeights(weights));
  }
};

void Run(const Int8DepthwiseTile& tile, int pixels) {
  if (tile.channels <= 8) return Int8DepthwiseLoops<Avx2<1>>::Run(tile, pixels);
  if (tile.channels <= 16) {
    return Int8DepthwiseLoops<Avx2<2>>::Run(tile, pixels);
  }
  Int8DepthwiseLoops<Avx2<kNr / 8>>::Run(tile, pixels);
}

}  // namespace

constexpr MicroKernel kInt8DepthwiseAvx2 = {
    .name = "int8_depthwise_avx2",
    .kind = MicroKernelKind::kInt8Depthwise,
    .needs = {.avx2 = true},
    .mr = kMr,
    .panel = {.nr = kNr, .kr = kKr},
    .epilogue = kStoresAccumulators | kRequantizes,
    .run = {.int8_depthwise = Run},
};

}  // namespace optfarm::runtime
