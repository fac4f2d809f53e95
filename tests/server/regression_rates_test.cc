// How often each rule reports a series that did not change, and how often one
// that did: the table of docs/results.md, made by replaying histories.
// OPTFARM_UPDATE_DOCS=1 writes it there.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/files.h"
#include "server/services/regression_rule.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::server {
namespace {

using ::optfarm::testing::SourcePath;
using storage::PointNumbers;
using History = std::vector<PointNumbers>;

constexpr int kWindow = 20;
constexpr int kSyntheticRounds = 4000;
constexpr std::array<double, 5> kRises = {1.05, 1.10, 1.25, 1.63, 2.0};

PointNumbers Point(double median, double p90) {
  PointNumbers point;
  point.median_us = median;
  point.p90_us = p90;
  return point;
}

// The same everywhere, which std::normal_distribution is not.
class Random {
 public:
  double Uniform() {
    return (static_cast<double>(generator_()) + 0.5) / 4294967296.0;
  }
  double Normal() {
    return std::sqrt(-2 * std::log(Uniform())) *
           std::cos(6.283185307179586 * Uniform());
  }

 private:
  std::mt19937 generator_{7};
};

// Oldest first, by series.
std::map<std::string, History> ReadRecorded() {
  std::map<std::string, History> series;
  const auto text = ReadFile(SourcePath("tests/server/recorded_histories.csv"));
  EXPECT_TRUE(text.ok()) << text.status();
  bool heading = true;
  for (const absl::string_view line :
       absl::StrSplit(text.value_or(""), '\n', absl::SkipEmpty())) {
    const std::vector<std::string> parts = absl::StrSplit(line, ',');
    double median = 0, p90 = 0;
    if (!heading && parts.size() == 3 && absl::SimpleAtod(parts[1], &median) &&
        absl::SimpleAtod(parts[2], &p90)) {
      series[parts[0]].push_back(Point(median, p90));
    }
    heading = false;
  }
  return series;
}

// All windows of the recorded series, newest point first.
std::vector<History> RecordedHistories() {
  std::vector<History> windows;
  for (const auto& [name, points] : ReadRecorded()) {
    for (size_t end = kWindow; end <= points.size(); ++end) {
      windows.emplace_back(
          points.rend() - static_cast<std::ptrdiff_t>(end),
          points.rend() - static_cast<std::ptrdiff_t>(end - kWindow));
    }
  }
  return windows;
}

std::vector<History> Synthetic(int points,
                               const std::function<double(Random&)>& noise) {
  Random random;
  std::vector<History> histories(kSyntheticRounds);
  for (History& history : histories) {
    for (int i = 0; i < points; ++i) {
      const double median = 10000 * std::exp(noise(random));
      history.push_back(
          Point(median, median * (1 + 0.05 * std::abs(random.Normal()))));
    }
  }
  return histories;
}

double Reported(const v1::RegressionRule& rule,
                const std::vector<History>& histories, double rise) {
  int reported = 0;
  for (History history : histories) {
    history[0].median_us *= rise;
    history[0].p90_us *= rise;
    const Judgement judgement = Judge(rule, history);
    EXPECT_TRUE(judgement.enough_points);
    reported += judgement.regressed ? 1 : 0;
  }
  return static_cast<double>(reported) / static_cast<double>(histories.size());
}

struct Kind {
  const char* name;
  std::vector<History> histories;
  // What the rule CHANGE may report of the unchanged.
  double most_false_alarms;
};

std::vector<Kind> Kinds() {
  const auto quiet = [](Random& random) { return 0.02 * random.Normal(); };
  std::vector<Kind> kinds;
  kinds.push_back(
      {"quiet: 2 % from run to run", Synthetic(kWindow, quiet), 0.013});
  kinds.push_back({"quiet, only 5 points", Synthetic(5, quiet), 0.013});
  // One in twenty is disturbed, the newest too: those are reported.
  kinds.push_back({"quiet, 5 % of points up to 50 % slower",
                   Synthetic(kWindow,
                             [&](Random& random) {
                               const bool hit = random.Uniform() < 0.05;
                               return quiet(random) +
                                      (hit ? 0.4 * random.Uniform() : 0);
                             }),
                   0.06});
  kinds.push_back(
      {"noisy: 25 % from run to run",
       Synthetic(kWindow, [](Random& r) { return 0.25 * r.Normal(); }), 0.013});
  kinds.push_back({"recorded on a busy machine", RecordedHistories(), 0.03});
  return kinds;
}

struct NamedRule {
  const char* name;
  v1::RegressionRule::Kind kind;
};
constexpr NamedRule kRules[] = {
    {"change", v1::RegressionRule::CHANGE},
    {"past-p90s", v1::RegressionRule::PAST_P90S},
    {"ratio", v1::RegressionRule::RATIO},
    {"deviations", v1::RegressionRule::DEVIATIONS},
};

std::string Percent(double share) {
  return absl::StrFormat(" %.*f |", share < 0.0995 ? 1 : 0, 100 * share);
}

constexpr char kBegin[] = "<!-- rates of the rules: begin -->\n";
constexpr char kEnd[] = "<!-- rates of the rules: end -->";

void CheckOrUpdateDocs(const std::string& table) {
  const std::string path = SourcePath("docs/results.md");
  OPTFARM_ASSERT_OK_AND_ASSIGN(const std::string page, ReadFile(path));
  const size_t begin = page.find(kBegin);
  const size_t end = page.find(kEnd);
  ASSERT_NE(begin, std::string::npos);
  ASSERT_NE(end, std::string::npos);
  const std::string wanted =
      absl::StrCat(page.substr(0, begin), kBegin, table, page.substr(end));
  if (std::getenv("OPTFARM_UPDATE_DOCS") != nullptr) {
    ASSERT_TRUE(WriteFileAtomically(path, wanted).ok());
    return;
  }
  EXPECT_EQ(page, wanted) << "OPTFARM_UPDATE_DOCS=1 writes it anew";
}

TEST(RegressionRatesTest, DocsHaveTheRatesAndTheDefaultKeepsItsPromise) {
  std::string table =
      "| history | rule | false alarms | +5 % | +10 % | +25 % | +63 % | "
      "+100 % |\n|---|---|--:|--:|--:|--:|--:|--:|\n";
  for (const Kind& kind : Kinds()) {
    ASSERT_GE(kind.histories.size(), 100u);
    for (const NamedRule& named : kRules) {
      v1::RegressionRule rule;
      rule.set_kind(named.kind);
      OPTFARM_ASSERT_OK_AND_ASSIGN(rule, CompleteRule(rule));
      const double false_alarms = Reported(rule, kind.histories, 1);
      absl::StrAppend(&table, "| ", kind.name, " | `", named.name, "` |",
                      Percent(false_alarms));
      for (const double rise : kRises) {
        absl::StrAppend(&table, Percent(Reported(rule, kind.histories, rise)));
      }
      absl::StrAppend(&table, "\n");
      if (named.kind == v1::RegressionRule::CHANGE) {
        EXPECT_LE(false_alarms, kind.most_false_alarms) << kind.name;
      }
    }
  }
  CheckOrUpdateDocs(table);
}

}  // namespace
}  // namespace optfarm::server
