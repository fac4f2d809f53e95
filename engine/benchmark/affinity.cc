#include "engine/benchmark/affinity.h"

#include <algorithm>
#include <fstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace optfarm::benchmark {
namespace {

constexpr int kMaxCpus = CPU_SETSIZE;

// The kernel leaves out those of `wanted` that it cannot give, and is content
// with one.
bool Pin(const cpu_set_t& wanted) {
  cpu_set_t before, now;
  if (sched_getaffinity(0, sizeof(before), &before) != 0 ||
      sched_setaffinity(0, sizeof(wanted), &wanted) != 0) {
    return false;
  }
  if (sched_getaffinity(0, sizeof(now), &now) == 0 &&
      CPU_EQUAL(&now, &wanted)) {
    return true;
  }
  sched_setaffinity(0, sizeof(before), &before);
  return false;
}

// Those of `cpus` that this process may use; all where it may use none.
std::vector<int> AllowedOf(const std::vector<int>& cpus) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return cpus;
  std::vector<int> usable;
  for (const int cpu : cpus) {
    if (CPU_ISSET(static_cast<size_t>(cpu), &allowed)) usable.push_back(cpu);
  }
  return usable.empty() ? cpus : usable;
}

}  // namespace

absl::Status PinToCpus(absl::Span<const int> cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) {
    if (cpu < 0 || cpu >= kMaxCpus) {
      return absl::InvalidArgumentError(
          absl::StrCat("there is no CPU ", cpu, " to measure on"));
    }
    CPU_SET(static_cast<size_t>(cpu), &set);
  }
  if (cpus.empty() || Pin(set)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("measuring on CPUs ", absl::StrJoin(cpus, ","),
                   " is not possible: one is not there, or may not be used by "
                   "this process; nproc and lscpu tell which there are"));
}

ScopedCpus::ScopedCpus(absl::Span<const int> cpus) {
  if (cpus.empty() || sched_getaffinity(0, sizeof(before_), &before_) != 0) {
    return;
  }
  status_ = PinToCpus(cpus);
  is_pinned_ = status_.ok();
}

ScopedCpus::~ScopedCpus() {
  if (is_pinned_) sched_setaffinity(0, sizeof(before_), &before_);
}

std::vector<int> BigCpus(const std::string& root) {
  std::vector<int> cpus;
  int64_t highest = 0;
  for (int cpu = 0; cpu < kMaxCpus; ++cpu) {
    std::ifstream file(absl::StrCat(root, "/sys/devices/system/cpu/cpu", cpu,
                                    "/cpufreq/cpuinfo_max_freq"));
    int64_t khz = 0;
    if (!(file >> khz)) break;
    if (khz > highest) cpus.clear();
    highest = std::max(highest, khz);
    if (khz == highest) cpus.push_back(cpu);
  }
  return cpus;
}

absl::StatusOr<std::vector<int>> ParseCpus(absl::string_view text) {
  if (text == "big") return AllowedOf(BigCpus());
  std::vector<int> cpus;
  for (const absl::string_view word :
       absl::StrSplit(text, ',', absl::SkipEmpty())) {
    int cpu = 0;
    if (!absl::SimpleAtoi(word, &cpu) || cpu < 0 || cpu >= kMaxCpus) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", word,
                       "' is no CPU's number; give big, or numbers "
                       "such as 4,5,6,7"));
    }
    cpus.push_back(cpu);
  }
  return cpus;
}

}  // namespace optfarm::benchmark
