// Simulates farms, seed after seed, and stops at the first in which something
// does not hold.

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "tests/simulation/simulation.h"

namespace {

constexpr char kUsage[] =
    "usage: simulate_farm [--seeds=A..B] [--minutes=N] [--notes] [--log]\n"
    "  --seeds    from A to B; B may be left out (default: 1..)\n"
    "  --minutes  ends after so long (default: after the last seed)\n"
    "  --last     steps to tell of when something does not hold (100)\n"
    "  --notes    prints a line for each seed, with its digest\n"
    "  --log      shows what the server logs\n";

struct Flags {
  uint64_t first = 1;
  uint64_t last = std::numeric_limits<uint64_t>::max();
  double minutes = 0;
  bool notes = false;
  bool log = false;
  size_t told = 100;
};

bool Parse(int argc, char** argv, Flags& flags) {
  for (int i = 1; i < argc; ++i) {
    const std::pair<absl::string_view, absl::string_view> flag =
        absl::StrSplit(argv[i], absl::MaxSplits('=', 1));
    bool good = false;
    if (flag.first == "--seeds") {
      const std::pair<absl::string_view, absl::string_view> range =
          absl::StrSplit(flag.second, absl::MaxSplits("..", 1));
      good =
          absl::SimpleAtoi(range.first, &flags.first) &&
          (range.second.empty() || absl::SimpleAtoi(range.second, &flags.last));
    } else if (flag.first == "--minutes") {
      good = absl::SimpleAtod(flag.second, &flags.minutes);
    } else if (flag.first == "--last") {
      good = absl::SimpleAtoi(flag.second, &flags.told) && flags.told > 0;
    } else if (flag.first == "--notes") {
      good = flags.notes = true;
    } else if (flag.first == "--log") {
      good = flags.log = true;
    }
    if (!good) return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  if (!Parse(argc, argv, flags)) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  // What the server logs is not wanted.
  if (!flags.log && std::freopen("/dev/null", "w", stderr) == nullptr) return 1;
  using Seconds = std::chrono::duration<double>;
  const auto begin = std::chrono::steady_clock::now();
  int64_t steps = 0;
  int64_t commits = 0;
  int64_t jobs = 0;
  int64_t crashes = 0;
  uint64_t seed = flags.first;
  double seconds = 0;
  for (; seed <= flags.last; ++seed) {
    const auto result = optfarm::simulation::Simulate(seed, flags.told);
    steps += result.steps;
    commits += result.commits;
    jobs += result.jobs;
    crashes += result.crashes;
    if (flags.notes) {
      std::printf("seed %llu: digest %016llx, %lld steps, %d jobs, %lld s\n",
                  static_cast<unsigned long long>(seed),
                  static_cast<unsigned long long>(result.digest),
                  static_cast<long long>(result.steps), result.jobs,
                  static_cast<long long>(result.seconds));
    }
    if (!result.failure.empty()) {
      std::printf("%sseed %llu, step %lld: %s\n", result.notes.c_str(),
                  static_cast<unsigned long long>(seed),
                  static_cast<long long>(result.steps), result.failure.c_str());
      return 1;
    }
    std::fflush(stdout);
    seconds = Seconds(std::chrono::steady_clock::now() - begin).count();
    if (flags.minutes > 0 && seconds > flags.minutes * 60) break;
  }
  std::printf(
      "seeds %llu..%llu: all held; %lld steps, %lld commits, %lld crashes, "
      "%lld jobs in %.0f s, %.2f million steps a minute\n",
      static_cast<unsigned long long>(flags.first),
      static_cast<unsigned long long>(std::min(seed, flags.last)),
      static_cast<long long>(steps), static_cast<long long>(commits),
      static_cast<long long>(crashes), static_cast<long long>(jobs), seconds,
      static_cast<double>(steps) * 60e-6 / std::max(seconds, 1e-3));
  return 0;
}
