#include "engine/optimize/judging/confidence.h"

#include <algorithm>
#include <cmath>

namespace optfarm::optimize {
namespace {

// The normal distribution has 95 % within so many deviations.
constexpr double kDeviations = 1.959963984540054;

}  // namespace

Interval WilsonInterval(int64_t count, int64_t samples) {
  if (samples <= 0) return {0, 1};
  // Formula (22).
  const auto n = static_cast<double>(samples);
  const double p = static_cast<double>(count) / n;
  const double z2 = kDeviations * kDeviations;
  const double middle = (p + z2 / (2 * n)) / (1 + z2 / n);
  const double half = kDeviations / (1 + z2 / n) *
                      std::sqrt(p * (1 - p) / n + z2 / (4 * n * n));
  return {std::max(0.0, middle - half), std::min(1.0, middle + half)};
}

Interval PairedInterval(const PairedCounts& counts) {
  if (counts.samples <= 0) return {-1, 1};
  // Formula (23): half an answer more in each of the four fields.
  const double n = static_cast<double>(counts.samples) + 2;
  const double lost = static_cast<double>(counts.only_first_right) + 0.5;
  const double won = static_cast<double>(counts.only_second_right) + 0.5;
  const double change = (won - lost) / n;
  const double half =
      kDeviations * std::sqrt(std::max(0.0, won + lost - change * change * n)) /
      n;
  return {std::max(-1.0, change - half), std::min(1.0, change + half)};
}

double McNemarProbability(const PairedCounts& counts) {
  // Formula (24): a fair coin decides each sample that only one got right.
  const int64_t total = counts.only_first_right + counts.only_second_right;
  const int64_t fewer =
      std::min(counts.only_first_right, counts.only_second_right);
  double sum = 0;
  for (int64_t k = 0; k <= fewer; ++k) {
    const auto n = static_cast<double>(total), i = static_cast<double>(k);
    sum += std::exp(std::lgamma(n + 1) - std::lgamma(i + 1) -
                    std::lgamma(n - i + 1) - n * std::log(2.0));
  }
  return std::min(1.0, 2 * sum);
}

}  // namespace optfarm::optimize
