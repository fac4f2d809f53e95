// The inner loops on 8-bit codes of each instruction set against the plain
// code, bit for bit, on tiles of random size. Needs nothing but the kernels'
// own files, so that scripts/check_arm can build and run it for processors that
// this machine is not.

#ifdef OPTFARM_FAST_KERNELS
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "engine/runtime/ukernels/int8/int8_functions.h"

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace optfarm::runtime {
namespace {

struct Code {
  std::string name;
  Int8Functions functions;
};

std::vector<Code> CodeOfThisMachine() {
  std::vector<Code> all;
  CpuFeatures cpu;
  const auto add = [&](const char* name, bool CpuFeatures::*feature, bool has) {
    if (!has) return;
    cpu.*feature = true;
    all.push_back({name, Int8FunctionsFor(cpu)});
  };
#if defined(__x86_64__)
  add("avx2", &CpuFeatures::avx2,
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
  add("avx512", &CpuFeatures::avx512,
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
          __builtin_cpu_supports("avx512bw") &&
          __builtin_cpu_supports("avx512dq"));
  add("avx512_vnni", &CpuFeatures::avx512_vnni,
      cpu.avx512 && __builtin_cpu_supports("avx512vnni"));
#elif defined(__aarch64__)
  add("neon", &CpuFeatures::neon, true);
  add("neon_dot", &CpuFeatures::neon_dot,
      (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0);
#elif defined(__arm__)
  add("neon", &CpuFeatures::neon, true);
#endif
  return all;
}

using Numbers = int32_t[kInt8Rows * kInt8Columns];

class Random {
 public:
  int Pick(int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(engine_);
  }
  // Bytes, and in places the extremes that saturating instructions cut.
  template <typename Byte>
  std::vector<Byte> Bytes(int64_t count, Byte extreme) {
    std::vector<Byte> bytes(static_cast<size_t>(count));
    for (Byte& byte : bytes) {
      byte = Pick(0, 3) == 0 ? extreme : static_cast<Byte>(engine_());
    }
    return bytes;
  }
  template <size_t kCount>
  void Fill(int32_t (&numbers)[kCount], int shift) {
    for (int32_t& number : numbers) {
      number = static_cast<int32_t>(engine_()) >> shift;
    }
  }
  template <size_t kCount>
  void FillFloats(int32_t (&numbers)[kCount], float most) {
    std::uniform_real_distribution<float> number(-most, most);
    for (int32_t& bits : numbers) {
      float value = number(engine_);
      // Halves too.
      if (Pick(0, 3) == 0) value = static_cast<float>(Pick(-40, 40)) + 0.5f;
      std::memcpy(&bits, &value, sizeof(value));
    }
  }

 private:
  std::mt19937 engine_{17};
};

// A copy of `bytes` where vectors want them.
template <typename Byte>
struct Aligned {
  explicit Aligned(const std::vector<Byte>& bytes) : room(bytes.size() + 64) {
    const auto at = reinterpret_cast<uintptr_t>(room.data());
    data = room.data() + (64 - at % 64) % 64;
    if (!bytes.empty()) std::memcpy(data, bytes.data(), bytes.size());
  }
  std::vector<Byte> room;
  Byte* data;
};

// A random finish of so many columns with its factors.
struct FinishCase {
  static constexpr int64_t kStride = 40;

  // Sums from 1e5 on are at an end of their range.
  FinishCase(int columns, Random* random) {
    for (float& factor : factors) {
      // Powers of two give halves.
      const int divisor = random->Pick(0, 1) == 0 ? 1 << random->Pick(9, 14)
                                                  : random->Pick(1000, 20000);
      factor = 1.0f / static_cast<float>(divisor);
    }
    finish.factors = factors;
    finish.is_small = random->Pick(0, 1) != 0;
    finish.zero = random->Pick(0, 1) * random->Pick(0, 255);
    finish.least = random->Pick(0, finish.zero);
    finish.most = static_cast<float>(255 - finish.zero);
    finish.columns = columns;
    finish.stride = kStride;
  }
  FinishCase(const FinishCase&) = delete;
  FinishCase& operator=(const FinishCase&) = delete;

  float factors[kInt8Columns];
  Int8Finish finish;
};

TEST(Int8TilesTest, GiveTheBitsOfThePlainCodeWhateverTheSize) {
  Random random;
  for (const Code& code : CodeOfThisMachine()) {
    for (int round = 0; round < 150; ++round) {
      const int rows = random.Pick(1, kInt8Rows), taps = random.Pick(1, 4);
      const int depth = kInt8Group * random.Pick(1, 20);
      const int rest = random.Pick(0, 1) * random.Pick(1, 3);
      const auto codes = random.Bytes<uint8_t>(taps * rows * depth, 255);
      const Aligned<int8_t> weights(random.Bytes<int8_t>(
          (taps * depth + rest * kInt8Group) * kInt8Columns, -128));
      std::vector<const uint8_t*> pixels;
      for (int i = 0; i < taps * rows; ++i) {
        pixels.push_back(codes.data() + i * depth);
      }
      for (int i = 0; i < rest * rows; ++i) {
        pixels.push_back(pixels[random.Pick(0, taps * rows - 1)]);
      }
      int32_t start[kInt8Columns], row_start[kInt8Rows];
      random.Fill(start, 0);
      random.Fill(row_start, 0);
      alignas(64) Numbers expected = {}, made = {};
      Int8Tile tile;
      tile.has_row_start = random.Pick(0, 1) != 0;
      if (!tile.has_row_start) std::fill(row_start, row_start + rows, 0);
      tile.pixels = pixels.data();
      tile.taps = taps;
      tile.depth = depth;
      tile.rest_taps = rest;
      tile.weights = weights.data;
      tile.start = start;
      tile.row_start = row_start;
      tile.out = expected;
      RunInt8TilePortable(tile, rows);
      tile.out = made;
      code.functions.tile(tile, rows);
      ASSERT_EQ(0, std::memcmp(expected, made, sizeof(made)))
          << code.name << ", " << rows << " rows, " << taps << " taps, depth "
          << depth << ", rest " << rest;
      if (!code.functions.tile_finishes) continue;
      // So that few codes are at an end of their range.
      random.Fill(start, 14);
      if (tile.has_row_start) random.Fill(row_start, 14);
      FinishCase test(random.Pick(1, kInt8Columns), &random);
      std::vector<uint8_t> codes_expected(kInt8Rows * FinishCase::kStride, 9);
      std::vector<uint8_t> codes_made = codes_expected;
      tile.out = expected;
      RunInt8TilePortable(tile, rows);
      test.finish.out = codes_expected.data();
      kInt8StagesPortable.finish({expected, rows, 0}, test.finish);
      test.finish.out = codes_made.data();
      tile.finish = &test.finish;
      code.functions.tile(tile, rows);
      ASSERT_EQ(codes_expected, codes_made)
          << code.name << ", " << rows << " rows, " << test.finish.columns
          << " columns, small factors: " << test.finish.is_small;
    }
  }
}

TEST(Int8TilesTest, StripsGiveTheCodesOfTilesOfOneRow) {
  Random random;
  for (const Code& code : CodeOfThisMachine()) {
    if (code.functions.strip == nullptr) continue;
    for (int round = 0; round < 150; ++round) {
      const int rows = random.Pick(kInt8StripRows, 40);
      const int step = random.Pick(1, 12);
      const int groups = random.Pick(1, 20), rest = random.Pick(0, 3);
      const int64_t depth = kInt8Group * groups;
      const auto codes = random.Bytes<uint8_t>(depth + (rows - 1) * step, 255);
      const Aligned<int8_t> weights(random.Bytes<int8_t>(
          (groups + rest) * kInt8Group * kInt8Columns, -128));
      std::vector<const uint8_t*> pixels;
      for (int i = 0; i < groups; ++i) {
        pixels.push_back(codes.data() + kInt8Group * i);
      }
      for (int i = 0; i < rest; ++i) {
        pixels.push_back(pixels[random.Pick(0, groups - 1)]);
      }
      int32_t start[kInt8Columns];
      random.Fill(start, 14);
      const int32_t row_start[kInt8Rows] = {};
      Int8Tile tile;
      tile.taps = groups;
      tile.depth = kInt8Group;
      tile.rest_taps = rest;
      tile.weights = weights.data;
      tile.start = start;
      tile.row_start = row_start;
      FinishCase test(random.Pick(1, kInt8Columns), &random);
      std::vector<uint8_t> expected(rows * FinishCase::kStride, 9);
      std::vector<uint8_t> made = expected;
      for (int r = 0; r < rows; ++r) {
        std::vector<const uint8_t*> of_row = pixels;
        for (const uint8_t*& pixel : of_row) pixel += r * step;
        alignas(64) Numbers numbers = {};
        tile.pixels = of_row.data();
        tile.out = numbers;
        RunInt8TilePortable(tile, 1);
        test.finish.out = expected.data() + r * FinishCase::kStride;
        kInt8StagesPortable.finish({numbers, 1, 0}, test.finish);
      }
      test.finish.out = made.data();
      tile.pixels = pixels.data();
      tile.finish = &test.finish;
      code.functions.strip(tile, step, rows);
      ASSERT_EQ(expected, made)
          << code.name << ", " << rows << " rows, step " << step << ", "
          << groups << " groups, rest " << rest << ", " << test.finish.columns
          << " columns, small factors: " << test.finish.is_small;
    }
  }
}

// A depthwise tile of random size with all that it points at.
struct DepthwiseCase {
  static constexpr int kWidth = 30, kAll = 40;

  DepthwiseCase(int most_pixels, Random* random)
      : pixels(random->Pick(1, most_pixels)), scratch(scratch_bytes) {
    tile.taps_y = random->Pick(1, 6);
    tile.taps_x = random->Pick(1, 4);
    const int groups = (tile.taps_y + kInt8Group - 1) / kInt8Group;
    // One more, for the line below.
    const int all_lines = tile.taps_y + 1;
    codes = random->Bytes<uint8_t>(all_lines * kWidth * kAll, 255);
    for (int y = 0; y < all_lines; ++y) {
      const bool exists = random->Pick(0, 4) != 0;
      lines.push_back(exists ? codes.data() + y * kWidth * kAll : nullptr);
    }
    tile.sets = random->Pick(1, 3);
    std::vector<int8_t> packed = random->Bytes<int8_t>(
        tile.sets * tile.taps_x * groups * kInt8ColumnBytes, -128);
    // Rows that fill up the last group.
    for (size_t i = 0; i < packed.size(); ++i) {
      const int group = static_cast<int>(i / kInt8ColumnBytes) % groups;
      const int y = group * kInt8Group + static_cast<int>(i) % kInt8Group;
      if (y >= tile.taps_y) packed[i] = 0;
    }
    weights.emplace(packed);
    random->Fill(start, 0);
    tile.lines = lines.data();
    tile.end = codes.data() + codes.size();
    tile.column = random->Pick(-3, 3);
    tile.width = kWidth;
    tile.pixel_bytes = kAll;
    tile.stride = random->Pick(1, 2);
    tile.dilation = random->Pick(1, 2);
    tile.padding = static_cast<uint8_t>(random->Pick(0, 255));
    tile.weights = weights->data;
    tile.start = start;
    // Often all: then there is code of its own.
    tile.channels =
        random->Pick(0, 1) == 0 ? kInt8Columns : random->Pick(1, kInt8Columns);
    tile.scratch = scratch.data;
  }
  DepthwiseCase(const DepthwiseCase&) = delete;
  DepthwiseCase& operator=(const DepthwiseCase&) = delete;

  std::string Name() const {
    std::ostringstream name;
    name << "window " << tile.taps_y << " x " << tile.taps_x << ", stride "
         << tile.stride << ", " << tile.sets << " sets, " << pixels
         << " pixels, " << tile.channels << " channels";
    return name.str();
  }

  const std::vector<uint8_t> scratch_bytes = std::vector<uint8_t>(1 << 16);
  int pixels;
  Aligned<uint8_t> scratch;
  std::vector<uint8_t> codes;
  std::vector<const uint8_t*> lines;
  std::optional<Aligned<int8_t>> weights;
  int32_t start[kInt8Columns];
  Int8DepthwiseTile tile;
};

TEST(Int8TilesTest, DepthwiseGivesTheBitsOfThePlainCodeWhateverTheSize) {
  Random random;
  for (const Code& code : CodeOfThisMachine()) {
    for (int round = 0; round < 150; ++round) {
      DepthwiseCase test(kInt8Rows, &random);
      alignas(64) Numbers expected = {}, made = {};
      test.tile.out = expected;
      RunInt8DepthwisePortable(test.tile, test.pixels);
      test.tile.out = made;
      code.functions.depthwise(test.tile, test.pixels);
      for (int i = 0; i < test.pixels * kInt8Columns; ++i) {
        if (i % kInt8Columns >= test.tile.channels) continue;
        ASSERT_EQ(expected[i], made[i])
            << code.name << ", " << test.Name() << ", pixel "
            << i / kInt8Columns << ", channel " << i % kInt8Columns;
      }
    }
  }
}

TEST(Int8TilesTest, DepthwiseFinishesLinesAsThePlainCodeDoes) {
  Random random;
  constexpr int kMost = 2 * kInt8Rows + 1;
  for (const Code& code : CodeOfThisMachine()) {
    if (!code.functions.depthwise_finishes) continue;
    for (int round = 0; round < 1500; ++round) {
      DepthwiseCase test(kMost, &random);
      // So that few codes are at an end of their range.
      random.Fill(test.start, 14);
      FinishCase by(test.tile.channels, &random);
      Int8Finish& finish = by.finish;
      std::vector<uint8_t> expected(kMost * FinishCase::kStride, 7);
      std::vector<uint8_t> made = expected;
      alignas(64) int32_t sums[kMost * kInt8Columns] = {};
      test.tile.out = sums;
      RunInt8DepthwisePortable(test.tile, test.pixels);
      finish.out = expected.data();
      kInt8StagesPortable.finish({sums, test.pixels, 0}, finish);
      finish.out = made.data();
      test.tile.out = nullptr;
      test.tile.finish = &finish;
      code.functions.depthwise(test.tile, test.pixels);
      ASSERT_EQ(expected, made) << code.name << ", " << test.Name();
    }
  }
}

TEST(Int8TilesTest, DepthwiseMakesTwoLinesAsThePlainCodeMakesEach) {
  Random random;
  constexpr int kMost = 2 * kInt8Rows + 1;
  constexpr int64_t kBelow = kMost * FinishCase::kStride;
  int pairs = 0;
  for (const Code& code : CodeOfThisMachine()) {
    if (!code.functions.depthwise_pairs) continue;
    for (int round = 0; round < 1500; ++round) {
      DepthwiseCase test(kMost, &random);
      if (!test.tile.IsPaired()) continue;
      ++pairs;
      random.Fill(test.start, 14);
      FinishCase by(test.tile.channels, &random);
      Int8Finish& finish = by.finish;
      std::vector<uint8_t> expected(2 * kBelow, 7);
      std::vector<uint8_t> made = expected;
      alignas(64) int32_t sums[kMost * kInt8Columns] = {};
      test.tile.out = sums;
      for (int line = 0; line < 2; ++line) {
        test.tile.lines = test.lines.data() + line;
        RunInt8DepthwisePortable(test.tile, test.pixels);
        finish.out = expected.data() + line * kBelow;
        kInt8StagesPortable.finish({sums, test.pixels, 0}, finish);
      }
      test.tile.lines = test.lines.data();
      finish.out = made.data();
      test.tile.out = nullptr;
      test.tile.finish = &finish;
      test.tile.below = kBelow;
      code.functions.depthwise(test.tile, test.pixels);
      ASSERT_EQ(expected, made) << code.name << ", " << test.Name();
    }
    EXPECT_GT(pairs, 20);
  }
}

struct StageCase {
  const char* name;
  Int8StageKind kind;
  // UNITS: bits to shift random integers by; -1: floats.
  int shift = 0;
  float factor = 0;
  float summand = 0;
};

// Values that each kind allows.
Int8Stage StageOf(const StageCase& test, const int32_t* table,
                  const int32_t* by_channel, const float* floats) {
  Int8Stage stage;
  stage.kind = test.kind;
  stage.scale = (int64_t{1} << 38) + 12345;
  stage.offset = int64_t{99} << 16;
  const bool is_clamp = test.kind == Int8StageKind::kClamp ||
                        test.kind == Int8StageKind::kRequantize;
  stage.low = is_clamp ? -100000 : 17;
  stage.high = 300000;
  stage.factor = test.factor;
  stage.summand = test.summand;
  stage.unit = 1234.5f;
  stage.table = table;
  stage.by_channel = by_channel;
  stage.floats = floats;
  return stage;
}

TEST(Int8TilesTest, StagesGiveTheBitsOfThePlainCode) {
  Random random;
  alignas(64) int32_t table[256];
  alignas(64) int32_t by_channel[kInt8Columns];
  alignas(64) float floats[kInt8Columns];
  random.Fill(table, 0);
  random.Fill(by_channel, 4);
  for (float& value : floats) {
    value = 1.0f / static_cast<float>(1 << random.Pick(0, 12));
  }
  const StageCase cases[] = {
      {"requantize", Int8StageKind::kRequantize, 8},
      {"table", Int8StageKind::kTable, 24},
      {"rounded", Int8StageKind::kRounded, 24, 0.0314f, -4.02f},
      {"product", Int8StageKind::kProduct, 24},
      {"clamp", Int8StageKind::kClamp, 8},
      {"dequantize", Int8StageKind::kDequantize, 0, 0.0123f, -0.7f},
      {"scale", Int8StageKind::kScale, -1},
      {"shift", Int8StageKind::kShift, -1},
      {"relu", Int8StageKind::kRelu, -1},
      {"relu6", Int8StageKind::kRelu6, -1},
      {"narrow", Int8StageKind::kNarrow, 12, -17.0f, 238.0f},
      {"quantize", Int8StageKind::kQuantize, -1, 0.5f, -100.0f},
  };
  for (const StageCase& test : cases) {
    const Int8Stage stage = StageOf(test, table, by_channel, floats);
    alignas(64) Numbers numbers, expected, made;
    if (test.shift < 0) {
      random.FillFloats(numbers, 300.0f);
    } else {
      random.Fill(numbers, test.shift);
    }
    if (test.shift == 24) {
      for (int32_t& number : numbers) number &= 255;
    }
    for (const Code& code : CodeOfThisMachine()) {
      std::memcpy(expected, numbers, sizeof(numbers));
      std::memcpy(made, numbers, sizeof(numbers));
      kInt8StagesPortable.run(&stage, 1, {expected, kInt8Rows, 0});
      code.functions.stages->run(&stage, 1, {made, kInt8Rows, 0});
      EXPECT_EQ(0, std::memcmp(expected, made, sizeof(made)))
          << test.name << " with " << code.name;
    }
  }
}

TEST(Int8TilesTest, FinishedTilesAreThoseOfThePlainCode) {
  Random random;
  for (const Code& code : CodeOfThisMachine()) {
    for (int round = 0; round < 60; ++round) {
      alignas(64) Numbers numbers, copy;
      random.Fill(numbers, random.Pick(4, 20));
      std::memcpy(copy, numbers, sizeof(numbers));
      FinishCase test(random.Pick(1, kInt8Columns), &random);
      const int rows = random.Pick(1, kInt8Rows);
      std::vector<uint8_t> expected(kInt8Rows * FinishCase::kStride, 9);
      std::vector<uint8_t> made = expected;
      test.finish.out = expected.data();
      kInt8StagesPortable.finish({numbers, rows, 0}, test.finish);
      test.finish.out = made.data();
      code.functions.stages->finish({copy, rows, 0}, test.finish);
      ASSERT_EQ(expected, made)
          << code.name << ", " << test.finish.columns << " columns";
    }
  }
}

}  // namespace
}  // namespace optfarm::runtime
#endif  // OPTFARM_FAST_KERNELS
