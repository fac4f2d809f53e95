#include "tests/bench/cpu_probe.h"

#include <sched.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "base/status_macros.h"
#include "engine/benchmark/affinity.h"

namespace optfarm::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kWarmSeconds = 0.001;
// Long against an interrupt, short against a neighbour's turn.
constexpr double kProbeSeconds = 0.005;
// About ten microseconds.
constexpr int kTimes = 10 * 1000;
constexpr int kNops = 16;

double Seconds(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

__attribute__((noinline)) void TakeNops() {
  for (int i = 0; i < kTimes; ++i) {
    asm volatile(
        "nop\n nop\n nop\n nop\n nop\n nop\n nop\n nop\n"
        "nop\n nop\n nop\n nop\n nop\n nop\n nop\n nop\n");
  }
}

// Seconds that this thread ran.
double ThreadSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) +
         1e-9 * static_cast<double>(time.tv_nsec);
}

CpuRate TakeNopsFor(double seconds) {
  const auto start = Clock::now();
  const double ran = ThreadSeconds();
  double nops = 0, passed = 0;
  for (; passed < seconds; passed = Seconds(start)) {
    TakeNops();
    nops += kNops * kTimes;
  }
  return {1e-9 * nops / passed, 1e-9 * nops / (ThreadSeconds() - ran)};
}

double OfUsage(int who) {
  rusage usage;
  if (getrusage(who, &usage) != 0) return 0;
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) +
           1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

std::vector<int> AllowedCpus() {
  std::vector<int> cpus;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<size_t>(cpu), &set)) cpus.push_back(cpu);
  }
  return cpus;
}

absl::StatusOr<std::vector<CpuRate>> ProbeCpus(absl::Span<const int> cpus) {
  std::vector<CpuRate> rates(cpus.size());
  std::vector<absl::Status> pinned(cpus.size());
  std::atomic<size_t> waiting{cpus.size()};
  std::vector<std::thread> threads;
  for (size_t i = 0; i < cpus.size(); ++i) {
    threads.emplace_back([&, i] {
      pinned[i] = benchmark::PinToCpus(cpus.subspan(i, 1));
      waiting.fetch_sub(1);
      while (waiting.load() != 0) std::this_thread::yield();
      TakeNopsFor(kWarmSeconds);
      rates[i] = TakeNopsFor(kProbeSeconds);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : pinned) OPTFARM_RETURN_IF_ERROR(status);
  return rates;
}

double BusySeconds(absl::Span<const int> cpus) {
  double ticks = 0;
  std::ifstream file("/proc/stat");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    int cpu = -1;
    if (name.substr(0, 3) != "cpu" || !absl::SimpleAtoi(name.substr(3), &cpu) ||
        std::find(cpus.begin(), cpus.end(), cpu) == cpus.end()) {
      continue;
    }
    // user nice system idle iowait irq softirq steal; guests' time is user's.
    double field = 0;
    for (int i = 0; i < 8 && words >> field; ++i) {
      if (i != 3 && i != 4) ticks += field;
    }
  }
  return ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double OwnSeconds() { return OfUsage(RUSAGE_SELF) + OfUsage(RUSAGE_CHILDREN); }

}  // namespace optfarm::bench
