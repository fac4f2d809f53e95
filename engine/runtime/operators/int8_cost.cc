#include "engine/runtime/operators/int8_cost.h"

namespace optfarm::runtime {
namespace {

// Multiply-adds in a cycle: two units of 16 x 4.
constexpr double kVectorProducts = 128;
// What a tile of 12 x 32 takes besides: init, pointers, epilogue.
constexpr double kVectorTileCycles = 60;
// One product of tile registers: 16 rows x 16 columns x 64 values.
constexpr double kRegisterCycles = 16;
// What a tile of 32 x 32 takes besides: the latency of the last product, four
// stores of registers, the epilogue over 1024 sums in memory.
constexpr double kMatrixTileCycles = 250;
// A configuration of the registers. Tiles of fewer than 16 rows take two.
constexpr double kConfigureCycles = 150;
// Copying 64 values of a row.
constexpr double kCopyCycles = 4;
// How much faster the estimate has to be: what it does not know (caches,
// frequency) is likelier to cost the matrix unit.
constexpr double kMargin = 1.25;

constexpr int64_t kVectorMr = 12, kMatrixMr = 32, kPanel = 32;
constexpr int64_t kRegisterRows = 16, kRegisterDepth = 64;

int64_t Quotient(int64_t value, int64_t by) { return (value + by - 1) / by; }

}  // namespace

Int8Cycles EstimateInt8Cycles(const Int8ProductSize& size) {
  const auto rows = static_cast<double>(size.rows);
  const auto panels = static_cast<double>(Quotient(size.columns, kPanel));
  const auto vector_tiles = static_cast<double>(Quotient(size.rows, kVectorMr));
  Int8Cycles cycles;
  cycles.vector = rows * static_cast<double>(size.depth) * panels * kPanel /
                      kVectorProducts +
                  vector_tiles * panels * kVectorTileCycles;

  const int64_t tiles = Quotient(size.rows, kMatrixMr);
  const int64_t tile_rows = Quotient(size.rows, tiles);
  const int64_t registers = Quotient(tile_rows, kRegisterRows) *
                            Quotient(size.columns, kRegisterRows);
  const auto blocks = static_cast<double>(Quotient(size.depth, kRegisterDepth));
  const double of_tile = kMatrixTileCycles +
                         (tile_rows < kRegisterRows ? 2 * kConfigureCycles : 0);
  cycles.matrix =
      static_cast<double>(tiles * registers) * blocks * kRegisterCycles +
      static_cast<double>(tiles) * panels * of_tile + 2 * kConfigureCycles;
  if (size.copies_rows) cycles.matrix += rows * blocks * kCopyCycles;
  return cycles;
}

bool PrefersMatrixUnit(const Int8ProductSize& size) {
  const Int8Cycles cycles = EstimateInt8Cycles(size);
  return cycles.matrix * kMargin < cycles.vector;
}

}  // namespace optfarm::runtime
