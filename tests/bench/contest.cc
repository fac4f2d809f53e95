#include "tests/bench/contest.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

namespace optfarm::bench {
namespace {

using runtime::Session;
using runtime::ThreadPool;

double Milliseconds(const std::chrono::steady_clock::time_point& start) {
  return std::chrono::duration<double, std::milli>(
             std::chrono::steady_clock::now() - start)
      .count();
}

// The least of the runs that fit into `seconds`; at least three.
absl::StatusOr<double> TimeSession(const Session& session, const Net& net,
                                   double seconds) {
  double least = 1e30;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 3 || Milliseconds(begin) < 1e3 * seconds; ++i) {
    const auto start = std::chrono::steady_clock::now();
    OPTFARM_RETURN_IF_ERROR(session.Run(net.feeds).status());
    least = std::min(least, Milliseconds(start));
  }
  return least;
}

// The last word that a shell command prints, as a number.
absl::StatusOr<double> TimePeer(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return absl::InternalError("no shell to run a peer");
  std::string output;
  std::array<char, 4096> buffer;
  size_t count = 0;
  while ((count = fread(buffer.data(), 1, buffer.size(), pipe)) > 0) {
    output.append(buffer.data(), count);
  }
  const int status = pclose(pipe);
  const std::vector<std::string> words = absl::StrSplit(
      output, absl::ByAnyChar(" \t\r\n"), absl::SkipWhitespace());
  double milliseconds = 0;
  if (status != 0 || words.empty() ||
      !absl::SimpleAtod(words.back(), &milliseconds)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "running '", command, "': it ended with ", status, " and printed '",
        output, "', whose last word is no number"));
  }
  return milliseconds;
}

// One of those that take turns: a net of ours or a peer.
struct Series {
  std::string name;
  std::unique_ptr<Net> net;
  std::unique_ptr<Session> session;
  std::string command;
};

absl::StatusOr<double> TimeSeries(const Series& series, double seconds) {
  if (series.session == nullptr) return TimePeer(series.command);
  return TimeSession(*series.session, *series.net, seconds);
}

absl::StatusOr<Series> MakeOurs(const std::string& series,
                                const std::string& net, NetOptions options,
                                bool fast_kernels, ThreadPool* pool) {
  Series ours;
  ours.name = series;
  OPTFARM_ASSIGN_OR_RETURN(Net loaded, LoadNet(net, options));
  ours.net = std::make_unique<Net>(std::move(loaded));
  OPTFARM_ASSIGN_OR_RETURN(ours.session,
                           MakeSession(*ours.net, pool, fast_kernels));
  OPTFARM_RETURN_IF_ERROR(ours.session->Run(ours.net->feeds).status());
  return ours;
}

absl::StatusOr<Series> MakePeer(const std::string& peer, const std::string& net,
                                int threads) {
  const std::vector<std::string> parts =
      absl::StrSplit(peer, absl::MaxSplits('=', 1));
  if (parts.size() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("--peer '", peer, "' is not NAME=COMMAND"));
  }
  Series series;
  series.name = parts[0];
  series.command = absl::StrReplaceAll(
      parts[1], {{"{net}", net}, {"{threads}", absl::StrCat(threads)}});
  return series;
}

absl::StatusOr<std::vector<Series>> MakeAll(const std::string& name,
                                            const ContestOptions& options,
                                            ThreadPool* pool) {
  std::vector<Series> all;
  OPTFARM_ASSIGN_OR_RETURN(all.emplace_back(),
                           MakeOurs("ours", name, options.net, true, pool));
  for (const std::string& chain : options.against) {
    NetOptions other = options.net;
    other.chain = chain;
    OPTFARM_ASSIGN_OR_RETURN(all.emplace_back(),
                             MakeOurs(chain, name, other, true, pool));
  }
  if (options.with_reference) {
    OPTFARM_ASSIGN_OR_RETURN(
        all.emplace_back(),
        MakeOurs("reference", name, options.net, false, pool));
  }
  for (const std::string& peer : options.peers) {
    OPTFARM_ASSIGN_OR_RETURN(all.emplace_back(),
                             MakePeer(peer, name, pool->threads()));
  }
  return all;
}

// --- Rounds ------------------------------------------------------------------

absl::StatusOr<Round> RunRound(const std::vector<Series>& all, size_t first,
                               double seconds, PinnedRounds* pinned) {
  Round round;
  round.turns.resize(all.size());
  pinned->BeginRound();
  for (size_t i = 0; i < all.size(); ++i) {
    const size_t k = (first + i) % all.size();
    OPTFARM_ASSIGN_OR_RETURN(round.turns[k], pinned->TakeTurns([&] {
      return TimeSeries(all[k], seconds);
    }));
  }
  return round;
}

void PrintRound(const Round& round, const std::vector<Series>& all,
                double best_rate) {
  std::printf("  %s",
              IsUndisturbed(round, best_rate) ? "round:" : "disturbed:");
  for (size_t i = 0; i < all.size(); ++i) {
    std::printf(" %s", all[i].name.c_str());
    for (const Turn& turn : round.turns[i]) {
      std::printf(" %.3f", turn.milliseconds);
      if (turn.cpus.empty()) continue;
      std::printf(" (on %s, rate %.2f, others %.0f %%)",
                  absl::StrJoin(turn.cpus, "+").c_str(), turn.rate / best_rate,
                  100 * turn.others);
    }
  }
  std::printf("\n");
  std::fflush(stdout);
}

void PrintAll(const std::string& net, int threads,
              const std::vector<Series>& all, const std::vector<Round>& rounds,
              const PinnedRounds& pinned) {
  const double best_rate = pinned.best_rate();
  const benchmark::Summary ours =
      SummarizeTimes(rounds, best_rate, 0).Preferred();
  for (size_t i = 0; i < all.size(); ++i) {
    const benchmark::Summary time =
        SummarizeTimes(rounds, best_rate, i).Preferred();
    std::printf("%-24s %d thread%s %-12s %9.3f ms (%.3f .. %.3f)", net.c_str(),
                threads, threads == 1 ? " " : "s", all[i].name.c_str(),
                time.median, time.min, time.max);
    if (i > 0) {
      const SummaryPair ratios = SummarizeRatios(rounds, best_rate, i);
      std::printf("   ours/%s %s, of the least %.3f", all[i].name.c_str(),
                  DescribeRatios(ratios).c_str(), ours.min / time.min);
    }
    std::printf("\n");
  }
  std::printf("%-24s %s%s%s\n", net.c_str(),
              DescribeRounds(rounds, best_rate).c_str(),
              pinned.why_not().empty() ? "" : ": ", pinned.why_not().c_str());
  std::fflush(stdout);
}

}  // namespace

absl::Status HoldContest(const std::string& net, const ContestOptions& options,
                         ThreadPool* pool, PinnedRounds* pinned) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<Series> all,
                           MakeAll(net, options, pool));
  std::vector<Round> rounds;
  while (WantsMore(rounds, pinned->best_rate(), options.limits)) {
    // Who begins changes, so that nobody always runs behind the same one.
    OPTFARM_ASSIGN_OR_RETURN(
        rounds.emplace_back(),
        RunRound(all, rounds.size(), options.seconds, pinned));
    if (options.prints_rounds) {
      PrintRound(rounds.back(), all, pinned->best_rate());
    }
  }
  PrintAll(net, pool->threads(), all, rounds, *pinned);
  return absl::OkStatus();
}

}  // namespace optfarm::bench
