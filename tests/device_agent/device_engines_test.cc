// Runtimes of the device's owner: a fake TensorFlow Lite that does what its
// model's one word says, measured by the agent's driver, in its sandbox too.

#include "device_agent/device_engines.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/sandbox.h"
#include "base/subprocess.h"
#include "device_agent/benchmark_plan.h"
#include "device_agent/device_driver.h"
#include "device_agent/flags.h"
#include "rpc/task_process.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::device_agent {
namespace {

using ::optfarm::testing::FreshFolder;
using ::optfarm::testing::StatusIs;
using ::testing::HasSubstr;

constexpr char kFolderVariable[] = "OPTFARM_TEST_ENGINES_FOLDER";

// y = x + x.
constexpr char kDouble[] = R"(
node { name: "x" op: "Placeholder"
  attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: 1 } dim { size: 4 } } } } }
node { name: "y" op: "Add" input: "x" input: "x"
  attr { key: "T" value { type: DT_FLOAT } } }
versions { producer: 24 }
)";

Flags FlagsWithFake() {
  Flags flags;
  flags.threads = {1};
  flags.engines = {absl::StrCat("tflite:", OPTFARM_FAKE_TFLITE)};
  return flags;
}

// A lease of one graph for each word, which the fake runs as the word says.
class DeviceEnginesTest : public ::testing::Test {
 protected:
  DeviceEnginesTest() : folder_(FreshFolder()) {
    EXPECT_TRUE(folder_.Make().ok());
    v1::BenchmarkSpec& spec = *lease_.mutable_benchmark()->mutable_spec();
    spec.add_engines("tflite");
    spec.add_cpus(0);
    spec.set_min_runs(5);
    spec.mutable_min_time()->set_nanos(1'000'000);
    spec.mutable_max_time()->set_seconds(1);
  }

  void AddVariant(const std::string& name, const std::string& word) {
    v1::BenchmarkTask& task = *lease_.mutable_benchmark();
    const int i = task.variants_size();
    v1::BenchmarkVariant& variant = *task.add_variants();
    variant.set_name(name);
    variant.add_outputs()->set_name("y");
    const std::string graph = GraphPaths(lease_, folder_).back();
    EXPECT_TRUE(
        MakeFolders(JoinPath(folder_.in(), absl::StrCat("variant", i))).ok());
    tensorflow::GraphDef def;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kDouble, &def));
    EXPECT_TRUE(WriteFileAtomically(graph, def.SerializeAsString()).ok());
    if (word.empty()) return;
    variant.add_engine_models()->set_engine("tflite");
    EXPECT_TRUE(
        WriteFileAtomically(EnginePath(folder_, i, "tflite"), word).ok());
  }

  // Rows by variant, and the failures that rows tell of.
  void Expect(const v1::Completion& completion,
              const std::vector<std::string>& rows,
              const std::vector<std::string>& failures) {
    std::vector<std::string> found, told;
    for (const v1::Measurement& m : completion.benchmark().measurements()) {
      found.push_back(m.variant());
      for (const v1::EngineFailure& failure : m.engine_failures()) {
        told.push_back(absl::StrCat(m.variant(), ": ", failure.engine(), ": ",
                                    failure.reason()));
      }
    }
    EXPECT_EQ(found, rows) << completion.DebugString();
    ASSERT_EQ(told.size(), failures.size()) << completion.DebugString();
    for (size_t i = 0; i < told.size(); ++i) {
      EXPECT_THAT(told[i], HasSubstr(failures[i]));
    }
  }

  v1::Completion Measure(const Flags& flags) {
    EXPECT_TRUE(folder_.WriteLease(lease_).ok());
    auto completion = MakeLocalDriver(flags)->Measure(
        lease_, folder_, DeviceEngines::Start(flags, folder_),
        [](double, absl::string_view) {});
    EXPECT_TRUE(completion.ok()) << completion.status();
    return completion.ok() ? *std::move(completion) : v1::Completion();
  }

  const rpc::TaskFolder folder_;
  v1::LeasedTask lease_;
};

TEST_F(DeviceEnginesTest, MeasuresBesideOursAndCompares) {
  AddVariant("float", "double");
  AddVariant("int8", "double");
  Flags flags = FlagsWithFake();
  flags.no_sandbox = true;
  const v1::Completion completion = Measure(flags);
  Expect(completion, {"float", "int8", "float@tflite", "int8@tflite"}, {});
  const v1::Measurement& theirs = completion.benchmark().measurements(3);
  EXPECT_EQ(theirs.engine(), "tflite 9.9.9 -fake");
  EXPECT_TRUE(theirs.numeric_check().passed());
  EXPECT_EQ(completion.benchmark().measurements(0).engine(), "");
}

TEST_F(DeviceEnginesTest, AnEngineThatFailsCostsItsRowAlone) {
  AddVariant("float", "");
  AddVariant("int8", "crash");
  lease_.mutable_benchmark()->mutable_spec()->add_engines("onnxruntime");
  Flags flags = FlagsWithFake();
  flags.no_sandbox = true;
  Expect(Measure(flags), {"float", "int8"},
         {"int8: tflite: tflite: it was killed by signal",
          "int8: onnxruntime: onnxruntime: the result could not be written"});
  lease_.mutable_benchmark()
      ->mutable_variants(1)
      ->add_engine_models()
      ->set_engine("onnxruntime");
  flags.engines = {};
  Expect(Measure(flags), {"float", "int8"},
         {"int8: tflite: tflite: the device does not have it",
          "int8: onnxruntime: onnxruntime: the device does not have it"});
}

TEST_F(DeviceEnginesTest, IsDescribedWhenTheAgentStarts) {
  Flags flags = FlagsWithFake();
  flags.no_sandbox = true;
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto infos, DescribeEngines(flags));
  ASSERT_EQ(infos.size(), 1u);
  EXPECT_EQ(infos[0].name(), "tflite");
  EXPECT_EQ(infos[0].version(), "9.9.9 -fake");
  flags.engines.push_back(flags.engines[0]);
  EXPECT_THAT(DescribeEngines(flags),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("tflite is given twice")));
  flags.engines = {absl::StrCat("onnxruntime:", OPTFARM_FAKE_TFLITE)};
  EXPECT_FALSE(DescribeEngines(flags).ok());
}

TEST(EnclosedEngines, DISABLED_IsTheChild) {
  Flags flags = FlagsWithFake();
  const char* folder = std::getenv(kFolderVariable);
  const DeviceEngines engines =
      DeviceEngines::Start(flags, rpc::TaskFolder(folder));
  const auto work = [&](const v1::LeasedTask& lease,
                        const rpc::TaskFolder& where,
                        const rpc::ChildProgress& progress) {
    return MakeLocalDriver(flags)->Measure(lease, where, engines, progress);
  };
  ::_exit(rpc::RunTaskChild(folder, work, SandboxFor(flags)));
}

TEST_F(DeviceEnginesTest, MeasuresInTheSandbox) {
  const SandboxForce force = ProbeSandbox();
  if (!force.complete()) {
    GTEST_SKIP() << "this kernel has " << force.ToString();
  }
  AddVariant("float", "double");
  AddVariant("int8", "crash");
  OPTFARM_ASSERT_OK(folder_.WriteLease(lease_));
  ::setenv(kFolderVariable, folder_.path().c_str(), 1);
  rpc::TaskProcessOptions options;
  options.argv = {OwnProgramPath(),
                  "--gtest_filter=EnclosedEngines.DISABLED_IsTheChild",
                  "--gtest_also_run_disabled_tests"};
  const v1::Completion completion = rpc::RunTaskProcess(options, folder_);
  Expect(completion, {"float", "int8", "float@tflite"},
         {"int8: tflite: tflite: it was killed by signal"});
}

}  // namespace
}  // namespace optfarm::device_agent
