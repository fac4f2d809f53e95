#include "engine/tune/device_speed.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace optfarm::tune {
namespace {

constexpr size_t kLeastPairs = 3;
constexpr char kOriginal[] = "float";

std::vector<double> Ranks(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t i = 0; i < order.size();) {
    size_t end = i;
    while (end < order.size() && values[order[end]] == values[order[i]]) ++end;
    const double mean = static_cast<double>(i + end - 1) / 2;
    for (; i < end; ++i) ranks[order[i]] = mean;
  }
  return ranks;
}

double SecondsOf(const v1::Measurement& measurement) {
  const double runs = measurement.runs() + measurement.warmup_runs();
  return (measurement.load_us() + runs * measurement.mean_us()) * 1e-6;
}

}  // namespace

const v1::Measurement* MeasurementOn(const v1::Job& job, const Place& place,
                                     absl::string_view variant) {
  for (const v1::Measurement& measurement : job.measurements()) {
    if (measurement.device() == place.device &&
        measurement.threads() == place.threads &&
        measurement.variant() == variant) {
      return &measurement;
    }
  }
  return nullptr;
}

std::optional<MeasuredSpeed> SpeedOn(const v1::Job& job, const Place& place) {
  MeasuredSpeed speed;
  for (const v1::Measurement& measurement : job.measurements()) {
    if (measurement.device() != place.device ||
        measurement.threads() != place.threads) {
      continue;
    }
    speed.device_seconds += SecondsOf(measurement);
    if (measurement.variant() == kOriginal) {
      speed.float_us = measurement.median_us();
    }
  }
  for (const v1::ShippingVerdict& verdict : job.verdicts()) {
    if (verdict.device() != place.device ||
        verdict.threads() != place.threads || verdict.variant() == kOriginal) {
      continue;
    }
    if (!(verdict.speedup() > 0) || !(speed.float_us > 0)) continue;
    speed.speedup = verdict.speedup();
    speed.low =
        verdict.has_speedup_low() ? verdict.speedup_low() : verdict.speedup();
    speed.high =
        verdict.has_speedup_high() ? verdict.speedup_high() : verdict.speedup();
    if (speed.low <= 0 || speed.high <= 0)
      speed.low = speed.high = speed.speedup;
    return speed;
  }
  return std::nullopt;
}

FloatCostModel::FloatCostModel(double base_us, double all_float_adds_us,
                               double sum_us, double trust_us)
    : base_us_(base_us),
      slope_(1),
      products_(trust_us * trust_us),
      squares_(trust_us * trust_us) {
  if (sum_us != 0) Learn(sum_us, base_us + all_float_adds_us);
}

double FloatCostModel::Predict(double sum_us) const {
  return base_us_ + slope_ * sum_us;
}

// Least squares of lines through the base.
void FloatCostModel::Learn(double sum_us, double measured_us) {
  products_ += sum_us * (measured_us - base_us_);
  squares_ += sum_us * sum_us;
  if (squares_ > 0) slope_ = products_ / squares_;
}

std::optional<double> MedianError(
    absl::Span<const std::pair<double, double>> predicted_and_measured) {
  std::vector<double> errors;
  for (const auto& [predicted, measured] : predicted_and_measured) {
    if (measured > 0) errors.push_back(std::abs(predicted / measured - 1));
  }
  if (errors.size() < kLeastPairs) return std::nullopt;
  std::sort(errors.begin(), errors.end());
  const size_t middle = errors.size() / 2;
  if (errors.size() % 2 == 1) return errors[middle];
  return (errors[middle - 1] + errors[middle]) / 2;
}

std::optional<double> RankCorrelation(
    absl::Span<const std::pair<double, double>> pairs) {
  if (pairs.size() < kLeastPairs) return std::nullopt;
  std::vector<double> a, b;
  for (const auto& [first, second] : pairs) {
    a.push_back(first);
    b.push_back(second);
  }
  a = Ranks(a);
  b = Ranks(b);
  const double mean = static_cast<double>(pairs.size() - 1) / 2;
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - mean) * (b[i] - mean);
    aa += (a[i] - mean) * (a[i] - mean);
    bb += (b[i] - mean) * (b[i] - mean);
  }
  if (aa <= 0 || bb <= 0) return std::nullopt;
  return ab / std::sqrt(aa * bb);
}

}  // namespace optfarm::tune
