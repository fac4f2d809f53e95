// Tiles of 8 rows by 8 columns on 64-bit ARM (16 of 32 registers hold sums), of
// 4 by 8 on 32-bit ARM, which has half as many.

#include "engine/runtime/ukernels/float/float_tile.h"
#include "engine/runtime/ukernels/float/float_tile_inl.h"
#include "engine/runtime/ukernels/micro_kernel.h"
#include "engine/runtime/ukernels/vector_neon_inl.h"

namespace optfarm::runtime {
namespace {

#if defined(__aarch64__)
constexpr int kRows = 8;
#else
constexpr int kRows = 4;
#endif
using Heights = std::make_integer_sequence<int, kRows>;

constexpr FloatTiles kTiles = {
    kRows,
    2 * Neon::kLanes,
    [](const FloatTile& t) { RunTileOfHeight<Neon, 2>(t, Heights()); },
    [](const FloatTile& t) { RunTileOfHeight<Neon, 1>(t, Heights()); },
    [](const FloatTile& t, int64_t stride) {
      RunRowOfPanels<Neon>(t, stride,
                           std::make_integer_sequence<int, 2 * kRowPanels>());
    },
    &AddRows<Neon>};

}  // namespace

constexpr MicroKernel kFloatGemmNeon = {
    .name = "float_gemm_neon",
    .kind = MicroKernelKind::kFloatGemm,
    .needs = {.neon = true},
    .mr = kTiles.rows,
    .panel = {.nr = kTiles.width},
    .epilogue = kActivates,
    .run = {.float_gemm = &kTiles},
};

}  // namespace optfarm::runtime
