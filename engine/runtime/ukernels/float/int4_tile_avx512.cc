// Weights of 4 bits by AVX-512: a panel in a register. A table of the sixteen
// codes as floats, of which permutes read the lowest four bits of each index,
// takes the place of masking and converting.

#include "engine/runtime/ukernels/float/int4_tile.h"
#include "engine/runtime/ukernels/float/int4_tile_inl.h"
#include "engine/runtime/ukernels/micro_kernel.h"
#include "engine/runtime/ukernels/vector_avx512_inl.h"

namespace optfarm::runtime {
namespace {

struct Int4Avx512 : Avx512 {
  using Words = __m512i;
  static constexpr const float* kInputFactors = nullptr;

  static OPTFARM_INLINE Words LoadWords(const uint32_t* p) {
    return _mm512_loadu_si512(p);
  }
  static OPTFARM_INLINE Register Looked(Words words) {
    const Register table =
        _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return _mm512_permutexvar_ps(words, table);
  }
  template <int kPlace>
  static OPTFARM_INLINE Register Codes(Words words) {
    if constexpr (kPlace > 0) words = _mm512_srli_epi32(words, 4 * kPlace);
    return Looked(words);
  }
  static OPTFARM_INLINE Register Code(Words words, int place) {
    return Looked(_mm512_srl_epi32(words, _mm_cvtsi32_si128(4 * place)));
  }
  static OPTFARM_INLINE Register LoadZeros(const uint8_t* p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
  }
  static OPTFARM_INLINE Register MultiplySubtract(Register a, Register b,
                                                  Register sum) {
    return _mm512_fnmadd_ps(a, b, sum);
  }
  static OPTFARM_INLINE Register Multiply(Register a, Register b) {
    return _mm512_mul_ps(a, b);
  }
};

constexpr int kRows = 6;

constexpr Int4Tiles kTiles = {
    kRows, nullptr,
    [](const Int4Tile& t) {
      RunInt4Tile<Int4Avx512>(t, std::make_integer_sequence<int, kRows>());
    },
    &Int4TileOf<Int4Avx512, 1, kInt4RowPanels>::Run, &UnpackInt4<Int4Avx512>};

}  // namespace

constexpr MicroKernel kInt4GemmAvx512 = {
    .name = "int4_gemm_avx512",
    .kind = MicroKernelKind::kInt4Gemm,
    .needs = {.avx512 = true},
    .mr = kTiles.rows,
    .panel = {.nr = kInt4Width, .kr = kInt4Group},
    .run = {.int4_gemm = &kTiles},
};

}  // namespace optfarm::runtime
