// Output stages of int8 operators: what follows the accumulation before
// anything is stored, as a chain of steps on the accumulators of one tile. Each
// has the arithmetic of the reference kernel whose place it takes
// (core/quantization.h, reference/quantized), bit by bit.
//
// An accumulator is 32 bits wide throughout: an integer (an int32 accumulator
// or a quantized value) or a float.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_STAGE_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_STAGE_H_

#include <cstdint>

#include "engine/runtime/ukernels/always_inline.h"
#include "engine/runtime/ukernels/int8/int8_epilogue.h"

namespace optfarm::runtime {

enum class Int8StageKind : uint8_t {
  // int32 to quint8, equation (4): scale, offset, low, high (the bound).
  kRequantize,
  // table[value] + by_channel[c], saturated to 32 bits.
  kTable,
  // The same for a table that is made of
  // round(fma(value, factor, summand) * unit) + low, halves away from zero,
  // where nothing saturates.
  kRounded,
  // (value - low) * by_channel[c], wrapping.
  kProduct,
  // min(max(value, low), high).
  kClamp,
  // fma(value, factor, summand), a float.
  kDequantize,
  // x * floats[c].
  kScale,
  // x + floats[c].
  kShift,
  // x < 0 ? 0 : x.
  kRelu,
  // The same, and at most 6.
  kRelu6,
  // int32 to quint8 by a float scale: round(value * floats[c]), halves to even,
  // clamped to factor..summand, plus low.
  kRequantizeFloat,
  // float to quint8, equation (2) in single precision:
  // round(x * factor) - summand, clamped to 0..255.
  kQuantize,
};

struct Int8Stage {
  Int8StageKind kind = Int8StageKind::kClamp;
  int64_t scale = 0;
  int64_t offset = 0;
  int32_t low = 0;
  int32_t high = 0;
  float factor = 0;
  float summand = 0;
  float unit = 0;
  // 256 entries.
  const int32_t* table = nullptr;
  // By channel, as many as whole tiles have.
  const int32_t* by_channel = nullptr;
  const float* floats = nullptr;
  // kRequantizeFloat: as Int8Epilogue::has_small_scales.
  bool has_small_scales = false;
};

// Accumulators of rows x nr, row by row, 64-byte aligned. nr is a multiple of
// kInt8NrMultiple (micro_kernel.h); the first one of a row is for channel
// `channel`.
struct Int8Accumulators {
  int32_t* data = nullptr;
  int rows = 0;
  int nr = 0;
  int64_t channel = 0;
};

// min(max(a linear function of two quantized values, least), most), the
// function being
//   t2 >> 14 with t2 = zeros[2] + a * steps[2][0] + b * steps[2][1]
//     + (t1 >> 14), t1 likewise of limb 1 and t0, t0 of limb 0 alone:
// numbers of 42 binary places in three limbs, whose products fit in 32 bits.
// Limbs but the highest are in [0, 2^14).
struct Int8LinearSum {
  static constexpr int kLimbs = 3;
  static constexpr int kLimbBits = 14;

  // Whether 28 binary places are all there are: limb 0 is nothing then.
  OPTFARM_INLINE bool IsShort() const {
    return steps[0][0] == 0 && steps[0][1] == 0 && zeros[0] == 0;
  }

  int16_t steps[kLimbs][2] = {};
  int32_t zeros[kLimbs] = {};
  int32_t least = 0;
  int32_t most = 255;
};

// The functions of an entry of MicroKernelKind::kInt8OutputStages.
struct Int8StageFunctions {
  // Runs `count` stages in place.
  void (*run)(const Int8Stage* stages, int count, const Int8Accumulators& tile);
  // Stores the lowest 8 bits of `channels` accumulators of each row; rows are
  // `stride` bytes apart.
  void (*store_quantized)(const Int8Accumulators& tile, int channels,
                          int64_t stride, uint8_t* out);
  // Runs an epilogue, whose scales are those of the tile.
  void (*requantize)(const Int8Accumulators& tile,
                     const Int8Epilogue& epilogue);
  // Widens low[c] and high[c] to the accumulators of channel c.
  void (*find_range)(const Int8Accumulators& tile, int32_t* low, int32_t* high);
  // The same for floats, in bits; NaN is passed over.
  void (*find_float_range)(const Int8Accumulators& tile, int32_t* low,
                           int32_t* high);
  // Whether one of the floats is NaN.
  bool (*has_nan)(const Int8Accumulators& tile);
  // The sum of `count` quantized values.
  int32_t (*sum_values)(const uint8_t* values, int64_t count);
  // out[i] = zero + a[i] * step_a + b[i] * step_b, which fits in 32 bits.
  void (*add_values)(const uint8_t* a, const uint8_t* b, int64_t count,
                     int32_t zero, int32_t step_a, int32_t step_b,
                     int32_t* out);
  // out[i] = the linear function of a[i] and b[i].
  void (*linear_sum)(const uint8_t* a, const uint8_t* b, int64_t count,
                     const Int8LinearSum& sum, uint8_t* out);
  // out[i] = floats[i] quantized by a stage that is kQuantize.
  void (*quantize)(const Int8Stage& stage, const float* floats, int64_t count,
                   uint8_t* out);
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_STAGE_H_
