// A benchmark in its sandbox: nothing breaks out of it, and it measures. The
// child is this test program again, running the one test that is the child.

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "base/files.h"
#include "base/sandbox.h"
#include "base/status_macros.h"
#include "base/subprocess.h"
#include "device_agent/benchmark_plan.h"
#include "device_agent/device_driver.h"
#include "device_agent/flags.h"
#include "engine/benchmark/environment.h"
#include "rpc/task_process.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tests/support/break_out.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::device_agent {
namespace {

using ::testing::ElementsAre;

constexpr char kFolderVariable[] = "OPTFARM_TEST_BENCHMARK_FOLDER";
constexpr char kSecretVariable[] = "OPTFARM_TEST_SECRET";
// Where the child tells what worked.
constexpr char kWorked[] = "worked";

constexpr char kGraph[] = R"(
node { name: "x" op: "Placeholder"
  attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: 64 } } } } }
node { name: "y" op: "Relu" input: "x"
  attr { key: "T" value { type: DT_FLOAT } } }
versions { producer: 24 }
)";

TEST(EnclosedBenchmark, DISABLED_IsTheChild) {
  Flags flags;
  flags.threads = {1};
  benchmark::ResetPeakResident();
  const auto work = [&](const v1::LeasedTask& lease,
                        const rpc::TaskFolder& folder,
                        const rpc::ChildProgress& progress)
      -> absl::StatusOr<v1::Completion> {
    const std::vector<std::string> worked =
        testing::BreakOut(JoinPath(folder.in(), "variant0"), folder.out(),
                          std::getenv(kSecretVariable));
    OPTFARM_RETURN_IF_ERROR(WriteFileAtomically(JoinPath(folder.out(), kWorked),
                                                absl::StrJoin(worked, ", ")));
    return MakeLocalDriver(flags)->Measure(lease, folder, {}, progress);
  };
  ::_exit(
      rpc::RunTaskChild(std::getenv(kFolderVariable), work, SandboxFor(flags)));
}

TEST(SandboxTest, OnlyWhatTalksToAdbIsNotKeptIn) {
  Flags flags;
  EXPECT_EQ(SandboxFor(flags), rpc::ChildSandbox::kFull);
  flags.no_sandbox = true;
  EXPECT_EQ(SandboxFor(flags), rpc::ChildSandbox::kNone);
  flags.no_sandbox = false;
  flags.driver = "adb";
  EXPECT_EQ(SandboxFor(flags), rpc::ChildSandbox::kNone);
}

TEST(EnclosedBenchmarkTest, MeasuresAndBreaksOutOfNothing) {
  const SandboxForce force = ProbeSandbox();
  if (!force.complete()) {
    GTEST_SKIP() << "this kernel has " << force.ToString();
  }
  const std::string elsewhere = testing::FreshFolder();
  const std::string secret = JoinPath(elsewhere, "token");
  OPTFARM_ASSERT_OK(MakeFolders(elsewhere));
  OPTFARM_ASSERT_OK(WriteFileAtomically(secret, "oft_secret"));
  ::setenv(kSecretVariable, secret.c_str(), 1);

  const rpc::TaskFolder folder(testing::FreshFolder());
  OPTFARM_ASSERT_OK(folder.Make());
  ::setenv(kFolderVariable, folder.path().c_str(), 1);
  v1::LeasedTask lease;
  v1::BenchmarkTask& task = *lease.mutable_benchmark();
  v1::BenchmarkVariant& variant = *task.add_variants();
  variant.set_name("float");
  variant.mutable_model()->set_name("model.pbtxt");
  variant.add_outputs()->set_name("y");
  task.mutable_spec()->add_cpus(0);
  task.mutable_spec()->set_min_runs(5);
  task.mutable_spec()->mutable_min_time()->set_nanos(1'000'000);
  task.mutable_spec()->mutable_max_time()->set_seconds(1);
  const std::string graph = GraphPaths(lease, folder)[0];
  OPTFARM_ASSERT_OK(MakeFolders(JoinPath(folder.in(), "variant0")));
  tensorflow::GraphDef relu;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(kGraph, &relu));
  OPTFARM_ASSERT_OK(WriteFileAtomically(graph, relu.SerializeAsString()));
  // What BreakOut would like to change.
  OPTFARM_ASSERT_OK(
      WriteFileAtomically(JoinPath(folder.in(), "variant0/model.pb"), "x"));
  OPTFARM_ASSERT_OK(folder.WriteLease(lease));

  rpc::TaskProcessOptions options;
  options.argv = {OwnProgramPath(),
                  "--gtest_filter=EnclosedBenchmark.DISABLED_IsTheChild",
                  "--gtest_also_run_disabled_tests"};
  const v1::Completion completion = rpc::RunTaskProcess(options, folder);
  ASSERT_EQ(completion.benchmark().measurements_size(), 1)
      << completion.DebugString() << ReadFile(folder.log()).value_or("");
  const v1::Measurement& m = completion.benchmark().measurements(0);
  EXPECT_GE(m.runs(), 5);
  EXPECT_GT(m.median_us(), 0);
  EXPECT_GT(m.peak_memory_bytes(), 0);
  EXPECT_THAT(m.cpu_affinity(), ElementsAre(0));
  EXPECT_FALSE(m.before().cpu_model().empty());
  EXPECT_GT(m.after().memory_total_bytes(), 0);
  EXPECT_EQ(ReadFile(JoinPath(folder.out(), kWorked)).value_or("?"), "");
  EXPECT_EQ(ReadFile(secret).value_or(""), "oft_secret");
}

}  // namespace
}  // namespace optfarm::device_agent
