#include "engine/transforms/quantizing/clipped_range.h"

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
// A divergence cannot see how coarse a quantized value is when it has fewer
// bins.
constexpr int kLeastCandidate = kCandidates / 8;
// Of the ends one in so many is tried at first: a divergence is dear.
constexpr int kStride = 4;
// UNITS: values. Stands for none where a divergence would be infinite.
constexpr double kNearlyNone = 1e-4;
// Far above what rounding makes of a divergence.
constexpr double kRounding = 1e-9;

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

// Formula 37 for ends in bins, times the number of values.
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

// Whole numbers whose logarithms are asked for again and again.
constexpr int kKnownLogs = 4096;

// REQUIRES: a whole number above zero.
double LogOf(double count) {
  static const std::vector<double> known = [] {
    std::vector<double> logs(kKnownLogs, 0);
    for (int i = 1; i < kKnownLogs; ++i) logs[i] = std::log(i);
    return logs;
  }();
  return count < kKnownLogs ? known[static_cast<size_t>(count)]
                            : std::log(count);
}

double TimesLog(double count) { return count > 0 ? count * LogOf(count) : 0; }

// Which bins get the same quantized value in a range, in bins from its lower
// end.
class QuantizedBins {
 public:
  QuantizedBins(int low, int high)
      : low_(low),
        size_(low + high),
        per_bin_(kSteps / size_),
        bins_(size_ / kSteps) {}

  // The first bin from `begin` on that gets another quantized value.
  int EndOf(int begin) const {
    const double q = QuantizedOf(begin);
    int end = static_cast<int>((q + 0.5) * bins_ - 0.5) + low_;
    end = std::clamp(end, begin + 1, size_);
    while (end > begin + 1 && QuantizedOf(end - 1) != q) --end;
    while (end < size_ && QuantizedOf(end) == q) ++end;
    return end;
  }

  // The first bin that gets the highest quantized value.
  int BeginOfLast() const {
    int begin = size_ - 1;
    while (begin > 0 && QuantizedOf(begin - 1) == QuantizedOf(size_ - 1))
      --begin;
    return begin;
  }

 private:
  double QuantizedOf(int bin) const {
    return std::floor((bin - low_ + 0.5) * per_bin_ + 0.5);
  }

  int low_;
  int size_;
  // Quantized values of a bin, and bins of a quantized value.
  double per_bin_, bins_;
};

// The divergence of formula 39 for any ends. With P in numbers and the values
// inside spread evenly over each quantized value's bins that are in use,
//
//   n K = sum P ln P - sum P ln Q + n ln(inside / n),
//
// where both sums over a quantized value's bins need but the sums of what is in
// them: no end costs more than 256 quantized values.
class Divergence {
 public:
  Divergence(const ValueHistogram& histogram, const Extent& extent)
      : extent_(extent), sums_(extent.below + extent.above + 1) {
    for (int i = 0; i + 1 < static_cast<int>(sums_.size()); ++i) {
      const auto count = static_cast<double>(histogram.count(i - extent.below));
      sums_[i + 1] = {sums_[i].count + count, sums_[i].used + (count > 0),
                      sums_[i].times_log + TimesLog(count)};
    }
  }

  // For bins low..high; infinite where that is above `least`, mostly before all
  // quantized values were looked at. REQUIRES: within the extent.
  double Of(int low, int high, double least) const {
    constexpr double kInfinite = std::numeric_limits<double>::infinity();
    const Sums* const at = &sums_[extent_.below - low];
    const int size = low + high;
    const double total = sums_.back().count;
    const double inside = at[size].count - at[0].count;
    if (inside <= 0) return kInfinite;
    // The outermost bins stand for what lies beyond as well.
    const double lost_below = at[0].count;
    const double lost_above = total - at[size].count;
    double p_log_p = at[size].times_log - at[0].times_log;
    p_log_p += AddedByLost(at[1].count - at[0].count, lost_below);
    p_log_p += AddedByLost(at[size].count - at[size - 1].count, lost_above);
    const double of_inside = std::log(inside / total);
    const QuantizedBins quantized(low, high);
    const double above = lost_above * LogQ(at + quantized.BeginOfLast(),
                                           at + size, at + size - 1);
    // What p_log_q must come to, and at most will: within a quantized value it
    // is not more than P ln P.
    const double wanted =
        p_log_p + (of_inside - least - kRounding) * total - above;
    double p_log_q = 0;
    for (int begin = 0, end = 0; begin < size; begin = end) {
      end = quantized.EndOf(begin);
      const Sums* const a = at + begin;
      const Sums* const b = at + end;
      p_log_q += (b->count - a->count) * LogQ(a, b, nullptr);
      if (begin == 0) p_log_q += lost_below * LogQ(a, b, a);
      if (p_log_q + at[size].times_log - b->times_log < wanted) {
        return kInfinite;
      }
    }
    p_log_q += above;
    return (p_log_p - p_log_q) / total + of_inside;
  }

 private:
  struct Sums {
    double count = 0;
    int used = 0;
    double times_log = 0;
  };

  // What values beyond an end add to P ln P of the outermost bin.
  static double AddedByLost(double count, double lost) {
    return TimesLog(count + lost) - TimesLog(count);
  }

  // ln Q for the quantized value of the bins from `a` to `b`; for one of them,
  // which may be empty, where `bin` is given.
  static double LogQ(const Sums* a, const Sums* b, const Sums* bin) {
    const double sum = b->count - a->count;
    if (bin != nullptr && bin[1].count <= bin[0].count) {
      return std::log(kNearlyNone);
    }
    return sum > 0 ? LogOf(sum) - LogOf(b->used - a->used) : 0;
  }

  Extent extent_;
  // Of the bins before each, from the lower end of the extent on.
  std::vector<Sums> sums_;
};

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
  const Divergence divergence_of(histogram, extent);
  int low = extent.below, high = extent.above;
  // One end after the other: all pairs would be too many.
  const auto shrink = [&](int bins, int* end) {
    if (bins == 0) return;
    double least = std::numeric_limits<double>::infinity();
    int best = kCandidates;
    const auto try_end = [&](int k) {
      *end = EndOf(bins, k);
      const double divergence = divergence_of.Of(low, high, least);
      if (divergence < least) {
        least = divergence;
        best = k;
      }
    };
    // From the widest on; then what lies next to the best of some.
    for (int k = kCandidates; k >= kLeastCandidate; k -= kStride) try_end(k);
    const int middle = best;
    for (int k = std::min(kCandidates, middle + kStride - 1);
         k > std::max(kLeastCandidate - 1, middle - kStride); --k) {
      if (k != middle) try_end(k);
    }
    *end = EndOf(bins, best);
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
