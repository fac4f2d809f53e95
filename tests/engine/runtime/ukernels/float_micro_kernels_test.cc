// The tiles and windows of each instruction set against plain loops. Needs
// nothing but the kernels' own files, so that scripts/check_arm can build and
// run it for processors that this machine is not.

#ifdef OPTFARM_FAST_KERNELS
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "engine/runtime/ukernels/float/float_tile.h"
#include "engine/runtime/ukernels/float/float_window.h"
#include "engine/runtime/ukernels/float/winograd.h"
#include "engine/runtime/ukernels/host_cpu_features.h"
#include "engine/runtime/ukernels/micro_kernel_catalog.h"

namespace optfarm::runtime {
namespace {

// The entries of a kind that this processor may run.
std::vector<const MicroKernel*> Usable(MicroKernelKind kind) {
  std::vector<const MicroKernel*> entries;
  for (const MicroKernel* entry : AllMicroKernels()) {
    if (entry->kind == kind && IsUsable(*entry, HostCpuFeatures())) {
      entries.push_back(entry);
    }
  }
  return entries;
}

class Numbers {
 public:
  std::vector<float> Some(int64_t count) {
    std::uniform_real_distribution<float> number(-1.0f, 1.0f);
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = number(random_);
    return values;
  }
  int Pick(int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random_);
  }

 private:
  std::mt19937 random_{11};
};

float Rectified(float x, Rectifier rectifier) {
  if (rectifier != Rectifier::kNone && x < 0.0f) return 0.0f;
  return rectifier == Rectifier::kRelu6 && x > 6.0f ? 6.0f : x;
}

// One tile of random size; what lies beyond its columns must stay.
void CheckTile(const FloatTiles& tiles, bool is_narrow, Numbers* random) {
  const int width = is_narrow ? tiles.width / 2 : tiles.width;
  const int rows = random->Pick(1, tiles.rows);
  const int columns = random->Pick(1, width);
  const int taps = random->Pick(1, 4), run = random->Pick(1, 40);
  const int stride = width + random->Pick(0, 5);
  const std::vector<float> in = random->Some(taps * rows * run);
  const std::vector<float> weights = random->Some(taps * run * width);
  const std::vector<float> scale = random->Some(width);
  const std::vector<float> bias = random->Some(width);
  const std::vector<float> before = random->Some(rows * stride);
  std::vector<float> out = before;
  std::vector<const float*> inputs;
  for (int i = 0; i < taps * rows; ++i) inputs.push_back(in.data() + i * run);
  FloatTile tile;
  tile.inputs = inputs.data();
  tile.rows = rows;
  tile.taps = taps;
  tile.run = run;
  tile.weights = weights.data();
  if (random->Pick(0, 1) == 1) tile.scale = scale.data();
  if (random->Pick(0, 1) == 1) tile.bias = bias.data();
  if (random->Pick(0, 1) == 1) tile.residual = out.data();
  tile.out = out.data();
  tile.row_stride = stride;
  tile.columns = columns;
  tile.rectifier = static_cast<Rectifier>(random->Pick(0, 2));
  tile.prefetch = reinterpret_cast<const char*>(weights.data());
  (is_narrow ? tiles.narrow : tiles.wide)(tile);
  for (int m = 0; m < rows; ++m) {
    for (int n = 0; n < stride; ++n) {
      const float got = out[m * stride + n];
      if (n >= columns) {
        ASSERT_EQ(got, before[m * stride + n]) << "beyond the columns";
        continue;
      }
      double sum = 0;
      for (int t = 0; t < taps; ++t) {
        for (int k = 0; k < run; ++k) {
          sum += double{in[(t * rows + m) * run + k]} *
                 weights[(t * run + k) * width + n];
        }
      }
      if (tile.scale != nullptr) sum *= scale[n];
      if (tile.bias != nullptr) sum += bias[n];
      if (tile.residual != nullptr) sum += before[m * stride + n];
      ASSERT_NEAR(got, Rectified(static_cast<float>(sum), tile.rectifier), 2e-5)
          << rows << " rows, " << columns << " columns, at " << m << "," << n;
    }
  }
}

TEST(FloatMicroKernelsTest, TilesOfAllSizesAgreeWithPlainLoops) {
  for (const MicroKernel* entry : Usable(MicroKernelKind::kFloatGemm)) {
    SCOPED_TRACE(entry->name);
    Numbers random;
    for (int i = 0; i < 1500; ++i) {
      CheckTile(*entry->run.float_gemm, i % 2 == 0, &random);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(FloatMicroKernelsTest, ARowBySeveralPanelsIsWhatEachPanelGives) {
  for (const MicroKernel* entry : Usable(MicroKernelKind::kFloatGemm)) {
    Numbers random;
    const int width = entry->run.float_gemm->width;
    constexpr int kRun = 37;
    const std::vector<float> in = random.Some(kRun);
    const std::vector<float> weights =
        random.Some(kRun * int64_t{width} * kRowPanels);
    const std::vector<float> bias = random.Some(int64_t{width} * kRowPanels);
    const float* input = in.data();
    for (int columns = 1; columns <= kRowPanels * width; ++columns) {
      // One more, which nobody may write.
      std::vector<float> apart(columns + 1), together(columns + 1);
      FloatTile tile;
      tile.inputs = &input;
      tile.rows = 1;
      tile.taps = 1;
      tile.run = kRun;
      tile.rectifier = Rectifier::kRelu;
      tile.prefetch = reinterpret_cast<const char*>(weights.data());
      for (int from = 0; from < columns; from += width) {
        tile.columns = std::min(width, columns - from);
        tile.weights = weights.data() + from * kRun;
        tile.bias = bias.data() + from;
        tile.out = apart.data() + from;
        const bool is_narrow = tile.columns <= width / 2;
        (is_narrow ? entry->run.float_gemm->narrow
                   : entry->run.float_gemm->wide)(tile);
      }
      tile.weights = weights.data();
      tile.bias = bias.data();
      tile.out = together.data();
      tile.columns = columns;
      entry->run.float_gemm->row(tile, kRun * width);
      ASSERT_EQ(apart, together)
          << entry->name << ", " << columns << " columns";
    }
  }
}

// Rows of weights as they are stored, from any byte on.
void CheckRows(const FloatTiles& tiles, Numbers* random) {
  const int count = random->Pick(0, 40), columns = random->Pick(1, 100);
  const int stride = columns + random->Pick(0, 5), shift = random->Pick(0, 3);
  const std::vector<float> in = random->Some(count);
  const std::vector<float> weights = random->Some(count * int64_t{stride});
  const std::vector<float> before = random->Some(columns + 3);
  std::vector<float> sums = before;
  FloatRows rows;
  rows.inputs = in.data();
  rows.count = count;
  rows.weights = weights.data() + shift;
  rows.row_stride = stride;
  rows.columns = std::max(1, columns - shift);
  tiles.add_rows(rows, sums.data());
  for (int64_t n = 0; n < static_cast<int64_t>(sums.size()); ++n) {
    float sum = before[n];
    for (int k = 0; n < rows.columns && k < count; ++k) {
      sum = std::fma(in[k], rows.weights[k * stride + n], sum);
    }
    ASSERT_EQ(sums[n], sum) << count << "x" << rows.columns << ", at " << n;
  }
}

TEST(FloatMicroKernelsTest, RowsOfAnySizeAreAddedInTheirOrder) {
  for (const MicroKernel* entry : Usable(MicroKernelKind::kFloatGemm)) {
    SCOPED_TRACE(entry->name);
    Numbers random;
    for (int i = 0; i < 300; ++i) {
      CheckRows(*entry->run.float_gemm, &random);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(FloatMicroKernelsTest, NotANumberGoesThroughRectifiers) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const MicroKernel* entry : Usable(MicroKernelKind::kFloatGemm)) {
    for (const Rectifier rectifier : {Rectifier::kRelu, Rectifier::kRelu6}) {
      const std::vector<float> weights(entry->run.float_gemm->width, 1.0f);
      std::vector<float> out(entry->run.float_gemm->width, 0.0f);
      const float* input = &nan;
      FloatTile tile;
      tile.inputs = &input;
      tile.rows = 1;
      tile.taps = 1;
      tile.run = 1;
      tile.weights = weights.data();
      tile.out = out.data();
      tile.columns = entry->run.float_gemm->width;
      tile.rectifier = rectifier;
      tile.prefetch = reinterpret_cast<const char*>(weights.data());
      entry->run.float_gemm->wide(tile);
      for (float value : out) EXPECT_TRUE(std::isnan(value)) << entry->name;
    }
  }
}

enum class Kind { kDepthwise, kMax, kAverage };

void CheckWindow(const FloatWindows& windows, Kind kind, Numbers* random) {
  const int channels = random->Pick(1, 50), cells = random->Pick(1, 9);
  const int pixels = random->Pick(1, 20);
  const std::vector<float> image =
      random->Some((cells + pixels) * int64_t{channels});
  const std::vector<float> filter = random->Some(cells * channels);
  const std::vector<float> bias = random->Some(channels);
  std::vector<float> out(pixels * channels);
  std::vector<const float*> inputs, weights;
  for (int i = 0; i < cells; ++i) {
    inputs.push_back(image.data() + i * channels);
    weights.push_back(filter.data() + i * channels);
  }
  FloatWindow window;
  window.inputs = inputs.data();
  window.weights = weights.data();
  window.cells = cells;
  window.pixels = pixels;
  window.pixel_stride = channels;
  window.channels = channels;
  window.bias = bias.data();
  window.out = out.data();
  window.out_stride = channels;
  const auto run = kind == Kind::kDepthwise ? windows.depthwise
                   : kind == Kind::kMax     ? windows.max
                                            : windows.average;
  run(window);
  for (int p = 0; p < pixels; ++p) {
    for (int c = 0; c < channels; ++c) {
      double sum = 0, largest = -1e30;
      for (int i = 0; i < cells; ++i) {
        const double x = image[(p + i) * channels + c];
        sum += kind == Kind::kDepthwise ? x * filter[i * channels + c] : x;
        largest = std::max(largest, x);
      }
      if (kind == Kind::kAverage) sum /= cells;
      if (kind == Kind::kMax) sum = largest;
      ASSERT_NEAR(out[p * channels + c], sum + bias[c], 1e-5)
          << channels << " channels, " << cells << " cells, at " << p;
    }
  }
}

TEST(FloatMicroKernelsTest, WindowsOfAllSizesAgreeWithPlainLoops) {
  for (const MicroKernel* entry : Usable(MicroKernelKind::kFloatWindows)) {
    SCOPED_TRACE(entry->name);
    Numbers random;
    for (const Kind kind : {Kind::kDepthwise, Kind::kMax, Kind::kAverage}) {
      for (int i = 0; i < 300; ++i) {
        CheckWindow(*entry->run.float_windows, kind, &random);
        if (HasFatalFailure()) return;
      }
    }
  }
}

// One tile whose pixels are partly missing.
void CheckWinograd(const WinogradTransforms& winograd, Numbers* random) {
  const int channels = kWinogradChannels * random->Pick(1, 3);
  const int width = 16, columns = random->Pick(1, width);
  // Positions further apart than they are long.
  const int in_stride = channels + 5, filter_stride = channels * width + 3;
  const std::vector<float> image = random->Some(kWinogradPositions * channels);
  const std::vector<float> panel =
      random->Some(kWinogradTaps * channels * width);
  const std::vector<float> bias = random->Some(width);
  std::vector<float> in(kWinogradPositions * in_stride);
  std::vector<float> filters(kWinogradPositions * filter_stride);
  std::vector<float> sums(kWinogradPositions * width);
  WinogradInputs inputs;
  for (int i = 0; i < kWinogradPositions; ++i) {
    inputs.pixels[i] = image.data() + i * channels;
  }
  inputs.channels = channels;
  inputs.to = in.data();
  inputs.position_stride = in_stride;
  winograd.inputs(inputs);
  winograd.filters(
      {panel.data(), channels, width, filters.data(), filter_stride});
  for (int i = 0; i < kWinogradPositions; ++i) {
    for (int k = 0; k < channels; ++k) {
      for (int n = 0; n < width; ++n) {
        sums[i * width + n] +=
            in[i * in_stride + k] * filters[i * filter_stride + k * width + n];
      }
    }
  }
  const std::vector<float> before = random->Some(4 * width);
  std::vector<float> out = before;
  WinogradResults results;
  results.sums = sums.data();
  results.position_stride = width;
  if (random->Pick(0, 1) == 1) results.scale = bias.data();
  if (random->Pick(0, 1) == 1) results.bias = bias.data();
  results.columns = columns;
  results.rectifier = static_cast<Rectifier>(random->Pick(0, 2));
  const bool has_residual = random->Pick(0, 1) == 1;
  for (int pixel = 0; pixel < 4; ++pixel) {
    if (random->Pick(0, 4) == 0) continue;
    results.out[pixel] = out.data() + pixel * width;
    if (has_residual) results.residual[pixel] = results.out[pixel];
  }
  ASSERT_EQ(winograd.results(results), 0u);
  for (int i = 0; i < 4 * width; ++i) {
    const int pixel = i / width, n = i % width;
    if (results.out[pixel] == nullptr || n >= columns) {
      ASSERT_EQ(out[i], before[i]) << "is not there";
      continue;
    }
    double sum = 0;
    for (int tap = 0; tap < kWinogradTaps; ++tap) {
      const int at = (pixel / 2 + tap / 3) * 4 + pixel % 2 + tap % 3;
      for (int k = 0; k < channels; ++k) {
        sum += double{image[at * channels + k]} *
               panel[(tap * channels + k) * width + n];
      }
    }
    if (results.scale != nullptr) sum *= bias[n];
    if (results.bias != nullptr) sum += bias[n];
    if (has_residual) sum += before[i];
    ASSERT_NEAR(out[i], Rectified(static_cast<float>(sum), results.rectifier),
                2e-5)
        << channels << " channels, " << columns << " columns, at " << i;
  }
}

TEST(FloatMicroKernelsTest, WinogradsTilesAgreeWithPlainLoops) {
  for (const MicroKernel* entry : Usable(MicroKernelKind::kWinograd)) {
    SCOPED_TRACE(entry->name);
    Numbers random;
    for (int i = 0; i < 300; ++i) {
      CheckWinograd(*entry->run.winograd, &random);
      if (HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace optfarm::runtime
#endif
