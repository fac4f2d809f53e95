// What the micro-kernels for weights of 4 bits compute, as plain loops over
// single numbers. Shares no code with engine/runtime: a mistake there is not
// repeated here.

#ifndef OPTFARM_TESTS_ENGINE_RUNTIME_ORACLE_INT4_ORACLE_H_
#define OPTFARM_TESTS_ENGINE_RUNTIME_ORACLE_INT4_ORACLE_H_

#include <algorithm>
#include <cmath>
#include <vector>

namespace optfarm::oracle {

// Weights of 4 bits with a scale and a zero point for each channel of a block.
// The sum of a block is added with one rounding for each code, then shifted by
// the zero point, then scaled.
struct Int4Gemm {
  int depth = 0;
  int channels = 0;
  int block = 0;
  // rows x depth, depth x channels, blocks x channels twice.
  std::vector<float> activations;
  std::vector<int> codes;
  std::vector<float> scales;
  std::vector<int> zeros;

  int blocks() const { return (depth + block - 1) / block; }
  float Weight(int k, int channel) const {
    const int at = k / block * channels + channel;
    return static_cast<float>(codes[k * channels + channel] - zeros[at]) *
           scales[at];
  }
  // In the order of the depth.
  float ActivationSum(int row, int b) const {
    float sum = 0;
    for (int k = b * block; k < std::min(depth, (b + 1) * block); ++k) {
      sum += activations[row * depth + k];
    }
    return sum;
  }
  float Sum(int row, int channel) const {
    float sum = 0;
    for (int b = 0; b < blocks(); ++b) {
      float of_block = 0;
      for (int k = b * block; k < std::min(depth, (b + 1) * block); ++k) {
        of_block = std::fma(activations[row * depth + k],
                            static_cast<float>(codes[k * channels + channel]),
                            of_block);
      }
      const int at = b * channels + channel;
      sum = std::fma(scales[at],
                     std::fma(-static_cast<float>(zeros[at]),
                              ActivationSum(row, b), of_block),
                     sum);
    }
    return sum;
  }
};

}  // namespace optfarm::oracle

#endif  // OPTFARM_TESTS_ENGINE_RUNTIME_ORACLE_INT4_ORACLE_H_
