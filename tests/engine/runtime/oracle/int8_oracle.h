// What the int8 micro-kernels compute, as triple loops and plain arithmetic
// written from the formulas of docs/quantization.md. Shares no code with
// engine/runtime: a mistake there is not repeated here.

#ifndef OPTFARM_TESTS_ENGINE_RUNTIME_ORACLE_INT8_ORACLE_H_
#define OPTFARM_TESTS_ENGINE_RUNTIME_ORACLE_INT8_ORACLE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace optfarm::oracle {

// The lowest 32 bits, as two's complement.
inline int32_t Wrapped(int64_t value) {
  return static_cast<int32_t>(static_cast<uint32_t>(value));
}

inline int64_t FloorDivide(int64_t value, int64_t by) {
  const int64_t quotient = value / by;
  return quotient - (value % by < 0 ? 1 : 0);
}

// Equation (8), with the corrections for the zero points in the accumulator
// init.
struct Int8Gemm {
  int rows = 0;
  int depth = 0;
  int channels = 0;
  // rows x depth, depth x channels.
  std::vector<uint8_t> activations;
  std::vector<int8_t> weights;
  std::vector<int32_t> init;
  std::vector<int32_t> row_init;

  int32_t Accumulator(int row, int channel) const {
    int64_t sum = int64_t{init[channel]} + row_init[row];
    for (int k = 0; k < depth; ++k) {
      sum += int64_t{activations[row * depth + k]} *
             weights[k * channels + channel];
    }
    return Wrapped(sum);
  }
};

// A window that slides over each channel by itself.
struct Int8Depthwise {
  int window_rows = 0;
  int window_columns = 0;
  int channels = 0;
  // Of the input.
  int width = 0;
  int stride = 1;
  int dilation = 1;
  // Where pixel 0's window begins.
  int column = 0;
  uint8_t padding = 0;
  // By row of the window, column of the input and channel; a row that does not
  // exist is padding.
  std::vector<uint8_t> input;
  std::vector<bool> row_exists;
  // By row and column of the window and channel; sums of several int8 weights.
  std::vector<int> weights;
  std::vector<int32_t> init;

  // `first_row`: the input's row under the window's first one.
  int32_t Accumulator(int pixel, int channel, int first_row = 0) const {
    int64_t sum = init[channel];
    for (int y = 0; y < window_rows; ++y) {
      for (int x = 0; x < window_columns; ++x) {
        const int at = column + pixel * stride + x * dilation;
        const int row = first_row + y;
        const bool exists = row_exists[row] && at >= 0 && at < width;
        const int value =
            exists ? input[(row * width + at) * channels + channel] : padding;
        sum += int64_t{value} *
               weights[(y * window_columns + x) * channels + channel];
      }
    }
    return Wrapped(sum);
  }
};

// Equation (27), in single precision, halves to even; the activation's lower
// bound `least` is a quantized value.
inline uint8_t Requantize(int32_t accumulator, float scale, int zero_point,
                          int least) {
  const float real = static_cast<float>(accumulator) * scale;
  const float low = static_cast<float>(least - zero_point);
  const float high = static_cast<float>(255 - zero_point);
  const float clamped = std::min(std::max(real, low), high);
  return static_cast<uint8_t>(static_cast<int>(std::nearbyint(clamped)) +
                              zero_point);
}

// Equation (4) with TensorFlow's fixed-point scale: 32 binary places, then 16.
inline uint8_t RequantizeFixedPoint(int32_t value, int64_t scale,
                                    int64_t offset) {
  const int64_t scaled =
      FloorDivide(int64_t{value} * scale, int64_t{1} << 32) + offset;
  return static_cast<uint8_t>(
      std::clamp<int64_t>(FloorDivide(scaled, 1 << 16), 0, 255));
}

// Equation (2) with 0..255 for the quantized values; NaN gives 0.
inline uint8_t Quantize(float x, float inverse_step, float low_in_steps) {
  const float value = std::round(x * inverse_step) - low_in_steps;
  if (!(value > 0)) return 0;
  return value > 255 ? 255 : static_cast<uint8_t>(value);
}

}  // namespace optfarm::oracle

#endif  // OPTFARM_TESTS_ENGINE_RUNTIME_ORACLE_INT8_ORACLE_H_
