// Weights of 4 bits by NEON: four columns in a register. Codes are converted
// where they stand in their words, as fixed-point numbers.

#include "engine/runtime/ukernels/float/int4_tile.h"
#include "engine/runtime/ukernels/float/int4_tile_inl.h"
#include "engine/runtime/ukernels/micro_kernel.h"
#include "engine/runtime/ukernels/vector_neon_inl.h"

namespace optfarm::runtime {
namespace {

struct Int4Neon : Neon {
  using Words = uint32x4_t;
  static constexpr const float* kInputFactors = nullptr;

  static OPTFARM_INLINE Words LoadWords(const uint32_t* p) {
    return vld1q_u32(p);
  }
  template <int kPlace>
  static OPTFARM_INLINE Register Codes(Words words) {
    if constexpr (kPlace == 0) {
      return vcvtq_f32_u32(vandq_u32(words, vdupq_n_u32(15)));
    } else if constexpr (kPlace + 1 == kInt4Group) {
      return vcvtq_f32_u32(vshrq_n_u32(words, 4 * kPlace));
    } else {
      return vcvtq_n_f32_u32(
          vandq_u32(words, vdupq_n_u32(uint32_t{15} << (4 * kPlace))),
          4 * kPlace);
    }
  }
  static OPTFARM_INLINE Register Code(Words words, int place) {
    words = vshlq_u32(words, vdupq_n_s32(-4 * place));
    return vcvtq_f32_u32(vandq_u32(words, vdupq_n_u32(15)));
  }
  static OPTFARM_INLINE Register LoadZeros(const uint8_t* p) {
    const uint32_t zeros[] = {p[0], p[1], p[2], p[3]};
    return vcvtq_f32_u32(vld1q_u32(zeros));
  }
  static OPTFARM_INLINE Register MultiplySubtract(Register a, Register b,
                                                  Register sum) {
    return vfmsq_f32(sum, a, b);
  }
  static OPTFARM_INLINE Register Multiply(Register a, Register b) {
    return vmulq_f32(a, b);
  }
};

#if defined(__aarch64__)
constexpr int kRows = 4;
#else
constexpr int kRows = 2;
#endif

// A panel after the other: its four sums are enough for one row.
void MultiplyRow(const Int4Tile& t) {
  Int4Tile tile = t;
  const int64_t groups = (t.panel.depth + kInt4Group - 1) / kInt4Group;
  const int64_t blocks = (t.panel.depth + t.panel.block - 1) / t.panel.block;
  for (int p = 0; p < kInt4RowPanels; ++p) {
    Int4TileOf<Int4Neon, 1, 1>::Run(tile);
    tile.panel.codes += groups * kInt4Width;
    tile.panel.scales += blocks * kInt4Width;
    tile.panel.zeros += blocks * kInt4Width;
    tile.out += kInt4Width;
  }
}

constexpr Int4Tiles kTiles = {
    kRows, nullptr,
    [](const Int4Tile& t) {
      RunInt4Tile<Int4Neon>(t, std::make_integer_sequence<int, kRows>());
    },
    &MultiplyRow, &UnpackInt4<Int4Neon>};

}  // namespace

constexpr MicroKernel kInt4GemmNeon = {
    .name = "int4_gemm_neon",
    .kind = MicroKernelKind::kInt4Gemm,
    .needs = {.neon = true},
    .mr = kTiles.rows,
    .panel = {.nr = kInt4Width, .kr = kInt4Group},
    .run = {.int4_gemm = &kTiles},
};

}  // namespace optfarm::runtime
