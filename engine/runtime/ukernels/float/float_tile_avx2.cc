// Tiles of 6 rows by 16 columns: 12 of 16 registers hold sums.

#include "engine/runtime/ukernels/float/float_tile.h"
#include "engine/runtime/ukernels/float/float_tile_inl.h"
#include "engine/runtime/ukernels/micro_kernel.h"
#include "engine/runtime/ukernels/vector_avx2_inl.h"

namespace optfarm::runtime {
namespace {

constexpr int kRows = 6;
using Heights = std::make_integer_sequence<int, kRows>;

constexpr FloatTiles kTiles = {
    kRows,
    2 * Avx2::kLanes,
    [](const FloatTile& t) { RunTileOfHeight<Avx2, 2>(t, Heights()); },
    [](const FloatTile& t) { RunTileOfHeight<Avx2, 1>(t, Heights()); },
    [](const FloatTile& t, int64_t stride) {
      RunRowOfPanels<Avx2>(t, stride,
                           std::make_integer_sequence<int, 2 * kRowPanels>());
    },
    &AddRows<Avx2>};

}  // namespace

constexpr MicroKernel kFloatGemmAvx2 = {
    .name = "float_gemm_avx2",
    .kind = MicroKernelKind::kFloatGemm,
    .needs = {.avx2 = true},
    .mr = kTiles.rows,
    .panel = {.nr = kTiles.width},
    .epilogue = kActivates,
    .run = {.float_gemm = &kTiles},
};

}  // namespace optfarm::runtime
