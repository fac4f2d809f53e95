#include "engine/transforms/value_histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace optfarm::transforms {
namespace {

// log2 of the bins on one side.
constexpr int kBinBits = std::bit_width(unsigned{ValueHistogram::kBins}) - 1;

constexpr float kLargest = std::numeric_limits<float>::max();

// The exponent of the narrowest bins that hold a magnitude.
int ExponentFor(float magnitude) {
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  return exponent - kBinBits;
}

// Several at once, which the compiler does not dare to do by itself.
constexpr size_t kLanes = 32;

}  // namespace

ObservedRange ExtremesOf(absl::Span<const float> values) {
  float low[kLanes] = {}, high[kLanes] = {};
  // 0 until a value is not finite: then v - v is NaN.
  float bad[kLanes] = {};
  const size_t whole = values.size() / kLanes * kLanes;
  for (size_t at = 0; at < whole; at += kLanes) {
    const float* const from = values.data() + at;
// Unrolled, it would be taken apart into single numbers.
#pragma GCC unroll 1
    for (size_t i = 0; i < kLanes; ++i) {
      low[i] = from[i] < low[i] ? from[i] : low[i];
      high[i] = from[i] > high[i] ? from[i] : high[i];
      bad[i] += from[i] - from[i];
    }
  }
  for (size_t at = whole; at < values.size(); ++at) {
    low[0] = std::min(low[0], values[at]);
    high[0] = std::max(high[0], values[at]);
    bad[0] += values[at] - values[at];
  }
  for (size_t i = 1; i < kLanes; ++i) {
    low[0] = std::min(low[0], low[i]);
    high[0] = std::max(high[0], high[i]);
    bad[0] += bad[i];
  }
  if (bad[0] == 0) return {low[0], high[0]};
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  return {kNaN, kNaN};
}

double ValueHistogram::width() const {
  return counts_.empty() ? 1.0 : std::ldexp(1.0, exponent_);
}

void ValueHistogram::Widen(int exponent) {
  if (counts_.empty()) {
    counts_.resize(2 * kBins, 0);
    exponent_ = exponent;
  }
  if (exponent <= exponent_) return;
  // More halvings than bins have bits change nothing any more.
  const int halvings = std::min(exponent - exponent_, kBinBits + 1);
  std::vector<int64_t> wider(2 * kBins, 0);
  for (int i = -kBins; i < kBins; ++i) {
    wider[(i >> halvings) + kBins] += counts_[i + kBins];
  }
  counts_ = std::move(wider);
  exponent_ = exponent;
}

void ValueHistogram::Add(absl::Span<const float> values) {
  // Comparisons with NaN are false, so that it changes nothing here.
  float low = min_, high = max_;
  int64_t zeros = 0, bad = 0;
  for (const float v : values) {
    low = v < low ? v : low;
    high = v > high ? v : high;
    zeros += v == 0;
    bad += !(std::abs(v) <= kLargest);
  }
  if (bad > 0) {
    AddFinite(values);
    return;
  }
  min_ = low;
  max_ = high;
  total_ += static_cast<int64_t>(values.size());
  zeros_ += zeros;
  const float magnitude = std::max(-low, high);
  if (magnitude > 0) Widen(ExponentFor(magnitude));
  if (counts_.empty()) return;
  // Two powers of two, because one may be beyond the largest float. Products
  // are exact but for those next to zero, whose bin does not change by that.
  const float first = std::ldexp(1.0f, -exponent_ / 2);
  const float second = std::ldexp(1.0f, -exponent_ - -exponent_ / 2);
  int64_t* const zero = counts_.data() + kBins;
  for (const float v : values) {
    ++zero[static_cast<int>(v * first * second) - (v < 0)];
  }
  zero[0] -= zeros;
}

void ValueHistogram::AddFinite(absl::Span<const float> values) {
  std::vector<float> finite;
  for (const float v : values) {
    if (std::isfinite(v)) finite.push_back(v);
  }
  bad_ += static_cast<int64_t>(values.size() - finite.size());
  Add(finite);
}

void ValueHistogram::Merge(const ValueHistogram& other) {
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
  zeros_ += other.zeros_;
  bad_ += other.bad_;
  total_ += other.total_;
  if (other.counts_.empty()) return;
  Widen(other.exponent_);
  const int halvings = std::min(exponent_ - other.exponent_, kBinBits + 1);
  for (int i = -kBins; i < kBins; ++i) {
    counts_[(i >> halvings) + kBins] += other.counts_[i + kBins];
  }
}

}  // namespace optfarm::transforms
