// What the float micro-kernels compute, as plain loops over single numbers.
// Shares no code with engine/runtime: a mistake there is not repeated here.

#ifndef OPTFARM_TESTS_ENGINE_RUNTIME_ORACLE_FLOAT_ORACLE_H_
#define OPTFARM_TESTS_ENGINE_RUNTIME_ORACLE_FLOAT_ORACLE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace optfarm::oracle {

enum class Activation { kNone, kRelu, kRelu6 };

// NaN stays NaN.
template <typename Real>
Real Activated(Real x, Activation activation) {
  if (activation != Activation::kNone && x < 0) return 0;
  return activation == Activation::kRelu6 && x > 6 ? 6 : x;
}

// What follows a sum: a scale and a bias for each channel, where there are any,
// a residual and the activation.
struct FloatEpilogue {
  std::vector<float> scale;
  std::vector<float> bias;
  Activation activation = Activation::kNone;

  // Scale and bias are one fused multiply-add.
  float Of(float sum, int channel, float residual) const {
    const float shift = bias.empty() ? 0.0f : bias[channel];
    sum = scale.empty() ? sum + shift : std::fma(sum, scale[channel], shift);
    return Activated(sum + residual, activation);
  }
  double Near(double sum, int channel, double residual) const {
    if (!scale.empty()) sum *= scale[channel];
    if (!bias.empty()) sum += bias[channel];
    return Activated(sum + residual, activation);
  }
};

// Sums are added in the order of the depth, one rounding for each product.
struct FloatGemm {
  int depth = 0;
  int channels = 0;
  // rows x depth, depth x channels.
  std::vector<float> activations;
  std::vector<float> weights;

  float Sum(int row, int channel, float sum = 0) const {
    for (int k = 0; k < depth; ++k) {
      sum = std::fma(activations[row * depth + k],
                     weights[k * channels + channel], sum);
    }
    return sum;
  }
};

// A window of `cells` places side by side that slides over each channel by
// itself.
struct FloatWindow {
  int cells = 0;
  int channels = 0;
  // Places from one pixel's window to the next.
  int stride = 1;
  // By place and channel; by cell and channel.
  std::vector<float> input;
  std::vector<float> weights;

  float Input(int pixel, int cell, int channel) const {
    return input[(pixel * stride + cell) * channels + channel];
  }
  float Depthwise(int pixel, int channel) const {
    float sum = 0;
    for (int i = 0; i < cells; ++i) {
      sum = std::fma(Input(pixel, i, channel), weights[i * channels + channel],
                     sum);
    }
    return sum;
  }
  // NaN loses against everything.
  float Max(int pixel, int channel) const {
    float most = std::numeric_limits<float>::lowest();
    for (int i = 0; i < cells; ++i) {
      const float x = Input(pixel, i, channel);
      if (x > most) most = x;
    }
    return most;
  }
  double Average(int pixel, int channel) const {
    double sum = 0;
    for (int i = 0; i < cells; ++i) sum += Input(pixel, i, channel);
    return sum / cells;
  }
};

// A 3x3 convolution of an image of 4x4 pixels: its 2x2 results.
struct FloatConvolution {
  int channels = 0;
  int filters = 0;
  // By pixel and channel; by tap, channel and filter.
  std::vector<float> image;
  std::vector<float> weights;

  double Sum(int pixel, int filter) const {
    double sum = 0;
    for (int y = 0; y < 3; ++y) {
      for (int x = 0; x < 3; ++x) {
        const int at = (pixel / 2 + y) * 4 + pixel % 2 + x;
        for (int k = 0; k < channels; ++k) {
          sum += double{image[at * channels + k]} *
                 weights[((3 * y + x) * channels + k) * filters + filter];
        }
      }
    }
    return sum;
  }
};

// e^x over the sum of all e^x.
inline std::vector<double> Softmax(const std::vector<double>& row) {
  const double largest = *std::max_element(row.begin(), row.end());
  std::vector<double> powers;
  double sum = 0;
  for (const double x : row) sum += powers.emplace_back(std::exp(x - largest));
  for (double& power : powers) power /= sum;
  return powers;
}

}  // namespace optfarm::oracle

#endif  // OPTFARM_TESTS_ENGINE_RUNTIME_ORACLE_FLOAT_ORACLE_H_
