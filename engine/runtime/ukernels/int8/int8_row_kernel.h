// int8 row kernels (MicroKernelKind::kInt8Row): a GEMM micro-kernel for
// convolutions over few input channels. It computes a whole row of output
// pixels, whose windows lie `step` bytes apart, so that only the first window
// needs an indirection buffer.
//
// `first` is the tile of the first pixel, with a tap for each group:
//   first.depth == kr, first.epilogue is set, first.row_init is all zeros.
// An entry has at least mr rows to compute, requantizes, and reads the panels
// of the GEMM entry that is selected beside it, which have no depth_multiple.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_ROW_KERNEL_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_ROW_KERNEL_H_

#include "engine/runtime/ukernels/int8/int8_gemm.h"

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_ROW_KERNEL_H_
