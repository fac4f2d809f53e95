// The stages as plain loops, for compilers to make vectors of. `Isa` is a type
// of the including file's own, so that each file keeps its own code.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_STAGE_LOOPS_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_STAGE_LOOPS_H_

#include <cstring>

#include "engine/runtime/ukernels/int8/int8_stage.h"
#include "engine/runtime/ukernels/int8/int8_tile.h"

namespace optfarm::runtime {

template <typename Isa>
struct Int8StageLoops {
  static int32_t Cut(int32_t value, int32_t low, int32_t high) {
    value = value < low ? low : value;
    return value > high ? high : value;
  }
  static float AsFloat(int32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  }
  static int32_t AsBits(float value) {
    int32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    return bits;
  }

  static void Requantize(const Int8Stage& stage, int32_t* row) {
    for (int i = 0; i < kInt8Columns; ++i) {
      const int64_t v = Cut(row[i], stage.low, stage.high);
      int64_t q = (((v * stage.scale) >> 32) + stage.offset) >> 16;
      q = q < 0 ? 0 : q;
      row[i] = static_cast<int32_t>(q > 255 ? 255 : q);
    }
  }

  static void Table(const Int8Stage& stage, const int32_t* add, int32_t* row) {
    for (int i = 0; i < kInt8Columns; ++i) {
      const int64_t sum = int64_t{stage.table[row[i]]} + add[i];
      const int64_t low = sum < INT32_MIN ? INT32_MIN : sum;
      row[i] = static_cast<int32_t>(low > INT32_MAX ? INT32_MAX : low);
    }
  }

  // As std::round. The largest float below one half is added away from zero,
  // so that x.5 goes up and nothing below it does.
  static float Round(float x) {
    return __builtin_truncf(x + __builtin_copysignf(0.49999997f, x));
  }

  static void Rounded(const Int8Stage& stage, const int32_t* add,
                      int32_t* row) {
    for (int i = 0; i < kInt8Columns; ++i) {
      const float x = __builtin_fmaf(static_cast<float>(row[i]), stage.factor,
                                     stage.summand) *
                      stage.unit;
      // Wrapping, as vectors do.
      row[i] = static_cast<int32_t>(
          static_cast<uint32_t>(static_cast<int32_t>(Round(x))) +
          static_cast<uint32_t>(stage.low) + static_cast<uint32_t>(add[i]));
    }
  }

  static void Product(const Int8Stage& stage, const int32_t* factor,
                      int32_t* row) {
    for (int i = 0; i < kInt8Columns; ++i) {
      row[i] = static_cast<int32_t>(static_cast<uint32_t>(row[i] - stage.low) *
                                    static_cast<uint32_t>(factor[i]));
    }
  }

  static void Quantize(const Int8Stage& stage, int32_t* row) {
    for (int i = 0; i < kInt8Columns; ++i) {
      const float x = AsFloat(row[i]) * stage.factor;
      float code = Round(x) - stage.summand;
      // In this order NaN becomes the lowest code.
      code = code > 0.0f ? code : 0.0f;
      row[i] = static_cast<int32_t>(code < 255.0f ? code : 255.0f);
    }
  }

  static void Narrow(const Int8Stage& stage, const float* floats,
                     int32_t* row) {
    // Adding it leaves whole numbers, rounded to even; taking it off is exact.
    constexpr float kWhole = 12582912.0f;
    for (int i = 0; i < kInt8Columns; ++i) {
      float x = static_cast<float>(row[i]) * floats[i];
      x = x < stage.factor ? stage.factor : x;
      x = x > stage.summand ? stage.summand : x;
      row[i] = static_cast<int32_t>((x + kWhole) - kWhole) + stage.low;
    }
  }

  static void RunRow(const Int8Stage& stage, int64_t channel, int32_t* row) {
    switch (stage.kind) {
      case Int8StageKind::kRequantize:
        return Isa::Requantize(stage, row);
      case Int8StageKind::kTable:
        return Isa::Table(stage, stage.by_channel + channel, row);
      case Int8StageKind::kRounded:
        return Isa::Rounded(stage, stage.by_channel + channel, row);
      case Int8StageKind::kProduct:
        return Product(stage, stage.by_channel + channel, row);
      case Int8StageKind::kClamp:
        for (int i = 0; i < kInt8Columns; ++i) {
          row[i] = Cut(row[i], stage.low, stage.high);
        }
        return;
      case Int8StageKind::kDequantize:
        for (int i = 0; i < kInt8Columns; ++i) {
          row[i] = AsBits(__builtin_fmaf(static_cast<float>(row[i]),
                                         stage.factor, stage.summand));
        }
        return;
      case Int8StageKind::kScale:
        for (int i = 0; i < kInt8Columns; ++i) {
          row[i] = AsBits(AsFloat(row[i]) * stage.floats[channel + i]);
        }
        return;
      case Int8StageKind::kShift:
        for (int i = 0; i < kInt8Columns; ++i) {
          row[i] = AsBits(AsFloat(row[i]) + stage.floats[channel + i]);
        }
        return;
      case Int8StageKind::kRelu:
      case Int8StageKind::kRelu6:
        return Rectify(stage.kind == Int8StageKind::kRelu6, row);
      case Int8StageKind::kNarrow:
        return Isa::Narrow(stage, stage.floats + channel, row);
      case Int8StageKind::kQuantize:
        return Isa::Quantize(stage, row);
    }
  }

  static void Rectify(bool has_six, int32_t* row) {
    for (int i = 0; i < kInt8Columns; ++i) {
      float x = AsFloat(row[i]);
      x = x < 0.0f ? 0.0f : x;
      if (has_six) x = x > 6.0f ? 6.0f : x;
      row[i] = AsBits(x);
    }
  }

  static void Run(const Int8Stage* stages, int count,
                  const Int8Numbers& numbers) {
    for (int r = 0; r < numbers.rows; ++r) {
      int32_t* row = numbers.data + r * kInt8Columns;
      for (int s = 0; s < count; ++s) RunRow(stages[s], numbers.channel, row);
    }
  }

  static void StoreCodes(const Int8Numbers& numbers, int columns,
                         int64_t stride, uint8_t* out) {
    for (int r = 0; r < numbers.rows; ++r) {
      const int32_t* row = numbers.data + r * kInt8Columns;
      if (columns == kInt8Columns) {
        for (int i = 0; i < kInt8Columns; ++i) {
          out[i] = static_cast<uint8_t>(row[i]);
        }
      } else {
        for (int i = 0; i < columns; ++i) out[i] = static_cast<uint8_t>(row[i]);
      }
      out += stride;
    }
  }

  static void Finish(const Int8Numbers& numbers, const Int8Finish& finish) {
    Int8Stage narrow;
    narrow.factor = static_cast<float>(finish.least - finish.zero);
    narrow.summand = finish.most;
    narrow.low = finish.zero;
    for (int r = 0; r < numbers.rows; ++r) {
      Isa::Narrow(narrow, finish.factors, numbers.data + r * kInt8Columns);
    }
    Isa::StoreCodes(numbers, finish.columns, finish.stride, finish.out);
  }

  static void FindRange(const Int8Numbers& numbers, int32_t* low,
                        int32_t* high) {
    for (int r = 0; r < numbers.rows; ++r) {
      const int32_t* row = numbers.data + r * kInt8Columns;
      for (int i = 0; i < kInt8Columns; ++i) {
        low[i] = row[i] < low[i] ? row[i] : low[i];
        high[i] = row[i] > high[i] ? row[i] : high[i];
      }
    }
  }

  static void FindFloatRange(const Int8Numbers& numbers, int32_t* low,
                             int32_t* high) {
    float least[kInt8Columns], most[kInt8Columns];
    std::memcpy(least, low, sizeof(least));
    std::memcpy(most, high, sizeof(most));
    for (int r = 0; r < numbers.rows; ++r) {
      const int32_t* row = numbers.data + r * kInt8Columns;
      for (int i = 0; i < kInt8Columns; ++i) {
        const float x = AsFloat(row[i]);
        least[i] = x < least[i] ? x : least[i];
        most[i] = x > most[i] ? x : most[i];
      }
    }
    std::memcpy(low, least, sizeof(least));
    std::memcpy(high, most, sizeof(most));
  }

  static bool HasNan(const Int8Numbers& numbers) {
    int32_t found = 0;
    for (int i = 0; i < numbers.rows * kInt8Columns; ++i) {
      const int32_t magnitude = numbers.data[i] & 0x7fffffff;
      found |= magnitude > 0x7f800000 ? 1 : 0;
    }
    return found != 0;
  }

  static int32_t SumCodes(const uint8_t* codes, int64_t count) {
    uint32_t sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += codes[i];
    return static_cast<int32_t>(sum);
  }

  // Products may leave 32 bits where the sum does not.
  static void AddCodes(const uint8_t* a, const uint8_t* b, int64_t count,
                       int32_t zero, int32_t step_a, int32_t step_b,
                       int32_t* out) {
    const auto start = static_cast<uint32_t>(zero);
    const auto of_a = static_cast<uint32_t>(step_a);
    const auto of_b = static_cast<uint32_t>(step_b);
    for (int64_t i = 0; i < count; ++i) {
      out[i] = static_cast<int32_t>(start + a[i] * of_a + b[i] * of_b);
    }
  }

  static void SumOfCodes(const uint8_t* a, const uint8_t* b, int64_t count,
                         const Int8CodeSum& sum, uint8_t* out) {
    constexpr int kBits = Int8CodeSum::kLimbBits;
    for (int64_t i = 0; i < count; ++i) {
      int32_t t = 0;
      for (int limb = 0; limb < Int8CodeSum::kLimbs; ++limb) {
        t = (t >> kBits) + sum.zeros[limb] + a[i] * sum.steps[limb][0] +
            b[i] * sum.steps[limb][1];
      }
      out[i] = static_cast<uint8_t>(Cut(t >> kBits, sum.least, sum.most));
    }
  }

  static void CodesOfFloats(const Int8Stage& stage, const float* floats,
                            int64_t count, uint8_t* out) {
    alignas(64) int32_t row[kInt8Columns] = {};
    for (int64_t i = 0; i < count; i += kInt8Columns) {
      const int64_t left = count - i < kInt8Columns ? count - i : kInt8Columns;
      std::memcpy(row, floats + i, static_cast<size_t>(left) * sizeof(float));
      Isa::Quantize(stage, row);
      for (int64_t k = 0; k < left; ++k) {
        out[i + k] = static_cast<uint8_t>(row[k]);
      }
    }
  }

  static constexpr Int8StageFunctions Functions() {
    return {Isa::Run,          Isa::StoreCodes,     Isa::Finish,
            Isa::FindRange,    Isa::FindFloatRange, Isa::HasNan,
            Isa::SumCodes,     Isa::AddCodes,       Isa::SumOfCodes,
            Isa::CodesOfFloats};
  }
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_STAGE_LOOPS_H_
