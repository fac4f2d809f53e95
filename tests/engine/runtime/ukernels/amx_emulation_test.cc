// The emulation of AMX against what Intel's manual says of each instruction:
// the proof of the AMX micro-kernel is as good as this.

#ifdef OPTFARM_FAST_KERNELS
#include "tests/engine/runtime/amx_emulation.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

namespace optfarm::runtime::amx {
namespace {

struct Config {
  uint8_t bytes[64] = {1};

  Config& Tile(int number, int rows, int row_bytes) {
    bytes[16 + 2 * number] = static_cast<uint8_t>(row_bytes);
    bytes[17 + 2 * number] = static_cast<uint8_t>(row_bytes >> 8);
    bytes[48 + number] = static_cast<uint8_t>(rows);
    return *this;
  }
};

// 2 x 3 sums of 2 x 8 activations and 8 x 3 weights.
Config SmallTiles() {
  return Config().Tile(0, 2, 12).Tile(1, 2, 8).Tile(2, 2, 12);
}

TEST(AmxEmulationTest, MultipliesUnsignedBySignedGroupsOfFour) {
  LoadConfig(SmallTiles().bytes);
  // Row by row, at a stride of 9.
  const uint8_t a[17] = {1, 2, 3, 4, 5, 6, 7, 255, 99,
                         0, 1, 0, 0, 0, 0, 0, 200};
  // Row k has groups k of the three columns.
  const int8_t b[24] = {1, 0, 0, 0, 0, 1, 0, 0,    -1, -1, -1, -1,
                        0, 0, 0, 2, 0, 0, 0, -128, 1,  1,  1,  1};
  int32_t sums[6] = {10, 20, 30, 40, 50, 60};
  Load(0, sums, 12);
  Load(1, a, 9);
  Load(2, b, 12);
  MultiplyBytes<uint8_t, int8_t>("tdpbusd", 0, 1, 2);
  Store(0, sums, 12);
  const int32_t wanted[6] = {10 + 1 + 2 * 255,          20 + 2 - 128 * 255,
                             30 - 10 + 5 + 6 + 7 + 255, 40 + 2 * 200,
                             50 + 1 - 128 * 200,        60 - 1 + 200};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(sums[i], wanted[i]) << i;
  Release();
}

TEST(AmxEmulationTest, TheSignsAreTheInstructions) {
  LoadConfig(Config().Tile(0, 1, 4).Tile(1, 1, 4).Tile(2, 1, 4).bytes);
  const uint8_t ones[4] = {255, 0, 0, 0};
  const int32_t zero = 0;
  const auto product = [&](auto multiply) {
    Load(0, &zero, 0);
    Load(1, ones, 0);
    Load(2, ones, 0);
    multiply();
    int32_t sum = 0;
    Store(0, &sum, 0);
    return sum;
  };
  EXPECT_EQ(product([] { MultiplyBytes<uint8_t, int8_t>("usd", 0, 1, 2); }),
            -255);
  EXPECT_EQ(product([] { MultiplyBytes<int8_t, uint8_t>("sud", 0, 1, 2); }),
            -255);
  EXPECT_EQ(product([] { MultiplyBytes<int8_t, int8_t>("ssd", 0, 1, 2); }), 1);
  EXPECT_EQ(product([] { MultiplyBytes<uint8_t, uint8_t>("uud", 0, 1, 2); }),
            255 * 255);
  Release();
}

TEST(AmxEmulationTest, SumsWrapAndLoadsMayRepeatARow) {
  LoadConfig(Config().Tile(0, 2, 4).Tile(1, 2, 4).Tile(2, 1, 4).bytes);
  const int32_t most = INT32_MAX;
  const uint8_t ones[4] = {1, 0, 0, 0};
  Load(0, &most, 0);
  Load(1, ones, 0);
  Load(2, ones, 0);
  MultiplyBytes<uint8_t, int8_t>("tdpbusd", 0, 1, 2);
  int32_t sums[2] = {};
  Store(0, sums, 4);
  EXPECT_EQ(sums[0], INT32_MIN);
  EXPECT_EQ(sums[1], INT32_MIN);
  Release();
}

TEST(AmxEmulationTest, ConfiguringZerosTiles) {
  LoadConfig(Config().Tile(3, 1, 4).bytes);
  const int32_t value = 7;
  Load(3, &value, 0);
  LoadConfig(Config().Tile(3, 1, 4).bytes);
  int32_t stored = 1;
  Store(3, &stored, 0);
  EXPECT_EQ(stored, 0);
  Release();
}

using AmxEmulationDeathTest = ::testing::Test;

TEST(AmxEmulationDeathTest, FaultsAsConfigurationsDo) {
  Config palette;
  palette.bytes[0] = 2;
  EXPECT_DEATH(LoadConfig(palette.bytes), "palette");
  EXPECT_DEATH(LoadConfig(Config().Tile(0, 17, 64).bytes), "too many rows");
  EXPECT_DEATH(LoadConfig(Config().Tile(0, 16, 65).bytes), "too many bytes");
  EXPECT_DEATH(LoadConfig(Config().Tile(0, 16, 0).bytes), "alone");
  EXPECT_DEATH(LoadConfig(Config().Tile(8, 1, 4).bytes), "reserved");
  Config reserved;
  reserved.bytes[2] = 1;
  EXPECT_DEATH(LoadConfig(reserved.bytes), "reserved");
}

TEST(AmxEmulationDeathTest, FaultsAsProductsDo) {
  const auto with = [](const Config& config, int sums, int a, int b) {
    LoadConfig(config.bytes);
    MultiplyBytes<uint8_t, int8_t>("tdpbusd", sums, a, b);
  };
  EXPECT_DEATH(with(SmallTiles(), 0, 1, 1), "twice");
  EXPECT_DEATH(with(SmallTiles(), 0, 1, 3), "tile without rows");
  EXPECT_DEATH(with(SmallTiles().Tile(0, 1, 12), 0, 1, 2), "rows of sums");
  EXPECT_DEATH(with(SmallTiles().Tile(0, 2, 8), 0, 1, 2), "row bytes of sums");
  EXPECT_DEATH(with(SmallTiles().Tile(1, 2, 12), 0, 1, 2), "groups of the");
  EXPECT_DEATH(with(SmallTiles().Tile(1, 2, 7), 0, 1, 2), "no groups of four");
}

TEST(AmxEmulationDeathTest, FaultsWithoutAConfiguration) {
  int32_t sum = 0;
  EXPECT_DEATH(Load(0, &sum, 4), "not configured");
  LoadConfig(SmallTiles().bytes);
  Release();
  EXPECT_DEATH(Store(0, &sum, 4), "not configured");
}

}  // namespace
}  // namespace optfarm::runtime::amx
#endif  // OPTFARM_FAST_KERNELS
