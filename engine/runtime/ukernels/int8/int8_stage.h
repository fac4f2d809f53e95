// What follows an 8-bit product before anything is stored: a chain of steps on
// the numbers of one tile, each with the arithmetic of the kernel whose place
// it takes (quantization.h, kernels/quantized_*.cc), bit by bit.
//
// A number is 32 bits wide throughout: an integer (a 32-bit code or an 8-bit
// one) or a float.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_STAGE_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_STAGE_H_

#include <cstdint>

#include "engine/runtime/ukernels/int8/int8_finish.h"

namespace optfarm::runtime {

enum class Int8StageKind : uint8_t {
  // 32-bit to 8-bit codes, equation (4): scale, offset, low, high (the bound).
  kRequantize,
  // table[code] + by_channel[c], cut to 32 bits.
  kTable,
  // The same for a table that is made of
  // round(fma(code, factor, summand) * unit) + low, halves away from zero,
  // where nothing needs to be cut.
  kRounded,
  // (code - low) * by_channel[c], wrapping.
  kProduct,
  // min(max(code, low), high).
  kClamp,
  // fma(code, factor, summand), a float.
  kDequantize,
  // x * floats[c].
  kScale,
  // x + floats[c].
  kShift,
  // x < 0 ? 0 : x.
  kRelu,
  // The same, and at most 6.
  kRelu6,
  // A 32-bit to an 8-bit code: round(code * floats[c]), halves to even, cut to
  // factor..summand, plus low.
  kNarrow,
  // A float to an 8-bit code, equation (2) in single precision:
  // round(x * factor) - summand, cut to 0..255.
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
  // By channel, as many as whole tiles have columns.
  const int32_t* by_channel = nullptr;
  const float* floats = nullptr;
  // kNarrow: as Int8Finish::is_small.
  bool is_small = false;
};

// Numbers of `rows` x kInt8Columns, row by row, 64-byte aligned; the first
// column is channel `channel`.
struct Int8Numbers {
  int32_t* data = nullptr;
  int rows = 0;
  int64_t channel = 0;
};

// min(max(a line through two codes, least), most), the line being
//   t2 >> 14 with t2 = zeros[2] + a * steps[2][0] + b * steps[2][1]
//     + (t1 >> 14), t1 likewise of limb 1 and t0, t0 of limb 0 alone:
// numbers of 42 binary places in three limbs, whose products fit in 32 bits.
struct Int8CodeSum {
  static constexpr int kLimbs = 3;
  static constexpr int kLimbBits = 14;
  int16_t steps[kLimbs][2] = {};
  int32_t zeros[kLimbs] = {};
  int32_t least = 0;
  int32_t most = 255;
};

// What is done with tiles besides multiplying.
struct Int8StageFunctions {
  // Runs `count` stages in place.
  void (*run)(const Int8Stage* stages, int count, const Int8Numbers& numbers);
  // Stores the numbers' lowest 8 bits: `columns` of each row, rows `stride`
  // bytes apart.
  void (*store_codes)(const Int8Numbers& numbers, int columns, int64_t stride,
                      uint8_t* out);
  // A tile's numbers by Int8Finish, whose factors are those of the tile.
  void (*finish)(const Int8Numbers& numbers, const Int8Finish& finish);
  // Widens low[c] and high[c] to what the numbers of column c are.
  void (*find_range)(const Int8Numbers& numbers, int32_t* low, int32_t* high);
  // The same for floats, in bits; NaN is passed over.
  void (*find_float_range)(const Int8Numbers& numbers, int32_t* low,
                           int32_t* high);
  // Whether one of the floats is NaN.
  bool (*has_nan)(const Int8Numbers& numbers);
  // The sum of `count` codes.
  int32_t (*sum_codes)(const uint8_t* codes, int64_t count);
  // out[i] = zero + a[i] * step_a + b[i] * step_b, which fits in 32 bits.
  void (*add_codes)(const uint8_t* a, const uint8_t* b, int64_t count,
                    int32_t zero, int32_t step_a, int32_t step_b, int32_t* out);
  // out[i] = the line through a[i] and b[i].
  void (*sum_of_codes)(const uint8_t* a, const uint8_t* b, int64_t count,
                       const Int8CodeSum& sum, uint8_t* out);
  // out[i] = the code of floats[i] by a stage that is kQuantize.
  void (*codes_of_floats)(const Int8Stage& stage, const float* floats,
                          int64_t count, uint8_t* out);
};

extern const Int8StageFunctions kInt8StagesPortable;
extern const Int8StageFunctions kInt8StagesAvx2;
extern const Int8StageFunctions kInt8StagesAvx512;
extern const Int8StageFunctions kInt8StagesNeon;

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_STAGE_H_
