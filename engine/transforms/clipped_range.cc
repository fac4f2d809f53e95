#include "engine/transforms/clipped_range.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace optfarm::transforms {
namespace {

constexpr int kBins = ValueHistogram::kBins;
constexpr double kSteps = 255;
// Ends that are tried on each side, equally spaced.
constexpr int kCandidates = 128;
// A divergence cannot see how coarse a code is when it has fewer bins.
constexpr int kLeastCandidate = kCandidates / 8;
// UNITS: values. Stands for none where a divergence would be infinite.
constexpr double kNearlyNone = 1e-4;

// Where the histogram's bins lie.
struct Extent {
  // UNITS: bins of the side, 0 when it has no values.
  int below = 0;
  int above = 0;
};

Extent ExtentOf(const ValueHistogram& histogram) {
  Extent extent;
  for (int i = 0; i < kBins; ++i) {
    if (histogram.count(i) > 0) extent.above = i + 1;
    if (histogram.count(-i - 1) > 0) extent.below = i + 1;
  }
  return extent;
}

// End number `candidate` of a side that has so many bins, in bins.
int EndOf(int bins, int candidate) {
  return (bins * candidate + kCandidates - 1) / kCandidates;
}

// Sums over the bins of one side that lie beyond an end, for each end:
// numbers, values and squares of values, the middle of a bin standing for all
// in it. Values are magnitudes.
class Tail {
 public:
  // `sign` 1: above zero, -1: below.
  Tail(const ValueHistogram& histogram, int sign, int bins)
      : width_(histogram.width()), sums_(bins + 1) {
    for (int i = bins - 1; i >= 0; --i) {
      const auto count =
          static_cast<double>(histogram.count(sign > 0 ? i : -i - 1));
      const double middle = (i + 0.5) * width_;
      sums_[i] = {sums_[i + 1][0] + count, sums_[i + 1][1] + count * middle,
                  sums_[i + 1][2] + count * middle * middle};
    }
  }

  double Count(int end) const { return sums_[end][0]; }
  // Sum of (value - end)^2 beyond the end.
  double Error(int end) const {
    const double at = end * width_;
    const auto& [count, sum, squares] = sums_[end];
    return std::max(0.0, squares - 2 * at * sum + at * at * count);
  }

 private:
  double width_;
  std::vector<std::array<double, 3>> sums_;
};

// Formula 25 for ends in bins, times the number of values.
double ErrorOf(const ValueHistogram& histogram, const Tail& below,
               const Tail& above, int low, int high) {
  const double step = (low + high) * histogram.width() / kSteps;
  const double inside =
      below.Count(0) - below.Count(low) + above.Count(0) - above.Count(high);
  return inside * step * step / 12 + below.Error(low) + above.Error(high);
}

// Ends in bins as a range; an end that leaves nothing out is the exact one.
ObservedRange ToRange(const ValueHistogram& histogram, const Extent& extent,
                      int low, int high) {
  ObservedRange range;
  if (low > 0) {
    range.min = low == extent.below
                    ? histogram.min()
                    : static_cast<float>(-low * histogram.width());
  }
  if (high > 0) {
    range.max = high == extent.above
                    ? histogram.max()
                    : static_cast<float>(high * histogram.width());
  }
  return range;
}

// The divergence of formula 27 for a range of bins low..high.
double Divergence(const ValueHistogram& histogram, const Extent& extent,
                  int low, int high) {
  const double per_bin = kSteps / (low + high);
  double inside = 0;
  std::vector<double> counts;
  counts.reserve(static_cast<size_t>(low + high));
  for (int i = -low; i < high; ++i) {
    counts.push_back(static_cast<double>(histogram.count(i)));
    inside += counts.back();
  }
  double lost_below = 0, lost_above = 0;
  for (int i = -extent.below; i < -low; ++i) {
    lost_below += static_cast<double>(histogram.count(i));
  }
  for (int i = high; i < extent.above; ++i) {
    lost_above += static_cast<double>(histogram.count(i));
  }
  const double total = inside + lost_below + lost_above;
  if (inside == 0) return std::numeric_limits<double>::infinity();
  double divergence = 0;
  for (size_t begin = 0; begin < counts.size();) {
    // The bins whose values get one code share what is told of them.
    const auto code_of = [&](size_t i) {
      return std::floor((static_cast<double>(i) - low + 0.5) * per_bin + 0.5);
    };
    const double code = code_of(begin);
    size_t end = begin;
    double sum = 0;
    int used = 0;
    for (; end < counts.size() && code_of(end) == code; ++end) {
      sum += counts[end];
      used += counts[end] > 0;
    }
    for (size_t i = begin; i < end; ++i) {
      double p = counts[i];
      const double q = p > 0 ? sum / used : kNearlyNone;
      if (i == 0) p += lost_below;
      if (i + 1 == counts.size()) p += lost_above;
      if (p > 0) {
        divergence += p / total * std::log(p / total / (q / inside));
      }
    }
    begin = end;
  }
  return divergence;
}

}  // namespace

ObservedRange LeastErrorRange(const ValueHistogram& histogram) {
  const Extent extent = ExtentOf(histogram);
  const Tail below(histogram, -1, extent.below);
  const Tail above(histogram, 1, extent.above);
  const int first_below = extent.below > 0 ? 1 : kCandidates;
  const int first_above = extent.above > 0 ? 1 : kCandidates;
  double least = std::numeric_limits<double>::infinity();
  int best_low = extent.below, best_high = extent.above;
  // From the widest on: of equal ones the widest is taken.
  for (int k = kCandidates; k >= first_below; --k) {
    const int low = EndOf(extent.below, k);
    for (int m = kCandidates; m >= first_above; --m) {
      const int high = EndOf(extent.above, m);
      const double error = ErrorOf(histogram, below, above, low, high);
      if (error < least) {
        least = error;
        best_low = low;
        best_high = high;
      }
    }
  }
  return ToRange(histogram, extent, best_low, best_high);
}

ObservedRange LeastDivergenceRange(const ValueHistogram& histogram) {
  const Extent extent = ExtentOf(histogram);
  int low = extent.below, high = extent.above;
  // One end after the other: all pairs would be too many.
  const auto shrink = [&](int bins, int* end) {
    double least = std::numeric_limits<double>::infinity();
    int best = bins;
    for (int k = kCandidates; k >= kLeastCandidate && bins > 0; --k) {
      *end = EndOf(bins, k);
      const double divergence = Divergence(histogram, extent, low, high);
      if (divergence < least) {
        least = divergence;
        best = *end;
      }
    }
    *end = best;
  };
  shrink(extent.above, &high);
  shrink(extent.below, &low);
  return ToRange(histogram, extent, low, high);
}

ObservedRange PercentileRange(const ValueHistogram& histogram, double percent) {
  const Extent extent = ExtentOf(histogram);
  const double most = static_cast<double>(histogram.total()) * percent / 100;
  const auto end_of = [&](int sign, int bins) {
    double left_out = 0;
    for (int i = bins - 1; i >= 0; --i) {
      left_out += static_cast<double>(histogram.count(sign > 0 ? i : -i - 1));
      if (left_out > most) return i + 1;
    }
    return 0;
  };
  return ToRange(histogram, extent, end_of(-1, extent.below),
                 end_of(1, extent.above));
}

double ExpectedError(const ValueHistogram& histogram, double low, double high) {
  const Extent extent = ExtentOf(histogram);
  const Tail below(histogram, -1, extent.below);
  const Tail above(histogram, 1, extent.above);
  const double width = histogram.width();
  const int low_bins =
      std::clamp(static_cast<int>(std::lround(-low / width)), 0, extent.below);
  const int high_bins =
      std::clamp(static_cast<int>(std::lround(high / width)), 0, extent.above);
  const double total =
      static_cast<double>(std::max<int64_t>(histogram.total(), 1));
  return ErrorOf(histogram, below, above, low_bins, high_bins) / total;
}

}  // namespace optfarm::transforms
