// Running totals of one number over many runs, and the line that TensorFlow's
// tools print for them. Statistics for decisions (median, spread) are in
// statistics.h.

#ifndef OPTFARM_ENGINE_BENCHMARK_STAT_H_
#define OPTFARM_ENGINE_BENCHMARK_STAT_H_

#include <cstdint>
#include <string>

namespace optfarm::benchmark {

// UNITS: those of the values; microseconds or bytes.
class Stat {
 public:
  void Add(int64_t value);

  int64_t count() const { return count_; }
  bool empty() const { return count_ == 0; }
  int64_t first() const { return first_; }
  int64_t newest() const { return newest_; }
  int64_t min() const { return min_; }
  int64_t max() const { return max_; }
  int64_t sum() const { return sum_; }
  // 0 when there are no values.
  double avg() const;
  // Of the population, cut off to a whole number.
  int64_t std_deviation() const;

  // "count=3 first=1 curr=3 min=1 max=3 avg=2 std=0"; "count=3 curr=5(all
  // same)"; "count=0".
  std::string ToString() const;

 private:
  int64_t count_ = 0;
  int64_t first_ = 0;
  int64_t newest_ = 0;
  int64_t min_ = 0;
  int64_t max_ = 0;
  int64_t sum_ = 0;
  double squared_sum_ = 0;
};

}  // namespace optfarm::benchmark

#endif  // OPTFARM_ENGINE_BENCHMARK_STAT_H_
