// A benchmark lease becomes files, and leases that make no sense are refused.

#include "device_agent/benchmark_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/status_matchers.h"

namespace optfarm::device_agent {
namespace {

using ::optfarm::testing::IsOk;
using ::optfarm::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::LeasedTask Lease() {
  v1::LeasedTask lease;
  v1::BenchmarkTask& task = *lease.mutable_benchmark();
  task.set_device("pi4");
  task.add_variants()->set_name("float");
  task.add_variants()->set_name("../odd name");
  return lease;
}

TEST(BenchmarkPlanTest, EachVariantHasItsOwnFile) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto inputs,
                               BenchmarkInputs(Lease(), "pi4"));
  ASSERT_EQ(inputs.size(), 2u);
  for (const rpc::TaskInput& input : inputs) {
    EXPECT_THAT(rpc::CheckRelativePath(input.path), IsOk());
  }
  EXPECT_THAT(
      GraphPaths(Lease(), rpc::TaskFolder("/t")),
      ElementsAre("/t/in/" + inputs[0].path, "/t/in/" + inputs[1].path));
}

TEST(BenchmarkPlanTest, FetchesModelsForTheEnginesThatThereAre) {
  v1::LeasedTask lease = Lease();
  v1::BenchmarkVariant& variant =
      *lease.mutable_benchmark()->mutable_variants(1);
  for (const char* engine : {"onnxruntime", "tflite", "../other"}) {
    variant.add_engine_models()->set_engine(engine);
  }
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto inputs,
                               BenchmarkInputs(lease, "pi4", {"onnxruntime"}));
  ASSERT_EQ(inputs.size(), 3u);
  EXPECT_EQ("/t/in/" + inputs[2].path,
            EnginePath(rpc::TaskFolder("/t"), 1, "onnxruntime"));
  variant.add_engine_models()->set_engine("onnxruntime");
  EXPECT_THAT(
      BenchmarkInputs(lease, "pi4", {"onnxruntime"}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("two models")));
}

TEST(BenchmarkPlanTest, RefusesLeasesThatMakeNoSense) {
  EXPECT_THAT(BenchmarkInputs(Lease(), "pi5"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'pi5'")));
  v1::LeasedTask lease = Lease();
  lease.mutable_benchmark()->add_variants()->set_name("float");
  EXPECT_THAT(
      BenchmarkInputs(lease, "pi4"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'float'")));
  lease.mutable_benchmark()->clear_variants();
  EXPECT_THAT(
      BenchmarkInputs(lease, "pi4"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("variants")));
  lease.mutable_optimize();
  EXPECT_THAT(BenchmarkInputs(lease, "pi4"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("something else")));
}

TEST(BenchmarkPlanTest, MeasurementsMustBeOfTheDevice) {
  v1::Completion completion;
  EXPECT_THAT(CheckMeasured("pi4", completion),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("no measure")));
  completion.mutable_benchmark()->add_measurements()->set_device("pi4");
  EXPECT_THAT(CheckMeasured("pi4", completion), IsOk());
  completion.mutable_benchmark()->add_measurements()->set_device("pi5");
  EXPECT_THAT(CheckMeasured("pi4", completion),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("'pi5'")));
}

}  // namespace
}  // namespace optfarm::device_agent
