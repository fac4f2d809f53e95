// int8 depthwise with vpdpbusd on 512 bits.

#include <immintrin.h>

#include "engine/runtime/ukernels/int8/int8_depthwise_loops.h"
#include "engine/runtime/ukernels/int8/int8_epilogue_avx512_inl.h"
#include "engine/runtime/ukernels/micro_kernel.h"

namespace optfarm::runtime {
namespace {

struct Avx512Vnni {
  static constexpr bool kRequantizes = true;
  static constexpr bool kHasColumns = true;
  struct Sums {
    __m512i low;
    __m512i high;
  };
  static __m512i TwoRows(const uint8_t* a, const uint8_t* b) {
    const auto row = [](const uint8_t* values) {
      return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values));
    };
    return _mm512_inserti64x4(_mm512_castsi256_si512(row(a)), row(b), 1);
  }
  // Four channels of four rows come into one lane, and there side by side.
  OPTFARM_INLINE static Sums Column(const uint8_t* const* rows) {
    const __m512i places = _mm512_setr_epi32(0, 8, 16, 24, 1, 9, 17, 25, 2, 10,
                                             18, 26, 3, 11, 19, 27);
    const __m512i sides = _mm512_broadcast_i32x4(
        _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    const __m512i above = TwoRows(rows[0], rows[1]);
    const __m512i below = TwoRows(rows[2], rows[3]);
    const __m512i low = _mm512_permutex2var_epi32(above, places, below);
    const __m512i high = _mm512_permutex2var_epi32(
        above, _mm512_add_epi32(places, _mm512_set1_epi32(4)), below);
    return {_mm512_shuffle_epi8(low, sides), _mm512_shuffle_epi8(high, sides)};
  }
  static void Interleave(const uint8_t* const* rows, uint8_t* out) {
    const Sums column = Column(rows);
    _mm512_store_si512(out, column.low);
    _mm512_store_si512(out + 64, column.high);
  }
  static Sums Load(const int32_t* init) {
    return {_mm512_loadu_si512(init), _mm512_loadu_si512(init + 16)};
  }
  static Sums LoadWeights(const int8_t* weights) {
    return {_mm512_load_si512(weights), _mm512_load_si512(weights + 64)};
  }
  static void Store(const Sums& sums, int32_t* out) {
    _mm512_store_si512(out, sums.low);
    _mm512_store_si512(out + 16, sums.high);
  }
  static Sums AddWeights(const Sums& sums, const uint8_t* values,
                         const Sums& weights) {
    return {
        _mm512_dpbusd_epi32(sums.low, _mm512_load_si512(values), weights.low),
        _mm512_dpbusd_epi32(sums.high, _mm512_load_si512(values + 64),
                            weights.high)};
  }
  static Sums Add(const Sums& sums, const uint8_t* values,
                  const int8_t* weights) {
    return AddWeights(sums, values, LoadWeights(weights));
  }
  static Sums LoadColumn(const uint8_t* values) {
    return {_mm512_load_si512(values), _mm512_load_si512(values + 64)};
  }
  static Sums AddProduct(const Sums& sums, const Sums& values,
                         const Sums& weights) {
    return {_mm512_dpbusd_epi32(sums.low, values.low, weights.low),
            _mm512_dpbusd_epi32(sums.high, values.high, weights.high)};
  }
  // The row below is the next byte of each channel's four.
  static Sums Lower(const Sums& weights) {
    return {_mm512_slli_epi32(weights.low, 8),
            _mm512_slli_epi32(weights.high, 8)};
  }
  template <typename PairOf>
  static void RequantizePairs(const Int8Epilogue& by, int64_t below, int pixels,
                              const PairOf& pair_of) {
    switch (PackingOf(by)) {
      case Packing::kNothing:
        return RequantizePairsAs<Packing::kNothing>(by, below, pixels, pair_of);
      case Packing::kMost:
        return RequantizePairsAs<Packing::kMost>(by, below, pixels, pair_of);
      case Packing::kAll:
        return RequantizePairsAs<Packing::kAll>(by, below, pixels, pair_of);
    }
  }
  template <Packing kPacking, typename PairOf>
  static void RequantizePairsAs(const Int8Epilogue& by, int64_t below,
                                int pixels, const PairOf& pair_of) {
    EpilogueAvx512<kPacking> epilogue(by);
    for (int p = 0; p < pixels; ++p) {
      Sums a, b;
      pair_of(p, &a, &b);
      epilogue.Pair(a.low, a.high, b.low, b.high, below);
    }
  }
  template <typename SumsOf>
  static void Requantize(const Int8Epilogue& by, int pixels,
                         const SumsOf& sums_of) {
    switch (PackingOf(by)) {
      case Packing::kNothing:
        return RequantizeAs<Packing::kNothing>(by, pixels, sums_of);
      case Packing::kMost:
        return RequantizeAs<Packing::kMost>(by, pixels, sums_of);
      case Packing::kAll:
        return RequantizeAs<Packing::kAll>(by, pixels, sums_of);
    }
  }
  template <Packing kPacking, typename SumsOf>
  static void RequantizeAs(const Int8Epilogue& by, int pixels,
                           const SumsOf& sums_of) {
    EpilogueAvx512<kPacking> epilogue(by);
    int p = 0;
    for (; p + 1 < pixels; p += 2) {
      const Sums a = sums_of(p), b = sums_of(p + 1);
      epilogue.Two(a.low, a.high, b.low, b.high);
    }
    if (p < pixels) {
      const Sums last = sums_of(p);
      epilogue.One(last.low, last.high);
    }
  }
};

}  // namespace

constexpr MicroKernel kInt8DepthwiseAvx512Vnni = {
    .name = "int8_depthwise_avx512_vnni",
    .kind = MicroKernelKind::kInt8Depthwise,
    .needs = {.avx512 = true, .avx512_vnni = true},
    .mr = kMr,
    .panel = {.nr = kNr, .kr = kKr},
    .epilogue = kStoresAccumulators | kRequantizes | kPairsRows,
    .run = {.int8_depthwise = Int8DepthwiseLoops<Avx512Vnni>::Run},
};

}  // namespace optfarm::runtime
