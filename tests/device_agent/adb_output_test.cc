// What adb and Android's tools print becomes values, and nonsense nothing.

#include "device_agent/adb_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optfarm::device_agent {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

TEST(AdbOutputTest, ReadsDevicesInEveryState) {
  const auto devices = ParseAdbDevices(
      "* daemon not running; starting now at tcp:5037\n"
      "* daemon started successfully\n"
      "List of devices attached\n"
      "0A041FDD4003BN         device usb:1-2 product:panther model:Pixel_7 "
      "device:panther transport_id:3\r\n"
      "emulator-5554          offline transport_id:1\n"
      "192.168.1.7:5555       unauthorized transport_id:9\n"
      "\n");
  ASSERT_THAT(devices, SizeIs(3));
  EXPECT_EQ(devices[0].serial, "0A041FDD4003BN");
  EXPECT_EQ(devices[0].state, "device");
  EXPECT_EQ(devices[0].model, "Pixel_7");
  EXPECT_EQ(devices[1].state, "offline");
  EXPECT_EQ(devices[2].serial, "192.168.1.7:5555");
}

TEST(AdbOutputTest, NamesAreStableAndFitForTheFarm) {
  EXPECT_EQ(NameOfSerial("0A041FDD4003BN"), "0A041FDD4003BN");
  EXPECT_EQ(NameOfSerial("192.168.1.7:5555"), "192.168.1.7-5555");
  EXPECT_EQ(NameOfSerial("-x;rm"), "x-rm");
  EXPECT_EQ(NameOfSerial(";;"), "");
  EXPECT_EQ(NameOfSerial(std::string(100, 'a')).size(), 64u);
}

TEST(AdbOutputTest, ReadsBatteryAndTemperature) {
  v1::DeviceHealth health;
  ReadBattery(
      "Current Battery Service state:\n  AC powered: false\n"
      "  USB powered: true\n  level: 85\n  scale: 100\n  temperature: 312\n",
      &health);
  EXPECT_EQ(health.battery_percent(), 85);
  EXPECT_TRUE(health.charging());
  EXPECT_EQ(health.temperature_mc(), 31'200);
  ReadThermal(
      "IsStatusOverride: false\nThermal Status: 3\nCached temperatures:\n"
      " Temperature{mValue=44.5, mType=3, mName=skin, mStatus=3}\n"
      " Temperature{mValue=99.0, mType=9, mName=npu, mStatus=0}\n",
      &health);
  EXPECT_EQ(health.temperature_mc(), 44'500);
  EXPECT_TRUE(health.throttled());
  v1::DeviceHealth nothing;
  ReadBattery("level: many\ntemperature: 99999999\nlevel: 900\n:::\n",
              &nothing);
  ReadThermal("mValue= mType=\nThermal Status: x\nmType=0 mValue=1e9",
              &nothing);
  EXPECT_FALSE(nothing.has_battery_percent());
  EXPECT_FALSE(nothing.has_temperature_mc());
}

TEST(AdbOutputTest, DescribesThePhone) {
  std::string abi;
  const v1::DeviceInfo info = ParsePhone(
      "Pixel 7\r\narm64-v8a\r\n13\r\n5.10.107\r\naarch64\r\n8\r\n"
      "MemTotal:        7890123 kB\nprocessor : 0\n"
      "Features : fp asimd asimddp\nHardware : GS201\n",
      &abi);
  EXPECT_EQ(abi, "arm64-v8a");
  EXPECT_EQ(info.model(), "Pixel 7");
  EXPECT_EQ(info.os(), "Android 13");
  EXPECT_EQ(info.cores(), 8);
  EXPECT_EQ(info.memory_bytes(), int64_t{7890123} * 1024);
  EXPECT_EQ(info.cpu_model(), "GS201");
  EXPECT_THAT(info.cpu_features(), testing::Contains("asimddp"));
  EXPECT_EQ(ParsePhone("", &abi).model(), "");
  EXPECT_EQ(abi, "");
}

}  // namespace
}  // namespace optfarm::device_agent
