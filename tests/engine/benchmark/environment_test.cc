#include "engine/benchmark/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::benchmark {
namespace {

using ::testing::ElementsAre;

void Write(const std::string& root, const std::string& path,
           const std::string& text) {
  const std::string full = root + path;
  OPTFARM_ASSERT_OK(MakeFolders(full.substr(0, full.rfind('/'))));
  OPTFARM_ASSERT_OK(WriteFileAtomically(full, text));
}

TEST(EnvironmentTest, ReadsABoardsFiles) {
  const std::string root = testing::FreshFolder();
  Write(root, "/proc/cpuinfo",
        "processor\t: 0\nFeatures\t: fp asimd asimddp crc32\n\n"
        "Model\t\t: Raspberry Pi 4 Model B Rev 1.4\n");
  Write(root, "/proc/loadavg", "0.25 0.10 0.05 1/100 42\n");
  Write(root, "/proc/meminfo",
        "MemTotal:        3884376 kB\nMemAvailable:    3000000 kB\n");
  Write(root, "/etc/os-release", "NAME=x\nPRETTY_NAME=\"Debian 12\"\n");
  const std::string cpu = "/sys/devices/system/cpu/cpu";
  Write(root, cpu + "0/cpufreq/scaling_governor", "ondemand\n");
  Write(root, cpu + "0/cpufreq/scaling_cur_freq", "600000\n");
  Write(root, cpu + "1/cpufreq/scaling_cur_freq", "1500000\n");
  Write(root, "/sys/class/thermal/thermal_zone0/temp", "48312\n");
  Write(root, "/sys/class/thermal/thermal_zone1/temp", "51000\n");
  const v1::Environment environment = ReadEnvironment("build 1", root);
  EXPECT_EQ(environment.cpu_model(), "Raspberry Pi 4 Model B Rev 1.4");
  EXPECT_THAT(environment.cpu_features(), ElementsAre("asimd", "asimddp"));
  EXPECT_EQ(environment.governor(), "ondemand");
  EXPECT_THAT(environment.cpu_freq_khz(), ElementsAre(600000, 1500000));
  EXPECT_EQ(environment.temperature_mc(), 51000);
  EXPECT_DOUBLE_EQ(environment.load_average(), 0.25);
  EXPECT_EQ(environment.memory_total_bytes(), int64_t{3884376} * 1024);
  EXPECT_EQ(environment.os(), "Debian 12");
  EXPECT_EQ(environment.build_version(), "build 1");
  EXPECT_FALSE(environment.throttled());
}

TEST(EnvironmentTest, LeavesOutWhatIsNotThere) {
  const v1::Environment environment =
      ReadEnvironment("", testing::FreshFolder());
  EXPECT_EQ(environment.cpu_model(), "");
  EXPECT_FALSE(environment.has_temperature_mc());
  EXPECT_EQ(environment.memory_total_bytes(), 0);
}

TEST(EnvironmentTest, PeakResidentGrowsWithMemory) {
  if (!ResetPeakResident()) GTEST_SKIP() << "the kernel does not reset peaks";
  const int64_t before = PeakResidentBytes();
  const std::string large(64 << 20, 'x');
  EXPECT_GT(PeakResidentBytes(), before + (32 << 20)) << large.size();
}

}  // namespace
}  // namespace optfarm::benchmark
