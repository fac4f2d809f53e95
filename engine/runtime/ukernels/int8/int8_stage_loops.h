// The output stages as plain loops that compilers vectorize. `Isa` is a type of
// the including file's own, so that each file keeps its own code.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_STAGE_LOOPS_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_STAGE_LOOPS_H_

#include <cstring>

#include "engine/runtime/ukernels/always_inline.h"
#include "engine/runtime/ukernels/int8/int8_stage.h"
#include "engine/runtime/ukernels/micro_kernel.h"

namespace optfarm::runtime {

template <typename Isa>
struct Int8StageLoops {
  // The number of channels of a tile. Compilers make the best of one that they
  // know: the usual number has code of its own.
  struct UsualNr {
    constexpr operator int() const { return 32; }  // NOLINT
  };
  template <typename Function>
  static OPTFARM_INLINE void WithNr(int nr, const Function& f) {
    if (nr == UsualNr()) {
      f(UsualNr());
    } else {
      f(nr);
    }
  }
  // So many channels are worked on at a time.
  static constexpr int StepOf(UsualNr nr) { return nr; }
  static constexpr int StepOf(int) { return kInt8NrMultiple; }

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

  // Calls f(i) for the nr accumulators of a row.
  template <typename Nr, typename Function>
  static OPTFARM_INLINE void ForRow(Nr nr, const Function& f) {
    constexpr int kStep = StepOf(Nr());
    for (int c = 0; c < nr; c += kStep) {
      for (int i = c; i < c + kStep; ++i) f(i);
    }
  }

  template <typename Nr>
  static void Requantize(const Int8Stage& stage, Nr nr, int32_t* row) {
    const int32_t low = stage.low, high = stage.high;
    const int64_t scale = stage.scale, offset = stage.offset;
    ForRow(nr, [=](int i) OPTFARM_INLINE_LAMBDA {
      const int64_t v = Cut(row[i], low, high);
      int64_t q = (((v * scale) >> 32) + offset) >> 16;
      q = q < 0 ? 0 : q;
      row[i] = static_cast<int32_t>(q > 255 ? 255 : q);
    });
  }

  template <typename Nr>
  static void Table(const Int8Stage& stage, const int32_t* add, Nr nr,
                    int32_t* row) {
    const int32_t* table = stage.table;
    ForRow(nr, [=](int i) OPTFARM_INLINE_LAMBDA {
      const int64_t sum = int64_t{table[row[i]]} + add[i];
      const int64_t low = sum < INT32_MIN ? INT32_MIN : sum;
      row[i] = static_cast<int32_t>(low > INT32_MAX ? INT32_MAX : low);
    });
  }

  // As std::round. The largest float below one half is added away from zero,
  // so that x.5 goes up and nothing below it does.
  static float Round(float x) {
    return __builtin_truncf(x + __builtin_copysignf(0.49999997f, x));
  }

  template <typename Nr>
  static void Rounded(const Int8Stage& stage, const int32_t* add, Nr nr,
                      int32_t* row) {
    const float factor = stage.factor, summand = stage.summand;
    const float unit = stage.unit;
    const auto low = static_cast<uint32_t>(stage.low);
    ForRow(nr, [=](int i) OPTFARM_INLINE_LAMBDA {
      const float x =
          __builtin_fmaf(static_cast<float>(row[i]), factor, summand) * unit;
      // Wrapping, as vectors do.
      row[i] = static_cast<int32_t>(
          static_cast<uint32_t>(static_cast<int32_t>(Round(x))) + low +
          static_cast<uint32_t>(add[i]));
    });
  }

  template <typename Nr>
  static void Product(const Int8Stage& stage, const int32_t* factor, Nr nr,
                      int32_t* row) {
    const int32_t low = stage.low;
    ForRow(nr, [=](int i) OPTFARM_INLINE_LAMBDA {
      row[i] = static_cast<int32_t>(static_cast<uint32_t>(row[i] - low) *
                                    static_cast<uint32_t>(factor[i]));
    });
  }

  template <typename Nr>
  static void Quantize(const Int8Stage& stage, Nr nr, int32_t* row) {
    const float factor = stage.factor, summand = stage.summand;
    ForRow(nr, [=](int i) OPTFARM_INLINE_LAMBDA {
      const float x = AsFloat(row[i]) * factor;
      float value = Round(x) - summand;
      // In this order NaN becomes the lowest value.
      value = value > 0.0f ? value : 0.0f;
      row[i] = static_cast<int32_t>(value < 255.0f ? value : 255.0f);
    });
  }

  template <typename Nr>
  static void RequantizeFloat(const Int8Stage& stage, const float* scales,
                              Nr nr, int32_t* row) {
    // Adding it leaves whole numbers, rounded to even; taking it off is exact.
    constexpr float kWhole = 12582912.0f;
    const float low = stage.factor, high = stage.summand;
    const int32_t zero_point = stage.low;
    ForRow(nr, [=](int i) OPTFARM_INLINE_LAMBDA {
      float x = static_cast<float>(row[i]) * scales[i];
      x = x < low ? low : x;
      x = x > high ? high : x;
      row[i] = static_cast<int32_t>((x + kWhole) - kWhole) + zero_point;
    });
  }

  template <typename Nr>
  static void Clamp(const Int8Stage& stage, Nr nr, int32_t* row) {
    const int32_t low = stage.low, high = stage.high;
    ForRow(nr, [=](int i)
                   OPTFARM_INLINE_LAMBDA { row[i] = Cut(row[i], low, high); });
  }

  template <typename Nr>
  static void Dequantize(const Int8Stage& stage, Nr nr, int32_t* row) {
    const float factor = stage.factor, summand = stage.summand;
    ForRow(nr, [=](int i) OPTFARM_INLINE_LAMBDA {
      row[i] =
          AsBits(__builtin_fmaf(static_cast<float>(row[i]), factor, summand));
    });
  }

  template <typename Nr>
  static void Rectify(bool is_relu6, Nr nr, int32_t* row) {
    ForRow(nr, [=](int i) OPTFARM_INLINE_LAMBDA {
      float x = AsFloat(row[i]);
      x = x < 0.0f ? 0.0f : x;
      if (is_relu6) x = x > 6.0f ? 6.0f : x;
      row[i] = AsBits(x);
    });
  }

  template <typename Nr>
  static void RunRow(const Int8Stage& stage, int64_t channel, Nr nr,
                     int32_t* row) {
    const float* floats = stage.floats;
    switch (stage.kind) {
      case Int8StageKind::kRequantize:
        return Isa::Requantize(stage, nr, row);
      case Int8StageKind::kTable:
        return Isa::Table(stage, stage.by_channel + channel, nr, row);
      case Int8StageKind::kRounded:
        return Isa::Rounded(stage, stage.by_channel + channel, nr, row);
      case Int8StageKind::kProduct:
        return Product(stage, stage.by_channel + channel, nr, row);
      case Int8StageKind::kClamp:
        return Clamp(stage, nr, row);
      case Int8StageKind::kDequantize:
        return Dequantize(stage, nr, row);
      case Int8StageKind::kScale:
        return ForRow(nr, [=](int i) OPTFARM_INLINE_LAMBDA {
          row[i] = AsBits(AsFloat(row[i]) * floats[channel + i]);
        });
      case Int8StageKind::kShift:
        return ForRow(nr, [=](int i) OPTFARM_INLINE_LAMBDA {
          row[i] = AsBits(AsFloat(row[i]) + floats[channel + i]);
        });
      case Int8StageKind::kRelu:
      case Int8StageKind::kRelu6:
        return Rectify(stage.kind == Int8StageKind::kRelu6, nr, row);
      case Int8StageKind::kRequantizeFloat:
        return Isa::RequantizeFloat(stage, floats + channel, nr, row);
      case Int8StageKind::kQuantize:
        return Isa::Quantize(stage, nr, row);
    }
  }

  static void Run(const Int8Stage* stages, int count,
                  const Int8Accumulators& tile) {
    WithNr(tile.nr, [&, rows = tile.rows, channel = tile.channel](auto nr) {
      int32_t* row = tile.data;
      for (int r = 0; r < rows; ++r, row += nr) {
        for (int s = 0; s < count; ++s) RunRow(stages[s], channel, nr, row);
      }
    });
  }

  static void StoreQuantized(const Int8Accumulators& tile, int channels,
                             int64_t stride, uint8_t* out) {
    WithNr(tile.nr, [=, rows = tile.rows, data = tile.data](auto nr) {
      const int32_t* row = data;
      uint8_t* to = out;
      for (int r = 0; r < rows; ++r, row += nr, to += stride) {
        if (channels == nr) {
          ForRow(nr, [=](int i) OPTFARM_INLINE_LAMBDA {
            to[i] = static_cast<uint8_t>(row[i]);
          });
        } else {
          for (int i = 0; i < channels; ++i) {
            to[i] = static_cast<uint8_t>(row[i]);
          }
        }
      }
    });
  }

  static void RunEpilogue(const Int8Accumulators& tile,
                          const Int8Epilogue& epilogue) {
    Int8Stage stage;
    stage.factor = static_cast<float>(epilogue.least - epilogue.zero_point);
    stage.summand = epilogue.most;
    stage.low = epilogue.zero_point;
    WithNr(tile.nr, [&, rows = tile.rows, data = tile.data](auto nr) {
      int32_t* row = data;
      for (int r = 0; r < rows; ++r, row += nr) {
        Isa::RequantizeFloat(stage, epilogue.scales, nr, row);
      }
    });
    Isa::StoreQuantized(tile, epilogue.channels, epilogue.stride, epilogue.out);
  }

  static void FindRange(const Int8Accumulators& tile, int32_t* low,
                        int32_t* high) {
    WithNr(tile.nr, [=, rows = tile.rows, data = tile.data](auto nr) {
      const int32_t* row = data;
      for (int r = 0; r < rows; ++r, row += nr) {
        ForRow(nr, [=](int i) OPTFARM_INLINE_LAMBDA {
          low[i] = row[i] < low[i] ? row[i] : low[i];
          high[i] = row[i] > high[i] ? row[i] : high[i];
        });
      }
    });
  }

  static void FindFloatRange(const Int8Accumulators& tile, int32_t* low,
                             int32_t* high) {
    WithNr(tile.nr, [&](auto nr) {
      constexpr int kCount = StepOf(decltype(nr)());
      for (int c = 0; c < nr; c += kCount) {
        FindFloatRangeFrom<kCount>(tile, c, low, high);
      }
    });
  }

  // Of channels [first, first + kCount).
  template <int kCount>
  static void FindFloatRangeFrom(const Int8Accumulators& tile, int first,
                                 int32_t* low, int32_t* high) {
    float least[kCount], most[kCount];
    std::memcpy(least, low + first, sizeof(least));
    std::memcpy(most, high + first, sizeof(most));
    for (int r = 0; r < tile.rows; ++r) {
      const int32_t* row = tile.data + r * tile.nr + first;
      for (int i = 0; i < kCount; ++i) {
        const float x = AsFloat(row[i]);
        least[i] = x < least[i] ? x : least[i];
        most[i] = x > most[i] ? x : most[i];
      }
    }
    std::memcpy(low + first, least, sizeof(least));
    std::memcpy(high + first, most, sizeof(most));
  }

  static bool HasNan(const Int8Accumulators& tile) {
    int32_t found = 0;
    for (int i = 0; i < tile.rows * tile.nr; ++i) {
      const int32_t magnitude = tile.data[i] & 0x7fffffff;
      found |= magnitude > 0x7f800000 ? 1 : 0;
    }
    return found != 0;
  }

  static int32_t SumValues(const uint8_t* values, int64_t count) {
    uint32_t sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += values[i];
    return static_cast<int32_t>(sum);
  }

  // Products may leave 32 bits where the sum does not.
  static void AddValues(const uint8_t* a, const uint8_t* b, int64_t count,
                        int32_t zero, int32_t step_a, int32_t step_b,
                        int32_t* out) {
    const auto start = static_cast<uint32_t>(zero);
    const auto of_a = static_cast<uint32_t>(step_a);
    const auto of_b = static_cast<uint32_t>(step_b);
    for (int64_t i = 0; i < count; ++i) {
      out[i] = static_cast<int32_t>(start + a[i] * of_a + b[i] * of_b);
    }
  }

  static void LinearSum(const uint8_t* a, const uint8_t* b, int64_t count,
                        const Int8LinearSum& sum, uint8_t* out) {
    constexpr int kBits = Int8LinearSum::kLimbBits;
    for (int64_t i = 0; i < count; ++i) {
      int32_t t = 0;
      for (int limb = 0; limb < Int8LinearSum::kLimbs; ++limb) {
        t = (t >> kBits) + sum.zeros[limb] + a[i] * sum.steps[limb][0] +
            b[i] * sum.steps[limb][1];
      }
      out[i] = static_cast<uint8_t>(Cut(t >> kBits, sum.least, sum.most));
    }
  }

  static void QuantizeFloats(const Int8Stage& stage, const float* floats,
                             int64_t count, uint8_t* out) {
    constexpr int kAtOnce = 2 * kInt8NrMultiple;
    alignas(64) int32_t row[kAtOnce] = {};
    for (int64_t i = 0; i < count; i += kAtOnce) {
      const int64_t left = count - i < kAtOnce ? count - i : kAtOnce;
      std::memcpy(row, floats + i, static_cast<size_t>(left) * sizeof(float));
      Isa::Quantize(stage, kAtOnce, row);
      for (int64_t k = 0; k < left; ++k) {
        out[i + k] = static_cast<uint8_t>(row[k]);
      }
    }
  }

  static constexpr Int8StageFunctions Functions() {
    return {Isa::Run,           Isa::StoreQuantized, Isa::RunEpilogue,
            Isa::FindRange,     Isa::FindFloatRange, Isa::HasNan,
            Isa::SumValues,     Isa::AddValues,      Isa::LinearSum,
            Isa::QuantizeFloats};
  }
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_STAGE_LOOPS_H_
