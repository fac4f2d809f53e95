#include "server/services/interval.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>

#include "server/services/student.h"

namespace optfarm::server {
namespace {

constexpr double kNormal95 = 1.959963984540054;
constexpr double kUpper95 = 0.975;
// The median's standard error is so much larger than the mean's, and a normal
// distribution's standard deviation than its MAD.
constexpr double kMedianError = 1.2533;
constexpr double kDeviationOverMad = 1.4826;

// Student's t for 95 %, by degrees of freedom from 1.
constexpr double kStudent95[] = {12.706, 4.303, 3.182, 2.776, 2.571,
                                 2.447,  2.365, 2.306, 2.262, 2.228};

// Within 5e-4.
double Student(size_t degrees) {
  if (degrees <= std::size(kStudent95)) return kStudent95[degrees - 1];
  // Abramowitz and Stegun 26.7.5: powers of one over the degrees.
  constexpr double z = kNormal95, z2 = z * z;
  const double n = static_cast<double>(degrees);
  return z + z * (z2 + 1) / (4 * n) +
         z * ((5 * z2 + 16) * z2 + 3) / (96 * n * n) +
         z * (((3 * z2 + 19) * z2 + 17) * z2 - 15) / (384 * n * n * n);
}

// Standard error of the median's logarithm.
double LogError(const v1::Measurement& m) {
  if (m.median_low_us() > 0 && m.median_high_us() >= m.median_low_us()) {
    return std::log(m.median_high_us() / m.median_low_us()) / (2 * kNormal95);
  }
  if (m.runs() < 1) return 0;
  return kMedianError * kDeviationOverMad * m.mad_us() /
         (m.median_us() * std::sqrt(m.runs()));
}

}  // namespace

Interval MedianRatio(const v1::Measurement& a, const v1::Measurement& b,
                     const RunSpread& spread) {
  const double ratio = a.median_us() / b.median_us();
  // A median of absolute differences is as sure as about half as many values.
  const double runs_reach =
      spread.pairs == 0
          ? kNormal95
          : StudentQuantile(kUpper95, std::max(1, spread.pairs / 2));
  const double reach =
      std::exp(std::hypot(kNormal95 * LogError(a), kNormal95 * LogError(b),
                          runs_reach * std::sqrt(2) * spread.deviation));
  return {ratio, ratio / reach, ratio * reach};
}

Interval GeometricMean(absl::Span<const double> ratios) {
  if (ratios.empty()) return {};
  const auto count = static_cast<double>(ratios.size());
  double mean = 0;
  for (const double ratio : ratios) mean += std::log(ratio) / count;
  if (ratios.size() == 1) return {ratios[0], 0, 0};
  double squares = 0;
  for (const double ratio : ratios) {
    squares += std::pow(std::log(ratio) - mean, 2);
  }
  const double error = std::sqrt(squares / (count - 1) / count);
  const double reach = std::exp(Student(ratios.size() - 1) * error);
  return {std::exp(mean), std::exp(mean) / reach, std::exp(mean) * reach};
}

}  // namespace optfarm::server
