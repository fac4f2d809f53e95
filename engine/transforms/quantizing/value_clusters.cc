#include "engine/transforms/quantizing/value_clusters.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace optfarm::transforms {
namespace {

// Rounds of moving clusters; more gain next to nothing.
constexpr int kMostRounds = 100;
// Parts of the range in which values are counted, and how many values make
// another part worth while: few of them tell no density.
constexpr size_t kMostBins = 4096;
constexpr size_t kValuesOfBin = 32;

class Clustering {
 public:
  explicit Clustering(absl::Span<const float> values)
      : sorted_(values.begin(), values.end()) {
    std::sort(sorted_.begin(), sorted_.end());
    sums_.reserve(sorted_.size() + 1);
    sums_.push_back(0);
    for (const float value : sorted_) sums_.push_back(sums_.back() + value);
  }

  double min() const { return sorted_.front(); }
  double max() const { return sorted_.back(); }

  bool HasAtMost(int64_t count, std::vector<float>* different) const {
    for (const float value : sorted_) {
      if (!different->empty() && different->back() == value) continue;
      if (static_cast<int64_t>(different->size()) == count) return false;
      different->push_back(value);
    }
    return true;
  }

  // The middles of equal parts of the range.
  std::vector<double> EqualParts(int64_t count) const {
    std::vector<double> centers;
    const double width = (max() - min()) / static_cast<double>(count);
    for (int64_t i = 0; i < count; ++i) {
      centers.push_back(min() + width * (static_cast<double>(i) + 0.5));
    }
    return centers;
  }

  // As dense as the cube root of the values' density, which many clusters have
  // at their best.
  std::vector<double> ByDensity(int64_t count) const {
    const size_t bins = std::min(kMostBins, sorted_.size() / kValuesOfBin + 1);
    std::vector<double> shares(bins);
    const double width = (max() - min()) / static_cast<double>(bins);
    for (const float value : sorted_) {
      const auto bin = static_cast<size_t>((value - min()) / width);
      shares[std::min(bin, bins - 1)] += 1;
    }
    double all = 0;
    for (double& share : shares) all += share = std::cbrt(share);
    std::vector<double> centers;
    double before = 0;
    for (size_t bin = 0; bin < bins; ++bin) {
      const double step = all / static_cast<double>(count);
      // Centers lie in the middle of steps.
      while (static_cast<int64_t>(centers.size()) < count &&
             (static_cast<double>(centers.size()) + 0.5) * step <=
                 before + shares[bin]) {
        const double within =
            (static_cast<double>(centers.size()) + 0.5) * step - before;
        centers.push_back(
            min() + width * (static_cast<double>(bin) + within / shares[bin]));
      }
      before += shares[bin];
    }
    return centers;
  }

  // Moves each center to the mean of the values that are nearest to it, until
  // none moves. Centers without values go.
  void Settle(std::vector<double>* centers) const {
    std::vector<size_t> last;
    for (int round = 0; round < kMostRounds; ++round) {
      std::vector<size_t> ends = EndsOf(*centers);
      if (ends == last) return;
      centers->clear();
      size_t begin = 0;
      for (const size_t end : ends) {
        if (end > begin) centers->push_back(MeanOf(begin, end));
        begin = end;
      }
      last = std::move(ends);
    }
  }

  // How much smaller the squared error is than the sum of all squares.
  double Gain(const std::vector<double>& centers) const {
    double gain = 0;
    size_t begin = 0;
    for (const size_t end : EndsOf(centers)) {
      if (end > begin) {
        gain += MeanOf(begin, end) * (sums_[end] - sums_[begin]);
      }
      begin = end;
    }
    return gain;
  }

 private:
  // Where the values of each center end.
  std::vector<size_t> EndsOf(const std::vector<double>& centers) const {
    std::vector<size_t> ends;
    for (size_t i = 0; i + 1 < centers.size(); ++i) {
      const double border = (centers[i] + centers[i + 1]) / 2;
      ends.push_back(static_cast<size_t>(
          std::lower_bound(sorted_.begin(), sorted_.end(), border) -
          sorted_.begin()));
    }
    ends.push_back(sorted_.size());
    return ends;
  }

  double MeanOf(size_t begin, size_t end) const {
    return (sums_[end] - sums_[begin]) / static_cast<double>(end - begin);
  }

  std::vector<float> sorted_;
  // Of the values before each.
  std::vector<double> sums_;
};

}  // namespace

std::vector<float> FindClusters(absl::Span<const float> values, int64_t count) {
  const Clustering clustering(values);
  std::vector<float> different;
  if (clustering.HasAtMost(count, &different)) return different;
  std::vector<double> best;
  for (std::vector<double> centers :
       {clustering.EqualParts(count), clustering.ByDensity(count)}) {
    clustering.Settle(&centers);
    const bool is_better =
        best.empty() || clustering.Gain(centers) > clustering.Gain(best);
    if (is_better) best = std::move(centers);
  }
  return {best.begin(), best.end()};
}

float NearestCluster(absl::Span<const float> clusters, float value) {
  const auto above = std::lower_bound(clusters.begin(), clusters.end(), value);
  if (above == clusters.begin()) return *above;
  if (above == clusters.end()) return *std::prev(above);
  const float below = *std::prev(above);
  return value - below < *above - value ? below : *above;
}

}  // namespace optfarm::transforms
