#include "engine/transforms/value_histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace optfarm::transforms {
namespace {

// log2 of the bins on one side.
constexpr int kBinBits = std::bit_width(unsigned{ValueHistogram::kBins}) - 1;

// The exponent of the narrowest bins that hold a magnitude.
int ExponentFor(float magnitude) {
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  return exponent - kBinBits;
}

}  // namespace

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
  float magnitude = 0;
  for (const float v : values) {
    if (!std::isfinite(v)) continue;
    min_ = std::min(min_, v);
    max_ = std::max(max_, v);
    magnitude = std::max(magnitude, std::abs(v));
  }
  if (magnitude > 0) Widen(ExponentFor(magnitude));
  // In double the quotient is exact, for the smallest floats too.
  const double per_bin = counts_.empty() ? 0 : std::ldexp(1.0, -exponent_);
  for (const float v : values) {
    if (v == 0) {
      ++zeros_;
      ++total_;
    } else if (std::isfinite(v)) {
      ++counts_[static_cast<int>(std::floor(v * per_bin)) + kBins];
      ++total_;
    } else {
      ++bad_;
    }
  }
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
