// Weights of 4 bits by AVX2: eight columns in a register.

#include "engine/runtime/ukernels/float/int4_tile.h"
#include "engine/runtime/ukernels/float/int4_tile_inl.h"
#include "engine/runtime/ukernels/micro_kernel.h"
#include "engine/runtime/ukernels/vector_avx2_inl.h"

namespace optfarm::runtime {
namespace {

constexpr float kFactors[kInt4Group] = {1,        0x1p-4f,  0x1p-8f,  0x1p-12f,
                                        0x1p-16f, 0x1p-20f, 0x1p-24f, 1};

struct Int4Avx2 : Avx2 {
  using Words = __m256i;
  static constexpr const float* kInputFactors = kFactors;

  static OPTFARM_INLINE Words LoadWords(const uint32_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  // Shifts take as long as conversions, and only the highest code needs one:
  // where it stands it is a sign.
  template <int kPlace>
  static OPTFARM_INLINE Register Codes(Words words) {
    return _mm256_cvtepi32_ps(
        kPlace + 1 == kInt4Group
            ? _mm256_srli_epi32(words, 4 * kPlace)
            : _mm256_and_si256(words, _mm256_set1_epi32(15 << (4 * kPlace))));
  }
  static OPTFARM_INLINE Register Code(Words words, int place) {
    words = _mm256_srl_epi32(words, _mm_cvtsi32_si128(4 * place));
    return _mm256_cvtepi32_ps(_mm256_and_si256(words, _mm256_set1_epi32(15)));
  }
  static OPTFARM_INLINE Register LoadZeros(const uint8_t* p) {
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(
        _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
  }
  static OPTFARM_INLINE Register MultiplySubtract(Register a, Register b,
                                                  Register sum) {
    return _mm256_fnmadd_ps(a, b, sum);
  }
  static OPTFARM_INLINE Register Multiply(Register a, Register b) {
    return _mm256_mul_ps(a, b);
  }
};

constexpr int kRows = 4;

constexpr Int4Tiles kTiles = {
    kRows, kFactors,
    [](const Int4Tile& t) {
      RunInt4Tile<Int4Avx2>(t, std::make_integer_sequence<int, kRows>());
    },
    &Int4TileOf<Int4Avx2, 1, kInt4RowPanels>::Run, &UnpackInt4<Int4Avx2>};

}  // namespace

constexpr MicroKernel kInt4GemmAvx2 = {
    .name = "int4_gemm_avx2",
    .kind = MicroKernelKind::kInt4Gemm,
    .needs = {.avx2 = true},
    .mr = kTiles.rows,
    .panel = {.nr = kInt4Width, .kr = kInt4Group},
    .run = {.int4_gemm = &kTiles},
};

}  // namespace optfarm::runtime
