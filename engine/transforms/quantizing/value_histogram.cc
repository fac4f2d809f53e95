#include "engine/transforms/quantizing/value_histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

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

// Four at once, which the compiler does not dare to do by itself.
typedef float Four __attribute__((vector_size(16)));
constexpr size_t kLanes = 4;
// Independent sums, so that none has to wait for the one before.
constexpr size_t kSums = 4;

// Values that are looked at together.
constexpr size_t kBlock = 64;
// UNITS: values. A tensor has left the nearer caches when its turn comes.
constexpr size_t kAhead = 512;

// The smallest and the largest value; both NaN when one is NaN or infinite.
// REQUIRES: not empty.
ObservedRange EndsOf(absl::Span<const float> values) {
  const Four first = {values[0], values[0], values[0], values[0]};
  Four low[kSums] = {first, first, first, first};
  Four high[kSums] = {first, first, first, first};
  // 0 until a value is not finite: then v - v is NaN.
  Four bad[kSums] = {};
  constexpr size_t kStep = kSums * kLanes;
  const size_t whole = values.size() / kStep * kStep;
  for (size_t at = 0; at < whole; at += kStep) {
    // Beyond the end it does nothing.
    __builtin_prefetch(values.data() + at + kAhead);
    for (size_t i = 0; i < kSums; ++i) {
      Four v;
      std::memcpy(&v, values.data() + at + i * kLanes, sizeof(v));
      low[i] = v < low[i] ? v : low[i];
      high[i] = v > high[i] ? v : high[i];
      bad[i] += v - v;
    }
  }
  ObservedRange ends = {values[0], values[0]};
  float any_bad = 0;
  for (size_t at = whole; at < values.size(); ++at) {
    ends.min = std::min(ends.min, values[at]);
    ends.max = std::max(ends.max, values[at]);
    any_bad += values[at] - values[at];
  }
  for (size_t i = 0; i < kStep; ++i) {
    ends.min = std::min(ends.min, low[i / kLanes][i % kLanes]);
    ends.max = std::max(ends.max, high[i / kLanes][i % kLanes]);
    any_bad += bad[i / kLanes][i % kLanes];
  }
  if (any_bad == 0) return ends;
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  return {kNaN, kNaN};
}

}  // namespace

ObservedRange ExtremesOf(absl::Span<const float> values) {
  if (values.empty()) return {};
  ObservedRange ends = EndsOf(values);
  if (ends.min > 0) ends.min = 0;
  if (ends.max < 0) ends.max = 0;
  return ends;
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
  if (values.empty()) return;
  const ObservedRange ends = EndsOf(values);
  if (std::isnan(ends.min)) {
    AddFinite(values);
    return;
  }
  min_ = std::min(min_, ends.min);
  max_ = std::max(max_, ends.max);
  const float magnitude = std::max(-ends.min, ends.max);
  if (magnitude > 0) Widen(ExponentFor(magnitude));
  Count(values);
}

void ValueHistogram::Count(absl::Span<const float> values) {
  total_ += static_cast<int64_t>(values.size());
  if (counts_.empty()) {
    zeros_ += static_cast<int64_t>(values.size());
    return;
  }
  // Two powers of two, because one may be beyond the largest float. Products
  // are exact but for those next to zero, whose bin does not change by that.
  const float first = std::ldexp(1.0f, -exponent_ / 2);
  const float second = std::ldexp(1.0f, -exponent_ - -exponent_ / 2);
  int64_t* const zero = counts_.data() + kBins;
  float block[kBlock] = {};
  int32_t bins[kBlock];
  for (size_t at = 0; at < values.size(); at += kBlock) {
    const size_t size = std::min(kBlock, values.size() - at);
    std::copy_n(values.data() + at, size, block);
    for (size_t i = 0; i < kBlock; ++i) {
      bins[i] =
          static_cast<int32_t>(block[i] * first * second) - (block[i] < 0);
    }
    // Zeros are many and anywhere: a branch would be guessed wrongly.
    size_t kept = 0;
    for (size_t i = 0; i < size; ++i) {
      bins[kept] = bins[i];
      kept += static_cast<size_t>(block[i] != 0);
    }
    for (size_t i = 0; i < kept; ++i) ++zero[bins[i]];
    zeros_ += static_cast<int64_t>(size - kept);
  }
}

void ValueHistogram::AddFinite(absl::Span<const float> values) {
  std::vector<float> finite;
  for (const float v : values) {
    if (std::isfinite(v)) finite.push_back(v);
  }
  bad_ += static_cast<int64_t>(values.size() - finite.size());
  Add(finite);
}

}  // namespace optfarm::transforms
