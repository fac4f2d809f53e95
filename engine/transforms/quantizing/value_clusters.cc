#include "engine/transforms/quantizing/value_clusters.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <queue>
#include <utility>

namespace optfarm::transforms {
namespace {

// Rounds of moving clusters; more gain next to nothing.
constexpr int kMostRounds = 100;
// Parts of the range in which values are counted, and how many values make
// another part worth while: few of them tell no density.
constexpr size_t kMostBins = 4096;
constexpr size_t kValuesOfBin = 32;
// Values that are added up once for all rounds.
constexpr size_t kBlock = 256;

class Clustering {
 public:
  explicit Clustering(absl::Span<const float> values)
      : sorted_(values.begin(), values.end()) {
    std::sort(sorted_.begin(), sorted_.end());
    for (size_t at = 0; at + kBlock <= sorted_.size(); at += kBlock) {
      block_sums_.push_back(SumOfEach(at, at + kBlock));
    }
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

  // Puts centers in place of those that went: halves the clusters of the
  // largest error.
  void Refill(int64_t count, std::vector<double>* centers) const {
    if (static_cast<int64_t>(centers->size()) == count) return;
    std::priority_queue<Cluster> clusters;
    for (const Cluster& cluster : ClustersOf(*centers)) clusters.push(cluster);
    while (static_cast<int64_t>(clusters.size()) < count &&
           clusters.top().error > 0) {
      const auto [error, begin, end] = clusters.top();
      clusters.pop();
      const double half = (double{sorted_[begin]} + sorted_[end - 1]) / 2;
      const size_t middle = CountBelow(half);
      clusters.push(ClusterOf(begin, middle));
      clusters.push(ClusterOf(middle, end));
    }
    centers->clear();
    for (; !clusters.empty(); clusters.pop()) {
      centers->push_back(MeanOf(clusters.top().begin, clusters.top().end));
    }
    std::sort(centers->begin(), centers->end());
  }

  // The squared error of taking the mean of each center's values for them.
  double ErrorOf(const std::vector<double>& centers) const {
    double error = 0;
    for (const Cluster& cluster : ClustersOf(centers)) error += cluster.error;
    return error;
  }

 private:
  // Some values in sorted order, at least one, and what their mean errs.
  struct Cluster {
    double error = 0;
    size_t begin = 0, end = 0;

    auto operator<=>(const Cluster&) const = default;
  };

  Cluster ClusterOf(size_t begin, size_t end) const {
    Cluster cluster = {0, begin, end};
    const double mean = MeanOf(begin, end);
    for (size_t i = begin; i < end; ++i) {
      cluster.error += (sorted_[i] - mean) * (sorted_[i] - mean);
    }
    return cluster;
  }

  std::vector<Cluster> ClustersOf(const std::vector<double>& centers) const {
    std::vector<Cluster> clusters;
    size_t begin = 0;
    for (const size_t end : EndsOf(centers)) {
      if (end > begin) clusters.push_back(ClusterOf(begin, end));
      begin = end;
    }
    return clusters;
  }

  // How many values are less than the border.
  size_t CountBelow(double border) const {
    return static_cast<size_t>(
        std::lower_bound(sorted_.begin(), sorted_.end(), border) -
        sorted_.begin());
  }

  // Where the values of each center end.
  std::vector<size_t> EndsOf(const std::vector<double>& centers) const {
    std::vector<size_t> ends;
    for (size_t i = 0; i + 1 < centers.size(); ++i) {
      ends.push_back(CountBelow((centers[i] + centers[i + 1]) / 2));
    }
    ends.push_back(sorted_.size());
    return ends;
  }

  // Never the difference of two sums: a far outlier in both would leave nothing
  // of the others.
  double MeanOf(size_t begin, size_t end) const {
    const size_t first = (begin + kBlock - 1) / kBlock, last = end / kBlock;
    double sum = 0;
    if (first < last) {
      sum = SumOfEach(begin, first * kBlock) + SumOfEach(last * kBlock, end);
      for (size_t i = first; i < last; ++i) sum += block_sums_[i];
    } else {
      sum = SumOfEach(begin, end);
    }
    // Rounding may not put means out of order, nor make two of them one float.
    return std::clamp<double>(sum / static_cast<double>(end - begin),
                              sorted_[begin], sorted_[end - 1]);
  }

  double SumOfEach(size_t begin, size_t end) const {
    return std::accumulate(sorted_.begin() + static_cast<ptrdiff_t>(begin),
                           sorted_.begin() + static_cast<ptrdiff_t>(end), 0.0);
  }

  std::vector<float> sorted_;
  // Of kBlock values each.
  std::vector<double> block_sums_;
};

}  // namespace

std::vector<float> FindClusters(absl::Span<const float> values, int64_t count) {
  const Clustering clustering(values);
  std::vector<float> different;
  if (clustering.HasAtMost(count, &different)) return different;
  std::vector<double> best;
  double least = std::numeric_limits<double>::infinity();
  for (std::vector<double> centers :
       {clustering.EqualParts(count), clustering.ByDensity(count)}) {
    clustering.Settle(&centers);
    clustering.Refill(count, &centers);
    clustering.Settle(&centers);
    const double error = clustering.ErrorOf(centers);
    if (error < least) {
      least = error;
      best = std::move(centers);
    }
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
