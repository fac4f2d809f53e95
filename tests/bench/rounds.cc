#include "tests/bench/rounds.h"

#include <algorithm>
#include <functional>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tests/bench/quiet_cpus.h"

namespace optfarm::bench {
namespace {

// Of a round, by one of its turns for each that takes them.
using Value =
    std::function<double(const std::function<const Turn&(size_t series)>&)>;

SummaryPair SummarizeRounds(absl::Span<const Round> rounds, double best_rate,
                            const Value& value) {
  std::vector<double> all, undisturbed;
  for (const Round& round : rounds) {
    all.push_back(value([&](size_t series) -> const Turn& {
      return round.turns[series].front();
    }));
    if (!IsUndisturbed(round, best_rate)) continue;
    undisturbed.push_back(value([&](size_t series) -> const Turn& {
      return round.turns[series].back();
    }));
  }
  SummaryPair pair;
  pair.all = benchmark::Summarize(all);
  pair.undisturbed = benchmark::Summarize(undisturbed);
  pair.count = static_cast<int>(all.size());
  pair.undisturbed_count = static_cast<int>(undisturbed.size());
  return pair;
}

std::string DescribeSummary(const benchmark::Summary& summary) {
  return absl::StrFormat("%.3f (%.3f .. %.3f)", summary.median, summary.min,
                         summary.max);
}

}  // namespace

bool IsShared(const Turn& turn, double best_rate) {
  return turn.rate < kQuiet * best_rate;
}

bool IsUndisturbed(const Turn& turn, double best_rate) {
  return !turn.cpus.empty() && !IsShared(turn, best_rate) &&
         turn.others <= kMostOthers;
}

bool IsUndisturbed(const Round& round, double best_rate) {
  return std::all_of(round.turns.begin(), round.turns.end(),
                     [best_rate](const std::vector<Turn>& turns) {
                       return IsUndisturbed(turns.back(), best_rate);
                     });
}

absl::Status CheckLimits(const RoundLimits& limits) {
  if (limits.Most() >= limits.wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--most_rounds ", limits.most, " is less than --rounds ",
                   limits.wanted, "; give at least as many"));
}

bool WantsMore(absl::Span<const Round> rounds, double best_rate,
               const RoundLimits& limits) {
  const auto enough = static_cast<size_t>(limits.wanted);
  if (rounds.size() < enough) return true;
  // Nothing was probed, so that there is nothing to wait for.
  if (rounds.back().turns[0].back().cpus.empty()) return false;
  const auto undisturbed = std::count_if(
      rounds.begin(), rounds.end(),
      [&](const Round& round) { return IsUndisturbed(round, best_rate); });
  return undisturbed < limits.wanted &&
         rounds.size() < static_cast<size_t>(limits.Most());
}

SummaryPair SummarizeTimes(absl::Span<const Round> rounds, double best_rate,
                           size_t series) {
  return SummarizeRounds(rounds, best_rate, [series](const auto& turn) {
    return turn(series).milliseconds;
  });
}

SummaryPair SummarizeRatios(absl::Span<const Round> rounds, double best_rate,
                            size_t series) {
  return SummarizeRounds(rounds, best_rate, [series](const auto& turn) {
    return turn(0).milliseconds / turn(series).milliseconds;
  });
}

std::string DescribeRatios(const SummaryPair& ratios) {
  std::string text = DescribeSummary(ratios.Preferred());
  if (ratios.undisturbed_count > 0 && ratios.undisturbed_count < ratios.count) {
    absl::StrAppend(&text, ", all rounds ", DescribeSummary(ratios.all));
  }
  return text;
}

std::string DescribeRounds(absl::Span<const Round> rounds, double best_rate) {
  const auto undisturbed = std::count_if(
      rounds.begin(), rounds.end(),
      [&](const Round& round) { return IsUndisturbed(round, best_rate); });
  int turns = 0, shared = 0, beside = 0;
  std::map<std::string, int> by_cpus;
  for (const Round& round : rounds) {
    for (const std::vector<Turn>& of_one : round.turns) {
      for (const Turn& turn : of_one) {
        ++turns;
        if (turn.cpus.empty()) continue;
        ++by_cpus[absl::StrJoin(turn.cpus, "+")];
        shared += IsShared(turn, best_rate);
        beside += turn.others > kMostOthers;
      }
    }
  }
  if (by_cpus.empty()) {
    return absl::StrCat(rounds.size(), " rounds, not pinned and not probed");
  }
  const std::string cpus =
      absl::StrJoin(by_cpus, ", ", [](std::string* out, const auto& entry) {
        absl::StrAppend(out, entry.first, " (", entry.second, ")");
      });
  return absl::StrFormat(
      "%d of %d rounds undisturbed; of %d turns %d shared a core, %d ran "
      "beside other processes; best rate %.2f; on processors %s",
      undisturbed, rounds.size(), turns, shared, beside, best_rate, cpus);
}

}  // namespace optfarm::bench
