#include "engine/benchmark/noise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optfarm::benchmark {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Summary Quiet() {
  Summary summary;
  summary.median = 1000;
  summary.mad = 10;
  summary.p90 = 1100;
  return summary;
}

v1::Environment Calm() {
  v1::Environment environment;
  environment.set_cores(4);
  environment.add_cpu_freq_khz(2'000'000);
  environment.set_temperature_mc(50'000);
  return environment;
}

TEST(NoiseTest, AQuietRunHasNoReasons) {
  EXPECT_THAT(NoiseReasons(Quiet(), 4, Calm(), Calm()), IsEmpty());
}

TEST(NoiseTest, NamesWideSpreadAndSlowTail) {
  Summary summary = Quiet();
  summary.mad = 140;
  summary.p90 = 2000;
  EXPECT_THAT(NoiseReasons(summary, 1, Calm(), Calm()),
              ElementsAre(HasSubstr("14.0 %"), HasSubstr("2.0 times")));
}

TEST(NoiseTest, NamesWhatTheMachineDid) {
  v1::Environment before = Calm();
  before.set_load_average(3.9);
  v1::Environment after = Calm();
  after.set_cpu_freq_khz(0, 1'500'000);
  after.set_temperature_mc(83'000);
  after.set_throttled(true);
  EXPECT_THAT(NoiseReasons(Quiet(), 2, before, after),
              ElementsAre(HasSubstr("from 2000 to 1500 MHz"),
                          HasSubstr("from 50 to 83 degrees"),
                          HasSubstr("3.9 of 4 cores"), HasSubstr("throttled")));
}

TEST(NoiseTest, UnknownConditionsAreNoReasons) {
  EXPECT_THAT(NoiseReasons(Quiet(), 4, v1::Environment(), v1::Environment()),
              IsEmpty());
}

}  // namespace
}  // namespace optfarm::benchmark
