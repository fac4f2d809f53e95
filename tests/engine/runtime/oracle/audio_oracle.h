// What the audio micro-kernels compute, from the definitions: a discrete
// Fourier transform as a sum over all samples, and TensorFlow's mel bands.
// Shares no code with engine/runtime.

#ifndef OPTFARM_TESTS_ENGINE_RUNTIME_ORACLE_AUDIO_ORACLE_H_
#define OPTFARM_TESTS_ENGINE_RUNTIME_ORACLE_AUDIO_ORACLE_H_

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <numbers>
#include <vector>

namespace optfarm::oracle {

// The squared magnitudes of bins 0 .. length / 2 of so many values, of which
// those that are not given are zero.
inline std::vector<double> PowerSpectrum(const std::vector<double>& values,
                                         int64_t length) {
  std::vector<std::complex<double>> roots;
  for (int64_t i = 0; i < length; ++i) {
    roots.push_back(
        std::polar(1.0, -2.0 * std::numbers::pi * static_cast<double>(i) /
                            static_cast<double>(length)));
  }
  std::vector<double> powers;
  for (int64_t k = 0; k <= length / 2; ++k) {
    std::complex<double> sum = 0;
    for (size_t n = 0; n < values.size(); ++n) {
      sum += values[n] * roots[k * static_cast<int64_t>(n) % length];
    }
    powers.push_back(std::norm(sum));
  }
  return powers;
}

// Mel bands: a bin gives its weight to its band, and the rest to the next.
struct MelBands {
  int bands = 0;
  // By bin: the band, which may be none of these; and the weight.
  std::vector<int> owners;
  std::vector<double> weights;
  // Logarithms of less are not taken.
  double least = 0;
  int coefficients = 0;
  // By coefficient and band.
  std::vector<double> cosines;

  std::vector<double> Logs(const std::vector<double>& powers) const {
    std::vector<double> sums(bands, 0.0);
    const auto add = [&](int band, double magnitude) {
      if (band >= 0 && band < bands) sums[band] += magnitude;
    };
    for (size_t i = 0; i < owners.size(); ++i) {
      const double magnitude = std::sqrt(powers[i]);
      add(owners[i], magnitude * weights[i]);
      add(owners[i] + 1, magnitude * (1 - weights[i]));
    }
    for (double& sum : sums) sum = std::log(std::max(sum, least));
    return sums;
  }
  double Coefficient(const std::vector<double>& logs, int number) const {
    double sum = 0;
    for (int band = 0; band < bands; ++band) {
      sum += logs[band] * cosines[number * bands + band];
    }
    return sum;
  }
};

}  // namespace optfarm::oracle

#endif  // OPTFARM_TESTS_ENGINE_RUNTIME_ORACLE_AUDIO_ORACLE_H_
