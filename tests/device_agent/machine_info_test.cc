// What is made of Linux's own words about a machine.

#include "device_agent/machine_info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/files.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::device_agent {
namespace {

using ::testing::ElementsAre;

class MachineInfoTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    const std::string full = JoinPath(root_, path);
    OPTFARM_ASSERT_OK(MakeFolders(full.substr(0, full.rfind('/'))));
    OPTFARM_ASSERT_OK(WriteFileAtomically(full, text));
  }

  const std::string root_ = testing::FreshFolder();
};

TEST_F(MachineInfoTest, ReadsAnArmBoard) {
  Write("proc/cpuinfo",
        "processor\t: 0\nFeatures\t: fp asimd evtstrm crc32 asimddp\n\n"
        "Hardware\t: BCM2835\nModel\t: Raspberry Pi 4 Model B Rev 1.4\n");
  Write("proc/device-tree/model",
        std::string("Raspberry Pi 4 Model B Rev 1.4\0", 31));
  Write("proc/meminfo", "MemTotal:        3884380 kB\nMemFree: 1 kB\n");
  Write("etc/os-release", "NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12\"\n");
  const v1::DeviceInfo info = ReadMachineInfo(root_);
  EXPECT_EQ(info.model(), "Raspberry Pi 4 Model B Rev 1.4");
  EXPECT_EQ(info.cpu_model(), "BCM2835");
  EXPECT_THAT(info.cpu_features(), ElementsAre("asimd", "asimddp"));
  EXPECT_EQ(info.memory_bytes(), int64_t{3884380} * 1024);
  EXPECT_EQ(info.os(), "Debian GNU/Linux 12");
  EXPECT_GE(info.cores(), 1);
  EXPECT_FALSE(info.kernel().empty());
}

TEST_F(MachineInfoTest, WhatCannotBeReadIsEmpty) {
  Write("proc/meminfo", "MemTotal: lots\n");
  const v1::DeviceInfo info = ReadMachineInfo(root_);
  EXPECT_EQ(info.model(), "");
  EXPECT_EQ(info.cpu_model(), "");
  EXPECT_EQ(info.memory_bytes(), 0);
  EXPECT_EQ(ReadTemperature(root_), std::nullopt);
}

TEST_F(MachineInfoTest, ReadsAnX86Machine) {
  const std::string cpuinfo =
      "model name\t: AMD EPYC\nflags\t\t: fpu fma sse4_1 avx2 avx2 syscall\n";
  EXPECT_EQ(CpuModel(cpuinfo), "AMD EPYC");
  EXPECT_THAT(CpuFeatures(cpuinfo), ElementsAre("avx2", "fma", "sse4_1"));
}

TEST_F(MachineInfoTest, TheHottestZoneCounts) {
  Write("sys/class/thermal/thermal_zone0/temp", "48312\n");
  Write("sys/class/thermal/thermal_zone1/temp", "61000\n");
  Write("sys/class/thermal/thermal_zone2/temp", "broken\n");
  Write("sys/class/thermal/cooling_device0/temp", "99000\n");
  EXPECT_EQ(ReadTemperature(root_), 61.0);
}

TEST_F(MachineInfoTest, DescribesThisMachine) {
  const v1::DeviceInfo info = ReadMachineInfo();
  EXPECT_GT(info.memory_bytes(), 0);
  EXPECT_FALSE(info.architecture().empty());
}

}  // namespace
}  // namespace optfarm::device_agent
