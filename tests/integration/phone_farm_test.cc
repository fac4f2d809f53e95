// Phones behind one agent, as jobs see them. The phones are folders of a
// stand-in for adb; what runs on them is the real benchmark program.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>

#include "tests/integration/farm.h"

namespace optfarm::integration {
namespace {

using ::testing::HasSubstr;

class PhoneFarmTest : public ::testing::Test {
 protected:
  PhoneFarmTest() : folder_(testing::FreshFolder()) {
    ::setenv("FAKE_ADB_PHONES", PhonePath("").c_str(), 1);
    EXPECT_TRUE(MakeFolders(JoinPath(folder_, "programs")).ok());
    std::filesystem::create_symlink(
        testing::ProgramPath("optfarm-agent"),
        JoinPath(folder_, "programs/optfarm-agent-x86_64"));
    for (const std::string serial : {"alpha", "beta", "gamma"}) {
      EXPECT_TRUE(MakeFolders(PhonePath(serial)).ok());
      Write(serial, "props",
            "ro.product.model=Stand In\nro.product.cpu.abi=x86_64\n"
            "ro.build.version.release=13\n");
      Write(serial, "battery", "  level: 80\n  temperature: 300\n");
    }
  }

  std::string PhonePath(const std::string& name) const {
    return JoinPath(JoinPath(folder_, "phones"), name);
  }
  void Write(const std::string& serial, const std::string& name,
             const std::string& text) {
    EXPECT_TRUE(
        WriteFileAtomically(JoinPath(PhonePath(serial), name), text).ok());
  }
  std::unique_ptr<Program> StartAgent() {
    return farm_.StartAgent(
        "lab",
        {"--driver=adb",
         absl::StrCat("--adb=",
                      testing::SourcePath("tests/support/fake_adb.py")),
         absl::StrCat("--phone_programs=", JoinPath(folder_, "programs")),
         "--tags=lab-2"});
  }
  v1::JobSpec MeasuredJob(const std::vector<std::string>& phones) {
    v1::JobSpec spec = farm_.DigitsJob("int8");
    v1::BenchmarkSpec& benchmark = *spec.mutable_benchmark();
    for (const std::string& phone : phones) benchmark.add_devices(phone);
    benchmark.add_threads(1);
    benchmark.set_min_runs(20);
    benchmark.mutable_min_time()->set_nanos(1'000'000);
    benchmark.mutable_max_time()->set_seconds(5);
    return spec;
  }
  // Polls until the server sees the device so.
  bool AwaitState(const std::string& name, v1::Device::State state) {
    return Await([&] { return farm_.Device(name).state() == state; });
  }

  const std::string folder_;
  Farm farm_;
};

TEST_F(PhoneFarmTest, SeveralPhonesAreMeasuredAtOnceAndCheckTheirNumbers) {
  Write("gamma", "state", "unauthorized");
  const auto worker = farm_.StartWorker("w1");
  const auto agent = StartAgent();
  ASSERT_TRUE(AwaitState("alpha", v1::Device::AVAILABLE));
  ASSERT_TRUE(AwaitState("beta", v1::Device::AVAILABLE));
  ASSERT_TRUE(AwaitState("gamma", v1::Device::OFFLINE));
  EXPECT_THAT(farm_.Device("gamma").alert(), HasSubstr("unauthorized"));
  EXPECT_EQ(farm_.Device("alpha").health().battery_percent(), 80);
  EXPECT_EQ(farm_.Device("alpha").info().tags(0), "lab-2");
  const v1::Job job =
      farm_.AwaitEnd(farm_.Submit(MeasuredJob({"alpha", "beta"})));
  EXPECT_EQ(job.state(), v1::SUCCEEDED) << job.failure().DebugString();
  std::map<std::string, int> counts;
  for (const v1::Measurement& m : job.measurements()) {
    ++counts[m.device()];
    EXPECT_TRUE(m.has_numeric_check());
    EXPECT_TRUE(m.numeric_check().passed()) << m.numeric_check().message();
  }
  EXPECT_EQ(counts, (std::map<std::string, int>{{"alpha", 2}, {"beta", 2}}));
  EXPECT_EQ(agent->Terminate().exit_code, 0);
}

TEST_F(PhoneFarmTest, RebootInMidRunIsTriedAgainWhenThePhoneIsBack) {
  const auto worker = farm_.StartWorker("w1");
  const auto agent = StartAgent();
  ASSERT_TRUE(AwaitState("alpha", v1::Device::AVAILABLE));
  Write("alpha", "faults", "reboot_run 1\n");
  const std::string job_id = farm_.Submit(MeasuredJob({"alpha"}));
  const std::string unplugged = PhonePath("alpha/unplugged");
  ASSERT_TRUE(Await([&] { return Exists(unplugged); }));
  ASSERT_TRUE(AwaitState("alpha", v1::Device::OFFLINE));
  ASSERT_TRUE(RemoveAll(unplugged).ok());
  const v1::Job job = farm_.AwaitEnd(job_id);
  EXPECT_EQ(job.state(), v1::SUCCEEDED) << job.failure().DebugString();
  EXPECT_EQ(job.tasks(1).failed_attempts(), 1);
  EXPECT_EQ(job.measurements_size(), 2);
}

}  // namespace
}  // namespace optfarm::integration
