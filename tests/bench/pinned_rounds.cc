#include "tests/bench/pinned_rounds.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/benchmark/affinity.h"
#include "tests/bench/cpu_probe.h"

namespace optfarm::bench {
namespace {

using Clock = std::chrono::steady_clock;

double Seconds(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

PinnedRounds::PinnedRounds(const PinOptions& options, runtime::ThreadPool* pool)
    : options_(options),
      pool_(pool),
      cpus_(AllowedCpus(), ProbeCpus, options.quiet_rate) {
  const size_t count = cpus_.candidates().size();
  if (!options.pin) {
    why_not_ = "--pin is off";
  } else if (count < static_cast<size_t>(pool->threads())) {
    why_not_ = absl::StrCat(pool->threads(), " threads may run on ", count,
                            count == 1 ? " processor" : " processors");
  } else if (const auto rate = cpus_.LeastRate(cpus_.candidates());
             !rate.ok()) {
    why_not_ = std::string(rate.status().message());
  }
}

absl::Status PinnedRounds::Pin() {
  if (!why_not_.empty()) return absl::OkStatus();
  const auto start = Clock::now();
  for (;;) {
    OPTFARM_ASSIGN_OR_RETURN(chosen_, cpus_.Choose(pool_->threads()));
    if (cpus_.IsQuiet(chosen_.least.rate) ||
        Seconds(start) > options_.patience) {
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  OPTFARM_RETURN_IF_ERROR(benchmark::PinToCpus(chosen_.cpus));
  return pool_->SetAffinity(chosen_.cpus);
}

absl::StatusOr<Turn> PinnedRounds::TakeTurn(
    absl::FunctionRef<absl::StatusOr<double>()> turn) {
  Turn taken;
  taken.cpus = chosen_.cpus;
  const auto start = Clock::now();
  const double busy = BusySeconds(taken.cpus), own = OwnSeconds();
  OPTFARM_ASSIGN_OR_RETURN(taken.milliseconds, turn());
  if (taken.cpus.empty()) return taken;
  const double others = (BusySeconds(taken.cpus) - busy) - (OwnSeconds() - own);
  taken.others = std::max(
      0.0, others / (Seconds(start) * static_cast<double>(taken.cpus.size())));
  const double rate_before = chosen_.least.own_rate;
  OPTFARM_ASSIGN_OR_RETURN(chosen_.least, cpus_.LeastRate(taken.cpus));
  taken.rate = std::min(rate_before, chosen_.least.own_rate);
  return taken;
}

absl::StatusOr<std::vector<Turn>> PinnedRounds::TakeTurns(
    absl::FunctionRef<absl::StatusOr<double>()> turn) {
  std::vector<Turn> turns;
  const auto tries = static_cast<size_t>(options_.tries);
  do {
    if (chosen_.cpus.empty() || !cpus_.IsQuiet(chosen_.least.own_rate)) {
      OPTFARM_RETURN_IF_ERROR(Pin());
    }
    OPTFARM_ASSIGN_OR_RETURN(turns.emplace_back(), TakeTurn(turn));
  } while (!turns.back().cpus.empty() && turns.size() < tries &&
           IsShared(turns.back(), best_rate()));
  return turns;
}

}  // namespace optfarm::bench
