// int8 GEMM micro-kernels (MicroKernelKind::kInt8Gemm): a tile of at most mr
// rows of activations times nr output channels, accumulated in int32. All
// entries give the same bits.
//
// Weights are signed: quint8 values less their zero point, or less 128
// (operators/int8_weights.h). Activations are unsigned, as vpdpbusd wants them.
//
// This header is included by files that are compiled for one instruction set,
// and stays free of code but for what is inlined.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_GEMM_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_GEMM_H_

#include <cstdint>

#include "engine/runtime/ukernels/always_inline.h"
#include "engine/runtime/ukernels/int8/int8_epilogue.h"

namespace optfarm::runtime {

// out[r, c] = init[c] + row_init[r] + sum over the depth of
//   (activations[r, k] - activation_shift) * weights[k, c],
// wrapping in 32 bits. mr, nr, kr and activation_shift are the entry's
// (micro_kernel.h).
// OWNERSHIP: all borrowed.
struct Int8GemmTile {
  // The indirection buffer: all_taps() x rows pointers, tap by tap, to `depth`
  // values each; those of residual taps, to kr values. Where rows are packed,
  // only `pack` reads it.
  const uint8_t* const* indirection = nullptr;
  int64_t taps = 1;
  // A multiple of kr.
  int64_t depth = 0;
  // Taps behind the others, of one group of kr values each, which add the
  // outlier residual of the weights (operators/int8_weights.h).
  int64_t residual_taps = 0;

  // ActivationLayout::kStrided. Not 0: row r of each tap lies r *
  // activation_stride bytes behind the tap's first pointer, there is no
  // residual, and each tap is a multiple of the panel's depth_multiple, or the
  // only one and followed by bytes that may be read up to that. 0: rows are
  // packed.
  int64_t activation_stride = 0;

  // ActivationLayout::kPacked and kStrided. The copy, in the kernel's own
  // order: mr rows of packed_stride bytes each, PackedStride of the whole
  // depth.
  uint8_t* packed = nullptr;
  int64_t packed_stride = 0;

  // A packed panel (PanelLayout), 64-byte aligned.
  const int8_t* weights = nullptr;
  // Whether one of the weights may be -128. Where none is, two products of
  // signed bytes fit in 16 bits.
  bool has_least_weight = true;
  // Accumulator init by channel, nr values: the bias and what corrects for the
  // zero points.
  const int32_t* init = nullptr;
  // The same by row.
  const int32_t* row_init = nullptr;
  // Whether one of row_init is not zero.
  bool has_row_init = true;
  // Channels that exist, from the first; nr, or more, for all. Kernels may
  // leave zeros for the others.
  int64_t channels = INT64_MAX;
  // rows x nr accumulators, row by row; 64-byte aligned.
  int32_t* out = nullptr;
  // Not nullptr: the accumulators are requantized and stored there, and `out`
  // is unused. For entries with kRequantizes.
  const Int8Epilogue* epilogue = nullptr;
  // Memory that is read soon: a kernel may prefetch it, `prefetch_step` bytes
  // for each group along the depth. nullptr for none.
  const int8_t* prefetch = nullptr;
  int64_t prefetch_step = 0;

  OPTFARM_INLINE int64_t all_taps() const { return taps + residual_taps; }
  // `kr`: the entry's.
  OPTFARM_INLINE int64_t DepthOf(int64_t tap, int kr) const {
    return tap < taps ? depth : kr;
  }
  OPTFARM_INLINE int64_t WholeDepth(int kr) const {
    return taps * depth + residual_taps * kr;
  }
};

// Packed rows are filled up to whole vectors, and to the panel's multiple.
// `copies`: the entry's packed_copies.
constexpr int64_t PackedStride(int64_t whole_depth, int depth_unit,
                               int copies) {
  const int64_t unit = depth_unit > 32 ? depth_unit : 32;
  return (whole_depth + unit - 1) / unit * unit * copies;
}

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_GEMM_H_
