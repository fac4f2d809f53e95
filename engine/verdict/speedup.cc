#include "engine/verdict/speedup.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace optfarm::verdict {
namespace {

constexpr int kMostParts = 10;
constexpr int kLeastParts = 4;
constexpr int kRunsOfPart = 5;

// Quantiles of Student's distribution at 0.975, for 3 to 9 degrees of freedom.
constexpr std::array<double, kMostParts - kLeastParts + 1> kStudent = {
    3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262};

double MedianOf(std::vector<float> values) {
  const size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + middle, values.end());
  const double upper = values[middle];
  if (values.size() % 2 == 1) return upper;
  return (upper + *std::max_element(values.begin(), values.begin() + middle)) /
         2;
}

// Part number `part` of `parts`.
double MedianOfPart(const v1::Measurement& measurement, int part, int parts) {
  const auto& samples = measurement.samples_us();
  const int64_t size = samples.size();
  return MedianOf({samples.begin() + size * part / parts,
                   samples.begin() + size * (part + 1) / parts});
}

// nullopt when a part has a median that no clock shows.
std::optional<std::vector<double>> LogRatios(const v1::Measurement& original,
                                             const v1::Measurement& variant,
                                             int parts) {
  std::vector<double> logs;
  for (int part = 0; part < parts; ++part) {
    const double log = std::log(MedianOfPart(original, part, parts) /
                                MedianOfPart(variant, part, parts));
    if (!std::isfinite(log)) return std::nullopt;
    logs.push_back(log);
  }
  return logs;
}

void AddIntervalOfParts(const std::vector<double>& logs, Speedup* speedup) {
  const auto n = static_cast<double>(logs.size());
  double mean = 0, squares = 0;
  for (const double log : logs) mean += log / n;
  for (const double log : logs) squares += (log - mean) * (log - mean);
  const double half =
      kStudent[logs.size() - kLeastParts] * std::sqrt(squares / (n - 1) / n);
  speedup->low = std::min(std::exp(mean - half), speedup->ratio);
  speedup->high = std::max(std::exp(mean + half), speedup->ratio);
}

}  // namespace

std::optional<Speedup> FindSpeedup(const v1::Measurement& original,
                                   const v1::Measurement& variant) {
  if (original.median_us() <= 0 || variant.median_us() <= 0) {
    return std::nullopt;
  }
  Speedup speedup;
  speedup.ratio = original.median_us() / variant.median_us();
  const int runs =
      std::min(original.samples_us_size(), variant.samples_us_size());
  const int parts = std::min(kMostParts, runs / kRunsOfPart);
  if (parts >= kLeastParts) {
    const auto logs = LogRatios(original, variant, parts);
    if (logs.has_value()) AddIntervalOfParts(*logs, &speedup);
  } else if (original.median_low_us() > 0 && variant.median_low_us() > 0) {
    speedup.low = original.median_low_us() / variant.median_high_us();
    speedup.high = original.median_high_us() / variant.median_low_us();
  }
  return speedup;
}

}  // namespace optfarm::verdict
