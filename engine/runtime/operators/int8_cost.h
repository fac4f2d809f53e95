// When an int8 GEMM is worth a matrix unit (MicroKernelKind::kInt8MatrixGemm):
// an estimate of the cycles that each kernel takes for a product of this size.
// docs/adr/2026-11-28-amx.md derives the constants, and `ab_bench tiles` on a
// processor with AMX shows where they are wrong.

#ifndef OPTFARM_ENGINE_RUNTIME_OPERATORS_INT8_COST_H_
#define OPTFARM_ENGINE_RUNTIME_OPERATORS_INT8_COST_H_

#include <cstdint>

namespace optfarm::runtime {

struct Int8ProductSize {
  int64_t rows = 0;
  int64_t depth = 0;
  int64_t columns = 0;
  // Whether rows are copied together before they are multiplied, as those of
  // windows larger than a pixel are.
  bool copies_rows = false;
};

// UNITS: cycles of one core, with operands in its caches. REQUIRES of the size:
// nothing is 0.
struct Int8Cycles {
  // vpdpbusd on 512-bit registers, tiles of 12 rows x 32 columns.
  double vector = 0;
  // tdpbusd, tiles of 32 x 32.
  double matrix = 0;
};

Int8Cycles EstimateInt8Cycles(const Int8ProductSize& size);

// Whether the matrix unit is estimated to be faster by a margin.
bool PrefersMatrixUnit(const Int8ProductSize& size);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_OPERATORS_INT8_COST_H_
