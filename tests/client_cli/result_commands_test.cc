// The commands about results, against a farm in memory, and what they draw.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "base/files.h"
#include "base/status_macros.h"
#include "client_cli/command/result_filter_flags.h"
#include "client_cli/command_line.h"
#include "client_cli/command_table.h"
#include "client_cli/tables/trend_chart.h"
#include "rpc/proto_time.h"
#include "tests/client_cli/fake_farm_client.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::client_cli {
namespace {

using ::optfarm::testing::FreshFolder;
using ::optfarm::testing::IsOk;
using ::optfarm::testing::StatusIs;
using ::testing::_;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(SparklineTest, GoesFromTheLeastToTheMost) {
  EXPECT_EQ(Sparkline({1.0, 2, 8}, 10), "▁▂█");
  EXPECT_EQ(Sparkline({5.0, 5, 5}, 10), "▅▅▅");
  EXPECT_EQ(Sparkline({1.0, 100, 50, 100}, 2), "▁█");
  EXPECT_EQ(Sparkline({}, 10), "");
}

TEST(TrendSvgTest, DrawsEveryPointAndEscapesNames) {
  const TrendLine line{"<pi & \"4\">",
                       {{absl::UnixEpoch(), 1000, false},
                        {absl::UnixEpoch() + absl::Hours(1), 2000, true}}};
  const std::string svg = TrendSvg({line}, "median, ms", 1000);
  EXPECT_THAT(svg, StartsWith("<svg xmlns="));
  EXPECT_THAT(svg, HasSubstr("&lt;pi &amp; &quot;4&quot;&gt;"));
  EXPECT_THAT(svg, HasSubstr("1970-01-01T00:00:00+00:00: 1</title>"));
  EXPECT_THAT(svg, HasSubstr("2 (noisy)"));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(TrendSvg({}, "x", 1), HasSubstr("</svg>"));
}

TEST(MetricRangeTest, ReadsEachSign) {
  EXPECT_EQ(ParseMetricRange("median_us<5000")->below(), 5000);
  EXPECT_GT(ParseMetricRange("p90_us<=5")->below(), 5);
  EXPECT_EQ(ParseMetricRange("peak_memory_bytes>=1e6")->at_least(), 1e6);
  EXPECT_GT(ParseMetricRange("file_size_bytes>7")->at_least(), 7);
  EXPECT_FALSE(ParseMetricRange("median_us<5000")->has_at_least());
  for (const char* bad :
       {"", "median_us", "median_us=5", "median_us<", "median_us<x", "<5"}) {
    EXPECT_THAT(ParseMetricRange(bad),
                StatusIs(absl::StatusCode::kInvalidArgument, _))
        << bad;
  }
  EXPECT_THAT(
      ParseMetricRange("median<5"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("median_us")));
}

class ResultCommandsTest : public ::testing::Test {
 protected:
  ResultCommandsTest() : folder_(FreshFolder()) {
    v1::SeriesHistory& history = *farm_.history.add_series();
    history.mutable_series()->set_device("pi4");
    history.mutable_series()->set_model_name("net.pb");
    history.mutable_series()->set_variant("int8");
    history.mutable_series()->set_threads(4);
    for (const double median : {1000.0, 1000.0, 1500.0}) {
      v1::SeriesPoint& point = *history.add_points();
      point.set_result_id(history.points_size());
      point.set_median_us(median);
      *point.mutable_create_time() = rpc::ToTimestamp(
          absl::UnixEpoch() + absl::Hours(history.points_size()));
    }
  }

  absl::StatusOr<ExitCode> Run(const std::vector<std::string>& words) {
    const std::vector<CommandInfo> commands = AllCommands();
    OPTFARM_ASSIGN_OR_RETURN(ParsedCommandLine parsed,
                             ParseCommandLine(words, commands));
    std::ostringstream out;
    std::ostringstream err;
    CommandContext context;
    context.out = &out;
    context.err = &err;
    context.clock = RealClock();
    context.format = parsed.global.format;
    context.connect = [this]() -> absl::StatusOr<std::unique_ptr<FarmClient>> {
      return std::make_unique<FakeFarmClient>(&farm_);
    };
    const absl::StatusOr<ExitCode> code = parsed.command->Run(context);
    out_ = out.str();
    err_ = err.str();
    return code;
  }

  const std::string folder_;
  FakeFarm farm_;
  std::string out_;
  std::string err_;
};

TEST_F(ResultCommandsTest, ResultsStillStandsAloneBesideItsSubcommands) {
  ASSERT_THAT(Run({"results", "--tag=nightly", "--id=7", "--where=p90_us<9"}),
              IsOk());
  EXPECT_EQ(farm_.query.tag(), "nightly");
  EXPECT_EQ(farm_.query.result_id(), 7);
  EXPECT_EQ(farm_.query.metrics(0).below(), 9);
  EXPECT_THAT(Run({"results", "histroy"}),
              StatusIs(absl::StatusCode::kInvalidArgument, _));
}

TEST_F(ResultCommandsTest, HistoryShowsTrendAndChange) {
  ASSERT_THAT(Run({"results", "history", "--device=pi4", "--since=24h"}),
              IsOk());
  EXPECT_EQ(farm_.filter.device(), "pi4");
  EXPECT_TRUE(farm_.filter.has_from_time());
  EXPECT_THAT(out_, HasSubstr("▁▁█"));
  EXPECT_THAT(out_, HasSubstr("+50.0%"));
}

TEST_F(ResultCommandsTest, HistoryWritesEveryPointForProgramsAndAChart) {
  const std::string svg = JoinPath(folder_, "trend.svg");
  ASSERT_THAT(Run({"results", "history", "-o", "csv", "--svg=" + svg}), IsOk());
  EXPECT_THAT(out_, StartsWith("device,model,recipe,variant,threads,result_id,"
                               "create_time,median_us,"));
  EXPECT_THAT(out_, HasSubstr("pi4,net.pb,,int8,4,3,1970-01-01T03:00:00+00:00,"
                              "1500"));
  EXPECT_THAT(*ReadFile(svg), HasSubstr("pi4  net.pb  int8  4 threads"));
  ASSERT_THAT(Run({"results", "history", "-o", "json"}), IsOk());
  EXPECT_THAT(out_, HasSubstr("\"result_id\": 3"));
}

TEST_F(ResultCommandsTest, RegressionsFailThePipeline) {
  farm_.regressions.set_judged(4);
  OPTFARM_ASSERT_OK_AND_ASSIGN(ExitCode code, Run({"results", "regressions"}));
  EXPECT_EQ(code, ExitCode::kOk);
  farm_.regressions.set_found(1);
  v1::Regression& regression = *farm_.regressions.add_regressions();
  regression.mutable_series()->set_device("pi4");
  regression.set_ratio(1.5);
  regression.set_message("the median rose");
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      code, Run({"results", "regressions", "--rule=ratio", "--bound=1.2",
                 "--metric=p90_us"}));
  EXPECT_EQ(code, ExitCode::kJobFailed);
  EXPECT_THAT(out_, HasSubstr("the median rose"));
  EXPECT_THAT(out_, HasSubstr("+50.0%"));
  EXPECT_THAT(err_, HasSubstr("1 of 4 series"));
  EXPECT_EQ(farm_.rule.kind(), v1::RegressionRule::RATIO);
  EXPECT_EQ(farm_.rule.limit(), 1.2);
  EXPECT_EQ(farm_.rule.metric(), v1::P90_US);
}

TEST_F(ResultCommandsTest, ADeviceOrJobThatIsNotThereIsNoGoodNews) {
  farm_.history.clear_series();
  farm_.devices.emplace_back().mutable_info()->set_name("pi4");
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"results"},
        {"results", "history"},
        {"results", "regressions"}}) {
    const auto with = [&command](const std::string& flag) {
      std::vector<std::string> words = command;
      words.push_back(flag);
      return words;
    };
    const absl::Status device = Run(with("--device=pi5")).status();
    EXPECT_THAT(device,
                StatusIs(absl::StatusCode::kNotFound, HasSubstr("'pi4'")));
    EXPECT_EQ(ExitCodeOf(device), ExitCode::kNotFound);
    EXPECT_EQ(ExitCodeOf(Run(with("--job=j1")).status()), ExitCode::kNotFound);
    EXPECT_THAT(Run(with("--device=pi4")), IsOk());
  }
}

TEST_F(ResultCommandsTest, AMisspeltModelRecipeOrVariantIsNamed) {
  farm_.has_no_jobs = true;
  const struct {
    std::string flag, message;
  } kSlips[] = {
      {"--model=nte.pb", "there is no model 'nte.pb'; the nearest is 'net.pb'"},
      {"--recipe=int9", "there is no recipe 'int9'; the nearest is 'int8'"},
      {"--variant=flaot",
       "there is no variant 'flaot'; the nearest is 'float'"},
  };
  for (const char* command : {"", "history", "regressions"}) {
    for (const auto& slip : kSlips) {
      std::vector<std::string> words = {"results", command, slip.flag};
      if (words[1].empty()) words.erase(words.begin() + 1);
      const absl::Status status = Run(words).status();
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kNotFound,
                                   HasSubstr(slip.message)));
      EXPECT_EQ(ExitCodeOf(status), ExitCode::kNotFound);
    }
  }
  // Nothing is wrong with names that have no such results yet: of a recipe that
  // is built in, a series of another thread count, and a job that goes on.
  EXPECT_THAT(Run({"results", "--recipe=fp32", "--variant=float"}), IsOk());
  EXPECT_EQ(out_, "No results match.\n");
  EXPECT_THAT(Run({"results", "--model=net.pb", "--threads=2"}), IsOk());
  farm_.has_no_jobs = false;
  farm_.job_filters.clear();
  EXPECT_THAT(Run({"results", "--model=new.pb", "--recipe=own"}), IsOk());
  EXPECT_THAT(farm_.job_filters, ElementsAre("model=new.pb", "recipe=own"));
  EXPECT_THAT(Run({"results", "--model=my net.pb"}), IsOk());
}

TEST_F(ResultCommandsTest, SqlPrintsWhatItGets) {
  farm_.sql_answer.add_columns("device");
  farm_.sql_answer.add_columns("n");
  v1::SqlRow& row = *farm_.sql_answer.add_rows();
  row.add_values()->set_text("pi4");
  row.add_values()->set_integer(7);
  ASSERT_THAT(Run({"sql", "SELECT 1", "-o", "csv", "--timeout=2s"}), IsOk());
  EXPECT_EQ(out_, "device,n\npi4,7\n");
  EXPECT_EQ(farm_.sql.sql(), "SELECT 1");
  EXPECT_EQ(farm_.sql.max_milliseconds(), 2000);
  row.add_values();
  EXPECT_THAT(Run({"sql", "SELECT 1"}),
              StatusIs(absl::StatusCode::kInternal, _));
}

TEST_F(ResultCommandsTest, OperatorsDeleteDevicesThatAreGone) {
  farm_.devices.emplace_back().mutable_info()->set_name("pi4");
  ASSERT_THAT(Run({"devices", "delete", "pi4"}), IsOk());
  EXPECT_EQ(farm_.deleted_devices, std::vector<std::string>{"pi4"});
  EXPECT_EQ(out_, "The device pi4 is deleted; its results stay.\n");
  EXPECT_FALSE(Run({"devices", "delete", "pi5"}).ok());
}

TEST_F(ResultCommandsTest, OperatorsChangeDevices) {
  farm_.devices.emplace_back().mutable_info()->set_name("pi4");
  farm_.devices[0].set_alert("has not reported for 3h");
  ASSERT_THAT(Run({"devices", "disable", "pi4", "--reason=hot"}), IsOk());
  EXPECT_EQ(farm_.device_changes[0].change(), v1::ChangeDeviceRequest::DISABLE);
  EXPECT_EQ(farm_.device_changes[0].reason(), "hot");
  EXPECT_THAT(out_, HasSubstr("ALERT: has not reported"));
  ASSERT_THAT(Run({"devices", "enable", "pi4"}), IsOk());
  ASSERT_THAT(Run({"devices", "retire", "pi4"}), IsOk());
  EXPECT_EQ(farm_.device_changes[2].change(), v1::ChangeDeviceRequest::RETIRE);
  ASSERT_THAT(Run({"devices", "reserve", "pi4", "--for=2h", "--tag=nightly"}),
              IsOk());
  EXPECT_EQ(farm_.device_changes[3].change(), v1::ChangeDeviceRequest::RESERVE);
  EXPECT_EQ(farm_.device_changes[3].duration().seconds(), 7200);
  EXPECT_EQ(farm_.device_changes[3].tag(), "nightly");
  EXPECT_THAT(
      Run({"devices", "reserve", "pi4"}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--for=2h")));
  ASSERT_THAT(Run({"devices"}), IsOk());
}

TEST_F(ResultCommandsTest, CompareShowsIntervals) {
  v1::CompareResultsResponse::Row& row = *farm_.comparison.add_rows();
  row.set_speedup(1.8);
  row.set_speedup_low(1.7);
  row.set_speedup_high(1.9);
  farm_.comparison.set_pairs(3);
  farm_.comparison.set_mean_speedup(2);
  farm_.comparison.set_mean_speedup_low(1.5);
  farm_.comparison.set_mean_speedup_high(2.5);
  ASSERT_THAT(Run({"compare", "j1", "j2"}), IsOk());
  EXPECT_THAT(out_, HasSubstr("1.80x (1.70x to 1.90x)"));
  EXPECT_THAT(out_, HasSubstr("Over 3 pairs A/B is 2.00x (1.50x to 2.50x)"));
  ASSERT_THAT(Run({"compare", "j1", "j2", "-o", "csv"}), IsOk());
  EXPECT_THAT(out_, HasSubstr("speedup_low,speedup_high"));
}

}  // namespace
}  // namespace optfarm::client_cli
