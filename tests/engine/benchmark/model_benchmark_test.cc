#include "engine/benchmark/model_benchmark.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "base/files.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::benchmark {
namespace {

using ::optfarm::testing::FreshFolder;
using ::optfarm::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

// y = x * w with 4 numbers; `init` waits for y.
constexpr char kGraph[] = R"(
node { name: "x" op: "Placeholder"
  attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: 1 } dim { size: 4 } } } } }
node { name: "w" op: "Const"
  attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "value" value { tensor { dtype: DT_FLOAT
    tensor_shape { dim { size: 4 } dim { size: 4 } } float_val: 0.5 } } } }
node { name: "y" op: "MatMul" input: "x" input: "w"
  attr { key: "T" value { type: DT_FLOAT } } }
node { name: "z" op: "Relu" input: "x"
  attr { key: "T" value { type: DT_FLOAT } } }
node { name: "done" op: "NoOp" input: "^z" }
versions { producer: 24 }
)";

class ModelBenchmarkTest : public ::testing::Test {
 protected:
  ModelBenchmarkTest() : folder_(FreshFolder()) {
    request_.model.name = "graph";
    request_.model.graph_path = JoinPath(folder_, "m.pbtxt");
    request_.model.outputs = {"y"};
    EXPECT_TRUE(WriteFileAtomically(request_.model.graph_path, kGraph).ok());
    request_.timed.max_runs = 3;
    request_.traced->max_runs = 2;
    request_.log = [this](absl::string_view line) {
      lines_.emplace_back(line);
    };
  }

  void FeedX(std::vector<double> values) {
    v1::TensorSpec& x = request_.model.inputs.emplace_back();
    x.set_name("x");
    request_.model.input_values = {std::move(values)};
  }

  const std::string folder_;
  ModelBenchmarkRequest request_;
  std::vector<std::string> lines_;
};

TEST_F(ModelBenchmarkTest, RunsThreePhasesAndTellsThem) {
  request_.kept_traces = 1;
  const auto result = RunModelBenchmark(request_);
  OPTFARM_ASSERT_OK(result);
  EXPECT_EQ(result->warmup.count(), 1);
  EXPECT_EQ(result->timed.count(), 3);
  EXPECT_EQ(result->traced.count(), 2);
  EXPECT_EQ(result->traces.size(), 1u);
  EXPECT_EQ(result->profile.run_micros().count(), 2);
  EXPECT_EQ(result->measurement.runs(), 3);
  EXPECT_EQ(result->measurement.op_times(0).op(), "MatMul");
  EXPECT_EQ(result->flops.flops, 2 * 4 * 4);
  EXPECT_THAT(
      absl::StrJoin(lines_, "\n"),
      AllOf(HasSubstr("Running benchmark for max 1 iterations, max -1 seconds "
                      "without detailed stat logging, with -1s sleep between "
                      "inferences\ncount=1 curr="),
            HasSubstr("Running benchmark for max 3 iterations, max 10 seconds "
                      "without detailed stat logging"),
            HasSubstr("Running benchmark for max 2 iterations, max 10 seconds "
                      "with detailed stat logging"),
            HasSubstr("\nAverage inference timings in us: Warmup: ")));
}

TEST_F(ModelBenchmarkTest, ProfileMayBeLeftOut) {
  request_.traced.reset();
  request_.warmup_runs = 0;
  const auto result = RunModelBenchmark(request_);
  OPTFARM_ASSERT_OK(result);
  EXPECT_TRUE(result->traced.empty());
  EXPECT_TRUE(result->warmup.empty());
  EXPECT_EQ(result->measurement.op_times_size(), 0);
}

TEST_F(ModelBenchmarkTest, TargetsRunWithoutBeingFetched) {
  request_.model.targets = {"done"};
  const auto result = RunModelBenchmark(request_);
  OPTFARM_ASSERT_OK(result);
  bool ran = false;
  for (const NodeStats& node : result->profile.nodes())
    ran |= node.op == "Relu";
  EXPECT_TRUE(ran);
}

// y = x + v, where only the initializer gives v a value.
constexpr char kVariableGraph[] = R"(
node { name: "x" op: "Placeholder"
  attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: 1 } } } } }
node { name: "v" op: "VariableV2"
  attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: 1 } } } } }
node { name: "zero" op: "Const"
  attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "value" value { tensor { dtype: DT_FLOAT
    tensor_shape { dim { size: 1 } } float_val: 0 } } } }
node { name: "assign" op: "Assign" input: "v" input: "zero"
  attr { key: "T" value { type: DT_FLOAT } } }
node { name: "init" op: "NoOp" input: "^assign" }
node { name: "y" op: "Add" input: "x" input: "v"
  attr { key: "T" value { type: DT_FLOAT } } }
versions { producer: 24 }
)";

TEST_F(ModelBenchmarkTest, InitOpsRunOnceAfterLoading) {
  EXPECT_TRUE(
      WriteFileAtomically(request_.model.graph_path, kVariableGraph).ok());
  EXPECT_FALSE(RunModelBenchmark(request_).ok());
  request_.model.init_ops = {"init"};
  OPTFARM_ASSERT_OK(RunModelBenchmark(request_));
  request_.model.init_ops = {"none"};
  EXPECT_THAT(RunModelBenchmark(request_),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none")));
}

TEST_F(ModelBenchmarkTest, GivenValuesComeFirst) {
  FeedX({1, 2});
  const auto result = RunModelBenchmark(request_);
  OPTFARM_ASSERT_OK(result);
  EXPECT_EQ(result->measurement.inputs_fed(), "given values and zeros");
  EXPECT_EQ(result->first_input_bytes, 16);
}

TEST_F(ModelBenchmarkTest, MoreValuesThanElementsAreRefused) {
  FeedX({1, 2, 3, 4, 5});
  EXPECT_THAT(RunModelBenchmark(request_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("5 values for [1,4]")));
}

TEST_F(ModelBenchmarkTest, LimitsThatNeverEndAreRefused) {
  request_.timed = {0, absl::InfiniteDuration(), 0, absl::ZeroDuration()};
  EXPECT_THAT(
      RunModelBenchmark(request_),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("never end")));
}

TEST_F(ModelBenchmarkTest, ReportsHaveAnEntryForEachPart) {
  const auto result = RunModelBenchmark(request_);
  OPTFARM_ASSERT_OK(result);
  const std::string prefix = JoinPath(folder_, "r.");
  OPTFARM_ASSERT_OK(WriteReports(*result, prefix, "m"));
  for (const char* name : {"m", "m_meta-init", "m_meta-first-inference",
                           "m_meta-init-plus-first-inference", "m_MatMul"}) {
    EXPECT_TRUE(Exists(prefix + name)) << name;
  }
  EXPECT_THAT(WriteReports(*result, prefix, "m"),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("m")));
}

TEST(RunLimitsTest, EachLimitEndsAPhaseAfterTheRunThatReachesIt) {
  const absl::Duration second = absl::Seconds(1);
  const RunLimits original{10, 5 * second, 0, absl::ZeroDuration()};
  EXPECT_FALSE(IsEnough(original, 0, absl::ZeroDuration()));
  EXPECT_FALSE(IsEnough(original, 9, second));
  EXPECT_TRUE(IsEnough(original, 10, second));
  EXPECT_TRUE(IsEnough(original, 1, 5 * second));
  // At least one run, however little time there is.
  EXPECT_FALSE(IsEnough({0, absl::ZeroDuration(), 0, {}}, 0, {}));
  const RunLimits least{0, absl::InfiniteDuration(), 10, second};
  EXPECT_FALSE(IsEnough(least, 10, second / 2));
  EXPECT_FALSE(IsEnough(least, 9, second));
  EXPECT_TRUE(IsEnough(least, 10, second));
}

}  // namespace
}  // namespace optfarm::benchmark
