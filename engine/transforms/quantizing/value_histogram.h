// How often which values occur in a tensor over many runs, in bounded memory:
// the base of ranges that leave rare values out (clipped_range.h).
//
// Bins are equally wide, the width is a power of two and zero is an edge. A
// value that lies outside doubles the width until it fits, which merges pairs
// of bins. The width then depends on the largest magnitude alone and a value's
// bin on the width alone, so that the order of the values does not matter, nor
// which of them were added together.

#ifndef OPTFARM_ENGINE_TRANSFORMS_QUANTIZING_VALUE_HISTOGRAM_H_
#define OPTFARM_ENGINE_TRANSFORMS_QUANTIZING_VALUE_HISTOGRAM_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/types/span.h"
#include "engine/transforms/freezing/range_log.h"

namespace optfarm::transforms {

// The ends of a range that holds the values and zero; both NaN when a value is
// NaN or infinite.
ObservedRange ExtremesOf(absl::Span<const float> values);

class ValueHistogram {
 public:
  // Bins on each side of zero. At least half of those on the side of the
  // largest magnitude are in use: 8 for each of 256 quantized values.
  static constexpr int kBins = 4096;

  // Counts the values; those that are NaN or infinite only as bad.
  void Add(absl::Span<const float> values);

  // Values that are not zero, by bin: those of a magnitude in [i, i + 1) times
  // width() above zero, and bin -1 - i for such below.
  // REQUIRES: -kBins <= i < kBins.
  int64_t count(int i) const {
    return counts_.empty() ? 0 : counts_[i + kBins];
  }
  double width() const;
  // Zeros are counted apart: a range that includes zero has them exactly.
  int64_t zeros() const { return zeros_; }
  int64_t bad() const { return bad_; }
  // All but the bad ones.
  int64_t total() const { return total_; }
  // Exact; 0 and 0 when there are no values.
  float min() const { return total_ == 0 ? 0 : min_; }
  float max() const { return total_ == 0 ? 0 : max_; }

 private:
  // Without those that are NaN or infinite.
  void AddFinite(absl::Span<const float> values);
  // REQUIRES: finite, and bins that hold them.
  void Count(absl::Span<const float> values);
  // Makes bins of at least that exponent.
  void Widen(int exponent);

  // The width is 2^exponent_.
  int exponent_ = std::numeric_limits<int>::min();
  // Empty until there is a value other than zero.
  std::vector<int64_t> counts_;
  int64_t zeros_ = 0;
  int64_t bad_ = 0;
  int64_t total_ = 0;
  float min_ = std::numeric_limits<float>::infinity();
  float max_ = -std::numeric_limits<float>::infinity();
};

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_QUANTIZING_VALUE_HISTOGRAM_H_
