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

#include "engine/runtime/ukernels/host_cpu_features.h"
#include "engine/runtime/ukernels/int8/int8_depthwise.h"
#include "engine/runtime/ukernels/int8/int8_row_kernel.h"
#include "engine/runtime/ukernels/int8/int8_stage.h"
#include "engine/runtime/ukernels/micro_kernel_catalog.h"

namespace optfarm::runtime {
namespace {

// The shape of the portable entries, and of all depthwise and row kernels.
constexpr int kMr = 12, kNr = 32, kKr = 4;
constexpr int64_t kGroupBytes = int64_t{kNr} * kKr;

// Those of a kind that this machine can run.
std::vector<const MicroKernel*> EntriesOf(MicroKernelKind kind) {
  std::vector<const MicroKernel*> entries;
  for (const MicroKernel* entry : AllMicroKernels()) {
    if (entry->kind == kind && IsUsable(*entry, HostCpuFeatures())) {
      entries.push_back(entry);
    }
  }
  return entries;
}

const Int8StageFunctions& PortableStages() {
  return *kInt8OutputStagesPortable.run.int8_stages;
}

using Numbers = int32_t[kMr * kNr];

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

// A random epilogue of so many channels with its scales.
struct EpilogueCase {
  static constexpr int64_t kStride = 40;

  // Sums from 1e5 on are at an end of their range.
  EpilogueCase(int columns, Random* random) {
    for (float& factor : factors) {
      // Powers of two give halves.
      const int divisor = random->Pick(0, 1) == 0 ? 1 << random->Pick(9, 14)
                                                  : random->Pick(1000, 20000);
      factor = 1.0f / static_cast<float>(divisor);
    }
    epilogue.scales = factors;
    epilogue.has_small_scales = random->Pick(0, 1) != 0;
    epilogue.zero_point = random->Pick(0, 1) * random->Pick(0, 255);
    epilogue.least = random->Pick(0, epilogue.zero_point);
    epilogue.most = static_cast<float>(255 - epilogue.zero_point);
    epilogue.channels = columns;
    epilogue.stride = kStride;
  }
  EpilogueCase(const EpilogueCase&) = delete;
  EpilogueCase& operator=(const EpilogueCase&) = delete;

  float factors[kNr];
  Int8Epilogue epilogue;
};

// What a tile is to give, for panels of this layout.
void RunPlain(const Int8GemmTile& tile, int rows, const PanelLayout& panel) {
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < panel.nr; ++c) {
      uint32_t sum = static_cast<uint32_t>(tile.init[c]) +
                     static_cast<uint32_t>(tile.row_init[r]);
      const int8_t* group = tile.weights + c * panel.kr;
      for (int64_t tap = 0; tap < tile.all_taps(); ++tap) {
        const uint8_t* values = tile.indirection[tap * rows + r];
        for (int64_t k = 0; k < tile.DepthOf(tap, panel.kr); ++k) {
          sum += static_cast<uint32_t>(values[k] * group[k % panel.kr]);
          if ((k + 1) % panel.kr == 0) group += panel.nr * panel.kr;
        }
      }
      tile.out[r * panel.nr + c] = static_cast<int32_t>(sum);
    }
  }
}

TEST(Int8TilesTest, GiveTheBitsOfThePlainCodeWhateverTheSize) {
  Random random;
  for (const MicroKernel* entry : EntriesOf(MicroKernelKind::kInt8Gemm)) {
    const int nr = entry->panel.nr, kr = entry->panel.kr;
    for (int round = 0; round < 150; ++round) {
      const int rows = random.Pick(1, entry->mr), taps = random.Pick(1, 4);
      // Now and then more than any of them widens at a time.
      const int depth = kr * random.Pick(1, round % 10 == 0 ? 300 : 40);
      const int residual = random.Pick(0, 1) * random.Pick(1, 3);
      const auto values = random.Bytes<uint8_t>(taps * rows * depth, 255);
      const Aligned<int8_t> weights(
          random.Bytes<int8_t>((taps * depth + residual * kr) * nr, -128));
      std::vector<const uint8_t*> inputs;
      for (int i = 0; i < taps * rows; ++i) {
        inputs.push_back(values.data() + i * depth);
      }
      for (int i = 0; i < residual * rows; ++i) {
        inputs.push_back(inputs[random.Pick(0, taps * rows - 1)]);
      }
      int32_t init[kMaxInt8Nr], row_init[kMaxInt8Mr];
      random.Fill(init, 0);
      random.Fill(row_init, 0);
      alignas(64) int32_t expected[kMaxInt8Mr * kMaxInt8Nr] = {};
      alignas(64) int32_t made[kMaxInt8Mr * kMaxInt8Nr] = {};
      Int8GemmTile tile;
      tile.has_row_init = random.Pick(0, 1) != 0;
      if (!tile.has_row_init) std::fill(row_init, row_init + rows, 0);
      tile.indirection = inputs.data();
      tile.taps = taps;
      tile.depth = depth;
      tile.residual_taps = residual;
      tile.weights = weights.data;
      tile.init = init;
      tile.row_init = row_init;
      tile.out = expected;
      RunPlain(tile, rows, entry->panel);
      tile.out = made;
      entry->run.int8_gemm(tile, rows);
      ASSERT_EQ(0, std::memcmp(expected, made, sizeof(made)))
          << entry->name << ", " << rows << " rows, " << taps << " taps, depth "
          << depth << ", residual " << residual;
      if (!entry->Can(kRequantizes)) continue;
      // So that few values are at an end of their range.
      random.Fill(init, 14);
      if (tile.has_row_init) random.Fill(row_init, 14);
      EpilogueCase test(random.Pick(1, kNr), &random);
      std::vector<uint8_t> quantized(kMr * EpilogueCase::kStride, 9);
      std::vector<uint8_t> quantized_made = quantized;
      tile.out = expected;
      RunPlain(tile, rows, entry->panel);
      test.epilogue.out = quantized.data();
      PortableStages().requantize({expected, rows, nr, 0}, test.epilogue);
      test.epilogue.out = quantized_made.data();
      tile.epilogue = &test.epilogue;
      entry->run.int8_gemm(tile, rows);
      ASSERT_EQ(quantized, quantized_made)
          << entry->name << ", " << rows << " rows, " << test.epilogue.channels
          << " channels, small scales: " << test.epilogue.has_small_scales;
    }
  }
}

TEST(Int8TilesTest, RowKernelsGiveTheValuesOfTilesOfOneRow) {
  Random random;
  for (const MicroKernel* entry : EntriesOf(MicroKernelKind::kInt8Row)) {
    for (int round = 0; round < 150; ++round) {
      const int rows = random.Pick(entry->mr, 40);
      const int step = random.Pick(1, 12);
      const int groups = random.Pick(1, 20), rest = random.Pick(0, 3);
      const int64_t depth = kKr * groups;
      const auto codes = random.Bytes<uint8_t>(depth + (rows - 1) * step, 255);
      const Aligned<int8_t> weights(
          random.Bytes<int8_t>((groups + rest) * kKr * kNr, -128));
      std::vector<const uint8_t*> pixels;
      for (int i = 0; i < groups; ++i) {
        pixels.push_back(codes.data() + kKr * i);
      }
      for (int i = 0; i < rest; ++i) {
        pixels.push_back(pixels[random.Pick(0, groups - 1)]);
      }
      int32_t start[kNr];
      random.Fill(start, 14);
      const int32_t row_start[kMr] = {};
      Int8GemmTile tile;
      tile.taps = groups;
      tile.depth = kKr;
      tile.residual_taps = rest;
      tile.weights = weights.data;
      tile.init = start;
      tile.row_init = row_start;
      EpilogueCase test(random.Pick(1, kNr), &random);
      std::vector<uint8_t> expected(rows * EpilogueCase::kStride, 9);
      std::vector<uint8_t> made = expected;
      for (int r = 0; r < rows; ++r) {
        std::vector<const uint8_t*> of_row = pixels;
        for (const uint8_t*& pixel : of_row) pixel += r * step;
        alignas(64) Numbers numbers = {};
        tile.indirection = of_row.data();
        tile.out = numbers;
        kInt8GemmPortable.run.int8_gemm(tile, 1);
        test.epilogue.out = expected.data() + r * EpilogueCase::kStride;
        PortableStages().requantize({numbers, 1, kNr, 0}, test.epilogue);
      }
      test.epilogue.out = made.data();
      tile.indirection = pixels.data();
      tile.epilogue = &test.epilogue;
      entry->run.int8_row(tile, step, rows);
      ASSERT_EQ(expected, made)
          << entry->name << ", " << rows << " rows, step " << step << ", "
          << groups << " groups, rest " << rest << ", "
          << test.epilogue.channels
          << " columns, small factors: " << test.epilogue.has_small_scales;
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
    const int groups = (tile.taps_y + kKr - 1) / kKr;
    // One more, for the line below.
    const int all_lines = tile.taps_y + 1;
    codes = random->Bytes<uint8_t>(all_lines * kWidth * kAll, 255);
    for (int y = 0; y < all_lines; ++y) {
      const bool exists = random->Pick(0, 4) != 0;
      lines.push_back(exists ? codes.data() + y * kWidth * kAll : nullptr);
    }
    tile.sets = random->Pick(1, 3);
    std::vector<int8_t> packed = random->Bytes<int8_t>(
        tile.sets * tile.taps_x * groups * kGroupBytes, -128);
    // Rows that fill up the last group.
    for (size_t i = 0; i < packed.size(); ++i) {
      const int group = static_cast<int>(i / kGroupBytes) % groups;
      const int y = group * kKr + static_cast<int>(i) % kKr;
      if (y >= tile.taps_y) packed[i] = 0;
    }
    weights.emplace(packed);
    random->Fill(start, 0);
    tile.rows = lines.data();
    tile.end = codes.data() + codes.size();
    tile.column = random->Pick(-3, 3);
    tile.width = kWidth;
    tile.pixel_bytes = kAll;
    tile.stride = random->Pick(1, 2);
    tile.dilation = random->Pick(1, 2);
    tile.padding = static_cast<uint8_t>(random->Pick(0, 255));
    tile.weights = weights->data;
    tile.init = start;
    // Often all: then there is code of its own.
    tile.channels = random->Pick(0, 1) == 0 ? kNr : random->Pick(1, kNr);
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
  int32_t start[kNr];
  Int8DepthwiseTile tile;
};

TEST(Int8TilesTest, DepthwiseGivesTheBitsOfThePlainCodeWhateverTheSize) {
  Random random;
  for (const MicroKernel* entry : EntriesOf(MicroKernelKind::kInt8Depthwise)) {
    for (int round = 0; round < 150; ++round) {
      DepthwiseCase test(kMr, &random);
      alignas(64) Numbers expected = {}, made = {};
      test.tile.out = expected;
      kInt8DepthwisePortable.run.int8_depthwise(test.tile, test.pixels);
      test.tile.out = made;
      entry->run.int8_depthwise(test.tile, test.pixels);
      for (int i = 0; i < test.pixels * kNr; ++i) {
        if (i % kNr >= test.tile.channels) continue;
        ASSERT_EQ(expected[i], made[i])
            << entry->name << ", " << test.Name() << ", pixel " << i / kNr
            << ", channel " << i % kNr;
      }
    }
  }
}

TEST(Int8TilesTest, DepthwiseFinishesLinesAsThePlainCodeDoes) {
  Random random;
  constexpr int kMost = 2 * kMr + 1;
  for (const MicroKernel* entry : EntriesOf(MicroKernelKind::kInt8Depthwise)) {
    if (!entry->Can(kRequantizes)) continue;
    for (int round = 0; round < 1500; ++round) {
      DepthwiseCase test(kMost, &random);
      // So that few codes are at an end of their range.
      random.Fill(test.start, 14);
      EpilogueCase by(test.tile.channels, &random);
      Int8Epilogue& epilogue = by.epilogue;
      std::vector<uint8_t> expected(kMost * EpilogueCase::kStride, 7);
      std::vector<uint8_t> made = expected;
      alignas(64) int32_t sums[kMost * kNr] = {};
      test.tile.out = sums;
      kInt8DepthwisePortable.run.int8_depthwise(test.tile, test.pixels);
      epilogue.out = expected.data();
      PortableStages().requantize({sums, test.pixels, kNr, 0}, epilogue);
      epilogue.out = made.data();
      test.tile.out = nullptr;
      test.tile.epilogue = &epilogue;
      entry->run.int8_depthwise(test.tile, test.pixels);
      ASSERT_EQ(expected, made) << entry->name << ", " << test.Name();
    }
  }
}

TEST(Int8TilesTest, DepthwiseMakesTwoLinesAsThePlainCodeMakesEach) {
  Random random;
  constexpr int kMost = 2 * kMr + 1;
  constexpr int64_t kBelow = kMost * EpilogueCase::kStride;
  int pairs = 0;
  for (const MicroKernel* entry : EntriesOf(MicroKernelKind::kInt8Depthwise)) {
    if (!entry->Can(kPairsRows)) continue;
    for (int round = 0; round < 1500; ++round) {
      DepthwiseCase test(kMost, &random);
      if (!test.tile.IsPaired(kKr)) continue;
      ++pairs;
      random.Fill(test.start, 14);
      EpilogueCase by(test.tile.channels, &random);
      Int8Epilogue& epilogue = by.epilogue;
      std::vector<uint8_t> expected(2 * kBelow, 7);
      std::vector<uint8_t> made = expected;
      alignas(64) int32_t sums[kMost * kNr] = {};
      test.tile.out = sums;
      for (int line = 0; line < 2; ++line) {
        test.tile.rows = test.lines.data() + line;
        kInt8DepthwisePortable.run.int8_depthwise(test.tile, test.pixels);
        epilogue.out = expected.data() + line * kBelow;
        PortableStages().requantize({sums, test.pixels, kNr, 0}, epilogue);
      }
      test.tile.rows = test.lines.data();
      epilogue.out = made.data();
      test.tile.out = nullptr;
      test.tile.epilogue = &epilogue;
      test.tile.below = kBelow;
      entry->run.int8_depthwise(test.tile, test.pixels);
      ASSERT_EQ(expected, made) << entry->name << ", " << test.Name();
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
  alignas(64) int32_t by_channel[kMaxInt8Nr];
  alignas(64) float floats[kMaxInt8Nr];
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
      {"requantize_float", Int8StageKind::kRequantizeFloat, 12, -17.0f, 238.0f},
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
    for (const MicroKernel* entry :
         EntriesOf(MicroKernelKind::kInt8OutputStages)) {
      std::memcpy(expected, numbers, sizeof(numbers));
      std::memcpy(made, numbers, sizeof(numbers));
      PortableStages().run(&stage, 1, {expected, kMr, kNr, 0});
      entry->run.int8_stages->run(&stage, 1, {made, kMr, kNr, 0});
      EXPECT_EQ(0, std::memcmp(expected, made, sizeof(made)))
          << test.name << " with " << entry->name;
      // A wide row is one of 16 channels after the other.
      for (int nr = kInt8NrMultiple; nr <= kMaxInt8Nr; nr += kInt8NrMultiple) {
        std::memcpy(expected, numbers, sizeof(numbers));
        std::memcpy(made, numbers, sizeof(numbers));
        for (int c = 0; c < 3 * nr; c += kInt8NrMultiple) {
          PortableStages().run(&stage, 1,
                               {expected + c, 1, kInt8NrMultiple, c % nr});
        }
        entry->run.int8_stages->run(&stage, 1, {made, 3, nr, 0});
        EXPECT_EQ(0, std::memcmp(expected, made, sizeof(made)))
            << test.name << " with " << entry->name << ", nr " << nr;
      }
    }
  }
}

// Whatever nr is, a tile is one of 16 channels beside the other.
TEST(Int8TilesTest, TilesOfAnyWidthAreStoredAndSearched) {
  Random random;
  alignas(64) Numbers numbers;
  random.Fill(numbers, 20);
  float scales[kMaxInt8Nr];
  for (float& scale : scales)
    scale = 1.0f / static_cast<float>(random.Pick(1, 9));
  Int8Epilogue epilogue;
  epilogue.zero_point = 100;
  epilogue.most = 155;
  epilogue.stride = kMaxInt8Nr;
  constexpr int kRows = 3;
  for (const MicroKernel* entry :
       EntriesOf(MicroKernelKind::kInt8OutputStages)) {
    const Int8StageFunctions& stages = *entry->run.int8_stages;
    for (int nr = kInt8NrMultiple; nr <= kMaxInt8Nr; nr += kInt8NrMultiple) {
      for (const int channels : {nr - 15, nr - 1, nr}) {
        std::vector<uint8_t> expected(kRows * kMaxInt8Nr, 9), made = expected;
        std::vector<int32_t> low(kMaxInt8Nr, 50), high(kMaxInt8Nr, 60);
        std::vector<int32_t> least = low, most = high;
        alignas(64) Numbers copy;
        std::memcpy(copy, numbers, sizeof(numbers));
        for (int i = 0; i < kRows * nr; i += kInt8NrMultiple) {
          const int row = i / nr, c = i % nr;
          PortableStages().find_range({copy + i, 1, kInt8NrMultiple, 0},
                                      low.data() + c, high.data() + c);
          epilogue.scales = scales + c;
          epilogue.channels = std::min(kInt8NrMultiple, channels - c);
          epilogue.out = expected.data() + row * kMaxInt8Nr + c;
          if (epilogue.channels > 0) {
            PortableStages().requantize({copy + i, 1, kInt8NrMultiple, 0},
                                        epilogue);
          }
        }
        std::memcpy(copy, numbers, sizeof(numbers));
        const Int8Accumulators tile = {copy, kRows, nr, 0};
        stages.find_range(tile, least.data(), most.data());
        EXPECT_EQ(low, least) << entry->name << ", nr " << nr;
        EXPECT_EQ(high, most) << entry->name << ", nr " << nr;
        epilogue.scales = scales;
        epilogue.channels = channels;
        epilogue.out = made.data();
        stages.requantize(tile, epilogue);
        EXPECT_EQ(expected, made)
            << entry->name << ", nr " << nr << ", " << channels << " channels";
      }
    }
  }
}

TEST(Int8TilesTest, EpiloguesAreThoseOfThePlainCode) {
  Random random;
  for (const MicroKernel* entry :
       EntriesOf(MicroKernelKind::kInt8OutputStages)) {
    for (int round = 0; round < 60; ++round) {
      alignas(64) Numbers numbers, copy;
      random.Fill(numbers, random.Pick(4, 20));
      std::memcpy(copy, numbers, sizeof(numbers));
      EpilogueCase test(random.Pick(1, kNr), &random);
      const int rows = random.Pick(1, kMr);
      std::vector<uint8_t> expected(kMr * EpilogueCase::kStride, 9);
      std::vector<uint8_t> made = expected;
      test.epilogue.out = expected.data();
      PortableStages().requantize({numbers, rows, kNr, 0}, test.epilogue);
      test.epilogue.out = made.data();
      entry->run.int8_stages->requantize({copy, rows, kNr, 0}, test.epilogue);
      ASSERT_EQ(expected, made)
          << entry->name << ", " << test.epilogue.channels << " columns";
    }
  }
}

}  // namespace
}  // namespace optfarm::runtime
#endif  // OPTFARM_FAST_KERNELS
