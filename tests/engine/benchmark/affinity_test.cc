// Measurements run on the processors that were asked for.

#include "engine/benchmark/affinity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::benchmark {
namespace {

using ::optfarm::testing::FreshFolder;
using ::optfarm::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(AffinityTest, PinsThisThreadAndThoseItStarts) {
  // In a thread of its own, which takes the change with it.
  std::thread([] {
    cpu_set_t allowed;
    ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
    int cpu = 0;
    while (!CPU_ISSET(static_cast<size_t>(cpu), &allowed)) ++cpu;
    ASSERT_TRUE(PinToCpus({cpu}).ok());
    int started_on = -1;
    std::thread([&] { started_on = sched_getcpu(); }).join();
    EXPECT_EQ(started_on, cpu);
  }).join();
}

TEST(AffinityTest, RefusesProcessorsThatAreNotThere) {
  EXPECT_TRUE(PinToCpus({}).ok());
  EXPECT_THAT(PinToCpus({1023}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("1023")));
  EXPECT_FALSE(PinToCpus({-1}).ok());
  EXPECT_FALSE(PinToCpus({1 << 20}).ok());
}

TEST(AffinityTest, RefusesAListOfWhichOneIsNotThere) {
  std::thread([] {
    cpu_set_t before, after;
    ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
    int cpu = 0;
    while (!CPU_ISSET(static_cast<size_t>(cpu), &before)) ++cpu;
    EXPECT_THAT(PinToCpus({cpu, 1023}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr(absl::StrCat(cpu, ",1023"))));
    ASSERT_EQ(sched_getaffinity(0, sizeof(after), &after), 0);
    EXPECT_TRUE(CPU_EQUAL(&after, &before));
  }).join();
}

TEST(AffinityTest, FindsTheBigOnes) {
  const std::string root = FreshFolder();
  for (int cpu = 0; cpu < 4; ++cpu) {
    const std::string folder =
        absl::StrCat(root, "/sys/devices/system/cpu/cpu", cpu, "/cpufreq");
    ASSERT_TRUE(MakeFolders(folder).ok());
    ASSERT_TRUE(WriteFileAtomically(folder + "/cpuinfo_max_freq",
                                    cpu < 2 ? "1800000\n" : "2800000\n")
                    .ok());
  }
  EXPECT_THAT(BigCpus(root), ElementsAre(2, 3));
  EXPECT_THAT(BigCpus(root + "/nothing"), IsEmpty());
}

TEST(AffinityTest, ReadsLists) {
  EXPECT_THAT(*ParseCpus("4,5"), ElementsAre(4, 5));
  EXPECT_THAT(*ParseCpus(""), IsEmpty());
  EXPECT_FALSE(ParseCpus("4,x").ok());
  EXPECT_FALSE(ParseCpus("-1").ok());
}

}  // namespace
}  // namespace optfarm::benchmark
