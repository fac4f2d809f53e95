#include "engine/benchmark/benchmark.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/files.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::benchmark {
namespace {

using ::optfarm::testing::FreshFolder;
using ::optfarm::testing::StatusIs;
using ::optfarm::testing::TestDataPath;
using ::testing::AllOf;
using ::testing::HasSubstr;

// softmax(x * w) of 4 numbers.
constexpr char kSmallGraph[] = R"(
node { name: "x" op: "Placeholder"
  attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: -1 } dim { size: 4 } } } } }
node { name: "w" op: "Const"
  attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "value" value { tensor { dtype: DT_FLOAT
    tensor_shape { dim { size: 4 } dim { size: 4 } } float_val: 0.5 } } } }
node { name: "product" op: "MatMul" input: "x" input: "w"
  attr { key: "T" value { type: DT_FLOAT } } }
node { name: "y" op: "Softmax" input: "product"
  attr { key: "T" value { type: DT_FLOAT } } }
versions { producer: 24 }
)";

std::string SmallGraph() {
  const std::string path = JoinPath(FreshFolder(), "small.pbtxt");
  EXPECT_TRUE(WriteFileAtomically(path, kSmallGraph).ok());
  return path;
}

BenchmarkRequest QuickRequest(const std::string& path) {
  BenchmarkRequest request;
  request.variants = {{"float", path, {}, {}}, {"same", path, {}, {}}};
  request.threads = {1, 2};
  request.min_runs = 12;
  request.min_time = absl::ZeroDuration();
  request.device = "here";
  return request;
}

TEST(BenchmarkTest, RunsUntilTheMedianIsSure) {
  BenchmarkRequest request = QuickRequest(SmallGraph());
  request.threads = {1};
  // Any twelve runs are as sure as that.
  request.precision = 0.999;
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto measurements,
                               RunBenchmark(request, nullptr));
  for (const v1::Measurement& m : measurements) {
    EXPECT_LE(m.median_low_us(), m.median_us());
    EXPECT_GE(m.median_high_us(), m.median_us());
    for (const std::string& reason : m.noise_reasons()) {
      EXPECT_THAT(reason, ::testing::Not(HasSubstr("was asked for")));
    }
  }
  // The time is over long before the least number of runs, and the measurement
  // says so.
  request.precision = 1e-9;
  request.min_runs = 1000000;
  request.max_time = absl::Milliseconds(5);
  OPTFARM_ASSERT_OK_AND_ASSIGN(measurements, RunBenchmark(request, nullptr));
  for (const v1::Measurement& m : measurements) {
    EXPECT_TRUE(m.noisy());
    EXPECT_THAT(m.noise_reasons(),
                ::testing::Contains(HasSubstr("was asked for")));
  }
  request.precision = 1;
  EXPECT_THAT(
      RunBenchmark(request, nullptr),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("precision")));
}

TEST(BenchmarkTest, MeasuresEachVariantWithEachThreadCount) {
  double last = 0;
  const auto progress = [&last](const BenchmarkProgress& p) {
    EXPECT_GE(p.fraction, last);
    last = p.fraction;
    return absl::OkStatus();
  };
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const std::vector<v1::Measurement> all,
      RunBenchmark(QuickRequest(SmallGraph()), progress));
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].variant(), "float");
  EXPECT_EQ(all[1].variant(), "same");
  EXPECT_EQ(all[2].threads(), 2);
  for (const v1::Measurement& m : all) {
    EXPECT_EQ(m.runs(), 12);
    EXPECT_EQ(m.samples_us_size(), 12);
    EXPECT_GT(m.first_us(), 0);
    EXPECT_GT(m.load_us(), 0);
    EXPECT_LE(m.min_us(), m.median_us());
    EXPECT_LE(m.median_us(), m.p90_us());
    EXPECT_EQ(m.model().sha256().size(), 64u);
    EXPECT_EQ(m.device(), "here");
    EXPECT_GT(m.op_times_size(), 0);
    EXPECT_GT(m.before().cores(), 0);
    EXPECT_THAT(m.inputs_fed(), HasSubstr("seed 1"));
    EXPECT_EQ(m.noisy(), m.noise_reasons_size() > 0);
  }
  EXPECT_EQ(last, 1);
}

TEST(BenchmarkTest, StopsAtTheLongestTime) {
  BenchmarkRequest request = QuickRequest(SmallGraph());
  request.threads = {1};
  request.min_runs = 1'000'000;
  request.max_time = absl::Milliseconds(5);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const std::vector<v1::Measurement> all,
                               RunBenchmark(request, nullptr));
  EXPECT_LT(all[0].runs(), 1'000'000);
}

TEST(BenchmarkTest, EndsWhenProgressSaysSo) {
  const auto cancel = [](const BenchmarkProgress&) {
    return absl::CancelledError("enough");
  };
  EXPECT_THAT(RunBenchmark(QuickRequest(SmallGraph()), cancel),
              StatusIs(absl::StatusCode::kCancelled, "enough"));
}

TEST(BenchmarkTest, RefusesSillyRequests) {
  EXPECT_THAT(RunBenchmark({}, nullptr),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("graph")));
  BenchmarkRequest request = QuickRequest(SmallGraph());
  request.threads = {0};
  EXPECT_THAT(
      RunBenchmark(request, nullptr),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("threads is 0")));
  request = QuickRequest(SmallGraph());
  request.min_runs = 0;
  EXPECT_FALSE(RunBenchmark(request, nullptr).ok());
  request = QuickRequest(SmallGraph());
  request.input_files = {{"nobody", "/nowhere.npy"}};
  EXPECT_THAT(RunBenchmark(request, nullptr),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("'nobody'"), HasSubstr("'float'"))));
}

TEST(BenchmarkTest, NamesTheVariantThatCannotBeLoaded) {
  BenchmarkRequest request = QuickRequest(SmallGraph());
  request.variants[1].graph_path = "/nowhere/int8.pb";
  EXPECT_THAT(
      RunBenchmark(request, nullptr),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("/nowhere/int8.pb")));
}

TEST(BenchmarkTest, MeasuresRealModels) {
  OPTFARM_REQUIRE_TEST_DATA();
  BenchmarkRequest request;
  request.variants = {{"float",
                       TestDataPath("models/conv_actions_frozen/"
                                    "conv_actions_frozen.pb"),
                       {},
                       {}}};
  request.threads = {1};
  request.min_runs = 3;
  request.min_time = absl::ZeroDuration();
  OPTFARM_ASSERT_OK_AND_ASSIGN(const std::vector<v1::Measurement> all,
                               RunBenchmark(request, nullptr));
  EXPECT_EQ(all[0].runs(), 3);
  EXPECT_GT(all[0].slowest_nodes_size(), 3);
}

TEST(BenchmarkTest, TellsEveryStepWhereThatIsAskedFor) {
  BenchmarkRequest request = QuickRequest(SmallGraph());
  request.threads = {1};
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto measurements,
                               RunBenchmark(request, nullptr));
  EXPECT_EQ(measurements[0].steps_size(), 0);
  request.step_runs = 5;
  OPTFARM_ASSERT_OK_AND_ASSIGN(measurements, RunBenchmark(request, nullptr));
  const v1::Measurement& measured = measurements[0];
  ASSERT_GT(measured.steps_size(), 0);
  double multiply_adds = 0;
  std::vector<std::string> nodes;
  for (const v1::StepTime& step : measured.steps()) {
    EXPECT_GT(step.median_us(), 0);
    EXPECT_EQ(step.work().key().size(), 24u);
    multiply_adds += step.work().multiply_adds();
    nodes.insert(nodes.end(), step.work().nodes().begin(),
                 step.work().nodes().end());
  }
  EXPECT_EQ(multiply_adds, 16);
  EXPECT_THAT(nodes, ::testing::IsSupersetOf({"product", "y"}));
  EXPECT_FALSE(measured.before().kernels().empty());
}

}  // namespace
}  // namespace optfarm::benchmark
