// Phones behind one agent, as jobs see them. The phones are folders of a
// stand-in for adb; what runs on them is the real benchmark program, the one
// for Arm under qemu where it was built (FindArmAgent).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/integration/farm.h"
#include "tests/integration/phones.h"

namespace optfarm::integration {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

class PhoneFarmTest : public ::testing::Test {
 protected:
  std::unique_ptr<Program> StartAgent() {
    return farm_.StartAgent("lab", phones_.AgentFlags());
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

  const Phones phones_ = Phones({"alpha", "beta", "gamma"});
  Farm farm_;
};

TEST_F(PhoneFarmTest, SeveralPhonesAreMeasuredAtOnceAndCheckTheirNumbers) {
  phones_.Write("gamma", "state", "unauthorized");
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
  phones_.Write("alpha", "faults", "reboot_run 1\n");
  const std::string job_id = farm_.Submit(MeasuredJob({"alpha"}));
  const std::string unplugged = phones_.Path("alpha/unplugged");
  ASSERT_TRUE(Await([&] { return Exists(unplugged); }));
  ASSERT_TRUE(AwaitState("alpha", v1::Device::OFFLINE));
  ASSERT_TRUE(RemoveAll(unplugged).ok());
  const v1::Job job = farm_.AwaitEnd(job_id);
  EXPECT_EQ(job.state(), v1::SUCCEEDED) << job.failure().DebugString();
  EXPECT_EQ(job.tasks(1).failed_attempts(), 1);
  EXPECT_EQ(job.measurements_size(), 2);
}

TEST_F(PhoneFarmTest, AnArmMachineIsMeasuredByItsOwnAgent) {
  const ArmAgent arm = FindArmAgent();
  if (!arm.is_there())
    GTEST_SKIP() << "scripts/test without arguments builds it";
  const auto worker = farm_.StartWorker("w1");
  const auto agent = farm_.StartParticipant("pi", arm.Command());
  ASSERT_TRUE(AwaitState("pi", v1::Device::AVAILABLE));
  const v1::Job job = farm_.AwaitEnd(farm_.Submit(MeasuredJob({"pi"})));
  EXPECT_EQ(job.state(), v1::SUCCEEDED) << job.failure().DebugString();
  ASSERT_EQ(job.measurements_size(), 2);
  for (const v1::Measurement& m : job.measurements()) {
    EXPECT_THAT(m.before().kernel(),
                AnyOf(HasSubstr("aarch64"), HasSubstr("arm")));
    EXPECT_TRUE(m.numeric_check().passed()) << m.numeric_check().message();
  }
  EXPECT_EQ(agent->Terminate().exit_code, 0);
}

}  // namespace
}  // namespace optfarm::integration
