// Tiles of 14 rows by 32 columns: 28 of 32 registers hold sums.

#include "engine/runtime/ukernels/float/float_tile.h"
#include "engine/runtime/ukernels/float/float_tile_inl.h"
#include "engine/runtime/ukernels/micro_kernel.h"
#include "engine/runtime/ukernels/vector_avx512_inl.h"

namespace optfarm::runtime {
namespace {

constexpr int kRows = 14;
using Heights = std::make_integer_sequence<int, kRows>;

constexpr FloatTiles kTiles = {
    kRows,
    2 * Avx512::kLanes,
    [](const FloatTile& t) { RunTileOfHeight<Avx512, 2>(t, Heights()); },
    [](const FloatTile& t) { RunTileOfHeight<Avx512, 1>(t, Heights()); },
    [](const FloatTile& t, int64_t stride) {
      RunRowOfPanels<Avx512>(t, stride,
                             std::make_integer_sequence<int, 2 * kRowPanels>());
    },
    &AddRows<Avx512>};

}  // namespace

constexpr MicroKernel kFloatGemmAvx512 = {
    .name = "float_gemm_avx512",
    .kind = MicroKernelKind::kFloatGemm,
    .needs = {.avx512 = true},
    .mr = kTiles.rows,
    .panel = {.nr = kTiles.width},
    .epilogue = kActivates,
    .run = {.float_gemm = &kTiles},
};

}  // namespace optfarm::runtime
