#include "tests/bench/quiet_cpus.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/status_macros.h"

namespace optfarm::bench {

absl::StatusOr<CpuRate> QuietCpus::LeastRate(absl::Span<const int> cpus) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<CpuRate> rates, probe_(cpus));
  CpuRate least = rates[0];
  for (const CpuRate& rate : rates) {
    least.rate = std::min(least.rate, rate.rate);
    least.own_rate = std::min(least.own_rate, rate.own_rate);
    best_ = std::max(best_, rate.rate);
  }
  return least;
}

absl::StatusOr<ChosenCpus> QuietCpus::Choose(int count) {
  std::vector<std::pair<double, int>> by_rate;
  for (const int cpu : candidates_) {
    OPTFARM_ASSIGN_OR_RETURN(const CpuRate rate, LeastRate({cpu}));
    by_rate.emplace_back(rate.rate, cpu);
  }
  std::stable_sort(
      by_rate.begin(), by_rate.end(),
      [](const auto& a, const auto& b) { return a.first > b.first; });
  const auto wanted = static_cast<size_t>(count);
  ChosenCpus chosen;
  std::vector<int> others;
  for (const auto& [rate, cpu] : by_rate) {
    if (chosen.cpus.size() == wanted) break;
    chosen.cpus.push_back(cpu);
    if (IsQuiet(rate)) {
      OPTFARM_ASSIGN_OR_RETURN(chosen.least, LeastRate(chosen.cpus));
      if (IsQuiet(chosen.least.rate)) continue;
    }
    chosen.cpus.pop_back();
    others.push_back(cpu);
  }
  if (chosen.cpus.size() < wanted) {
    others.resize(wanted - chosen.cpus.size());
    chosen.cpus.insert(chosen.cpus.end(), others.begin(), others.end());
    OPTFARM_ASSIGN_OR_RETURN(chosen.least, LeastRate(chosen.cpus));
  }
  std::sort(chosen.cpus.begin(), chosen.cpus.end());
  return chosen;
}

}  // namespace optfarm::bench
