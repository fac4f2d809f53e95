#include "server/access/project_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace optfarm::server {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::_;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::Pair;

constexpr auto kBad = absl::StatusCode::kInvalidArgument;

ProjectLimits OfAll() {
  ProjectLimits limits;
  limits.max_bytes = 100;
  limits.max_jobs_a_day = 5;
  return limits;
}

TEST(ProjectLimits, ALineChangesWhatItNamesAndNothingElse) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const LimitsByProject limits,
      ParseProjectLimits("# ours\n"
                         "\n"
                         "vision jobs_per_day=500\tcall_burst=7 # busy\r\n"
                         "speech max_bytes=0 max_live_jobs=2 "
                         "calls_per_second=0.5",
                         OfAll()));
  ASSERT_THAT(limits, ElementsAre(Key("speech"), Key("vision")));
  EXPECT_EQ(ToText(limits.at("vision")),
            "max_bytes=100 max_live_jobs=0 jobs_per_day=500 "
            "calls_per_second=0 call_burst=7");
  EXPECT_EQ(ToText(limits.at("speech")),
            "max_bytes=0 max_live_jobs=2 jobs_per_day=5 calls_per_second=0.5 "
            "call_burst=100");
}

TEST(ProjectLimits, WrongLinesAreNamed) {
  for (const auto& [text, said] :
       {std::pair("vision\nvision", "line 2: the project vision has a line"),
        std::pair("a/b max_bytes=1", "line 1: project"),
        std::pair("vision max_bytes", "'max_bytes' is not KEY=VALUE"),
        std::pair("vision bytes=1", "there is no limit 'bytes'"),
        std::pair("vision max_bytes=-1", "'-1' is no whole number"),
        std::pair("vision max_live_jobs=9999999999", "is no whole number"),
        std::pair("vision calls_per_second=nan", "'nan' is no number"),
        std::pair("vision calls_per_second=inf", "'inf' is no number"),
        std::pair("vision call_burst=0", "from 1 to")}) {
    EXPECT_THAT(ParseProjectLimits(text, OfAll()),
                StatusIs(kBad, HasSubstr(said)));
  }
}

TEST(ProjectLimits, ReplacingThemTellsWhatChanged) {
  ProjectLimitsTable table(OfAll(), {});
  ProjectLimits own = OfAll();
  // A line that says what holds for all changes nothing.
  EXPECT_THAT(table.Replace({{"vision", own}}), ElementsAre());
  own.max_bytes = 7;
  EXPECT_THAT(table.Replace({{"vision", own}}),
              ElementsAre(Pair("vision", HasSubstr("max_bytes=7"))));
  EXPECT_EQ(table.Of("vision").max_bytes, 7);
  EXPECT_EQ(table.Of("speech").max_bytes, 100);
  EXPECT_THAT(table.Replace({{"vision", own}}), ElementsAre());
  EXPECT_THAT(table.Replace({}),
              ElementsAre(Pair("vision", HasSubstr("before: max_bytes=7"))));
  EXPECT_EQ(table.Of("vision").max_bytes, 100);
}

TEST(ProjectLimits, RateOfAProjectIsItsOwn) {
  ProjectLimits slow;
  slow.calls_per_second = 1;
  slow.call_burst = 1;
  ProjectLimitsTable table(ProjectLimits(), {{"slow", slow}});
  CallRate rate(table);
  const absl::Time now = absl::FromUnixSeconds(1700000000);
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(rate.Take("free", now), ::optfarm::testing::IsOk());
  }
  EXPECT_THAT(rate.Take("slow", now), ::optfarm::testing::IsOk());
  EXPECT_THAT(rate.Take("slow", now),
              StatusIs(absl::StatusCode::kResourceExhausted, _));
  table.Replace({});
  EXPECT_THAT(rate.Take("slow", now), ::optfarm::testing::IsOk());
}

}  // namespace
}  // namespace optfarm::server
