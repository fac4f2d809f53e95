#include "engine/benchmark/stat.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace optfarm::benchmark {

void Stat::Add(int64_t value) {
  if (count_ == 0) first_ = min_ = max_ = value;
  ++count_;
  newest_ = value;
  min_ = std::min(min_, value);
  max_ = std::max(max_, value);
  sum_ += value;
  squared_sum_ += static_cast<double>(value) * static_cast<double>(value);
}

double Stat::avg() const {
  if (count_ == 0) return 0;
  return static_cast<double>(sum_) / static_cast<double>(count_);
}

int64_t Stat::std_deviation() const {
  if (count_ == 0 || min_ == max_) return 0;
  const double variance =
      squared_sum_ / static_cast<double>(count_) - avg() * avg();
  return static_cast<int64_t>(std::sqrt(std::max(variance, 0.0)));
}

std::string Stat::ToString() const {
  if (count_ == 0) return "count=0";
  if (min_ == max_) {
    return absl::StrCat("count=", count_, " curr=", newest_,
                        count_ > 1 ? "(all same)" : "");
  }
  return absl::StrFormat(
      "count=%d first=%d curr=%d min=%d max=%d avg=%g std=%d", count_, first_,
      newest_, min_, max_, avg(), std_deviation());
}

}  // namespace optfarm::benchmark
