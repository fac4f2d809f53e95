// Every micro-kernel for float depthwise convolution and pooling, and for
// Winograd's convolution, that this processor can run against the oracle. Needs
// nothing but the kernels' own files.

#ifdef OPTFARM_FAST_KERNELS
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "engine/runtime/ukernels/float/float_window.h"
#include "engine/runtime/ukernels/float/winograd.h"
#include "tests/engine/runtime/oracle/float_oracle.h"
#include "tests/engine/runtime/ukernels/micro_kernel_cases.h"
#include "tests/engine/runtime/usable_entries.h"

namespace optfarm::runtime {
namespace {

oracle::FloatEpilogue RandomEpilogue(int channels, Random* random) {
  oracle::FloatEpilogue epilogue;
  if (random->Pick(0, 1) == 1) epilogue.scale = random->Reals(channels, -2, 2);
  if (random->Pick(0, 1) == 1) epilogue.bias = random->Reals(channels, -9, 9);
  epilogue.activation = static_cast<oracle::Activation>(random->Pick(0, 2));
  return epilogue;
}

// A window over `pixels` pixels, and its operands. Every 16th input is NaN
// where `has_nan`.
struct WindowCase {
  WindowCase(int channels, int pixels, bool has_nan, Random* random)
      : epilogue(RandomEpilogue(channels, random)) {
    plain.cells = random->Pick(1, 9);
    plain.channels = channels;
    plain.stride = random->Pick(1, 3);
    const int places = (pixels - 1) * plain.stride + plain.cells;
    plain.input = random->Reals(places * channels, -1, 1);
    plain.weights = random->Reals(plain.cells * channels, -1, 1);
    for (size_t i = 0; has_nan && i < plain.input.size(); i += 16) {
      plain.input[i] = std::numeric_limits<float>::quiet_NaN();
    }
    for (int i = 0; i < plain.cells; ++i) {
      inputs.push_back(plain.input.data() + i * channels);
      weights.push_back(plain.weights.data() + i * channels);
    }
    window.inputs = inputs.data();
    window.weights = weights.data();
    window.cells = plain.cells;
    window.pixels = pixels;
    window.pixel_stride = plain.stride * channels;
    window.channels = channels;
    if (!epilogue.scale.empty()) window.scale = epilogue.scale.data();
    if (!epilogue.bias.empty()) window.bias = epilogue.bias.data();
    window.rectifier = static_cast<Rectifier>(epilogue.activation);
    window.out_stride = channels + random->Pick(0, 3);
    out.assign(pixels * window.out_stride + 1, 77.0f);
    window.out = out.data();
  }
  WindowCase(const WindowCase&) = delete;
  WindowCase& operator=(const WindowCase&) = delete;

  oracle::FloatWindow plain;
  oracle::FloatEpilogue epilogue;
  std::vector<const float*> inputs, weights;
  std::vector<float> out;
  FloatWindow window;
};

class FloatWindowKernelTest
    : public ::testing::TestWithParam<const MicroKernel*> {
 protected:
  const FloatWindows& windows() const { return *GetParam()->run.float_windows; }

  // Calls check(test, got, pixel, channel) for all that `run` wrote.
  template <typename Check>
  void ForAllSizes(void (*run)(const FloatWindow& window), bool has_nan,
                   Check check) {
    for (int channels = 1; channels <= 50; ++channels) {
      for (int pixels = 1; pixels <= 16; ++pixels) {
        WindowCase test(channels, pixels, has_nan, &random_);
        run(test.window);
        SCOPED_TRACE(::testing::Message()
                     << channels << " channels, " << pixels << " pixels");
        for (size_t i = 0; i < test.out.size(); ++i) {
          const int p =
              static_cast<int>(i) / static_cast<int>(test.window.out_stride);
          const int c =
              static_cast<int>(i) % static_cast<int>(test.window.out_stride);
          if (p < pixels && c < channels) {
            check(test, test.out[i], p, c);
          } else {
            ASSERT_EQ(test.out[i], 77.0f) << "at " << p << ", " << c;
          }
          if (HasFailure()) return;
        }
      }
    }
  }
  Random random_;
};

TEST_P(FloatWindowKernelTest, DepthwiseSumsAreTheOraclesBitForBit) {
  ForAllSizes(
      windows().depthwise, false,
      [](const WindowCase& test, float got, int p, int c) {
        ASSERT_EQ(got, test.epilogue.Of(test.plain.Depthwise(p, c), c, 0))
            << p << ", " << c;
      });
}

TEST_P(FloatWindowKernelTest, MaximaAreTheOraclesAndLeaveNanOut) {
  ForAllSizes(windows().max, true,
              [](const WindowCase& test, float got, int p, int c) {
                ASSERT_EQ(got, test.epilogue.Of(test.plain.Max(p, c), c, 0))
                    << p << ", " << c;
              });
}

TEST_P(FloatWindowKernelTest, AveragesAreNearTheOracles) {
  ForAllSizes(windows().average, false,
              [](const WindowCase& test, float got, int p, int c) {
                ASSERT_NEAR(got,
                            test.epilogue.Near(test.plain.Average(p, c), c, 0),
                            4e-6)
                    << p << ", " << c;
              });
}

INSTANTIATE_TEST_SUITE_P(
    Table, FloatWindowKernelTest,
    ::testing::ValuesIn(UsableEntries(MicroKernelKind::kFloatWindows)),
    EntryName);

// A tile some of whose pixels are missing, with the 16 products between the
// transforms done by plain loops.
struct WinogradCase {
  WinogradCase(int channels, int columns, Random* random)
      : epilogue(RandomEpilogue(kWidth, random)),
        before(random->Reals(4 * kWidth, -1, 1)),
        out(before) {
    plain.channels = channels;
    plain.filters = kWidth;
    plain.image = random->Reals(kWinogradPositions * channels, -1, 1);
    plain.weights = random->Reals(kWinogradTaps * channels * kWidth, -1, 1);
    has_residual = random->Pick(0, 1) == 1;
    results.position_stride = kWidth;
    if (!epilogue.scale.empty()) results.scale = epilogue.scale.data();
    if (!epilogue.bias.empty()) results.bias = epilogue.bias.data();
    results.columns = columns;
    results.rectifier = static_cast<Rectifier>(epilogue.activation);
    for (int pixel = 0; pixel < 4; ++pixel) {
      if (random->Pick(0, 4) == 0) continue;
      results.out[pixel] = out.data() + pixel * kWidth;
      if (has_residual) results.residual[pixel] = results.out[pixel];
    }
  }
  WinogradCase(const WinogradCase&) = delete;
  WinogradCase& operator=(const WinogradCase&) = delete;

  uint32_t Run(const WinogradTransforms& winograd) {
    const int channels = plain.channels;
    // Positions further apart than they are long.
    const int in_stride = channels + 5, filter_stride = channels * kWidth + 3;
    std::vector<float> in(kWinogradPositions * in_stride);
    std::vector<float> filters(kWinogradPositions * filter_stride);
    sums.assign(kWinogradPositions * kWidth, 0.0f);
    WinogradInputs inputs;
    for (int i = 0; i < kWinogradPositions; ++i) {
      inputs.pixels[i] = plain.image.data() + i * channels;
    }
    inputs.channels = channels;
    inputs.to = in.data();
    inputs.position_stride = in_stride;
    winograd.inputs(inputs);
    winograd.filters({plain.weights.data(), channels, kWidth, filters.data(),
                      filter_stride});
    for (int i = 0; i < kWinogradPositions; ++i) {
      for (int k = 0; k < channels; ++k) {
        for (int n = 0; n < kWidth; ++n) {
          sums[i * kWidth + n] += in[i * in_stride + k] *
                                  filters[i * filter_stride + k * kWidth + n];
        }
      }
    }
    results.sums = sums.data();
    return winograd.results(results);
  }

  static constexpr int kWidth = 16;
  oracle::FloatConvolution plain;
  oracle::FloatEpilogue epilogue;
  bool has_residual = false;
  std::vector<float> before, out, sums;
  WinogradResults results;
};

class WinogradKernelTest : public ::testing::TestWithParam<const MicroKernel*> {
};

TEST_P(WinogradKernelTest, ResultsAreNearThoseOfAPlainConvolution) {
  Random random;
  for (int columns = 1; columns <= WinogradCase::kWidth; ++columns) {
    for (int i = 0; i < 20; ++i) {
      WinogradCase test(kWinogradChannels * random.Pick(1, 3), columns,
                        &random);
      ASSERT_EQ(test.Run(*GetParam()->run.winograd), 0u);
      for (size_t at = 0; at < test.out.size(); ++at) {
        const int pixel = static_cast<int>(at) / WinogradCase::kWidth;
        const int n = static_cast<int>(at) % WinogradCase::kWidth;
        if (test.results.out[pixel] == nullptr || n >= columns) {
          ASSERT_EQ(test.out[at], test.before[at]) << "is not there";
          continue;
        }
        const double residual = test.has_residual ? test.before[at] : 0.0;
        ASSERT_NEAR(test.out[at],
                    test.epilogue.Near(test.plain.Sum(pixel, n), n, residual),
                    4e-5)
            << test.plain.channels << " channels, " << columns
            << " columns, at " << at;
      }
    }
  }
}

TEST_P(WinogradKernelTest, ColumnsThatAreNotFiniteAreReportedAndNotStored) {
  const WinogradTransforms& winograd = *GetParam()->run.winograd;
  Random random;
  WinogradCase test(kWinogradChannels, WinogradCase::kWidth, &random);
  // All filters see this pixel.
  test.plain.image[5 * kWinogradChannels] =
      std::numeric_limits<float>::infinity();
  const uint32_t all = (1u << (WinogradCase::kWidth / winograd.lanes)) - 1;
  EXPECT_EQ(test.Run(winograd), all);
  EXPECT_EQ(test.out, test.before);
}

INSTANTIATE_TEST_SUITE_P(
    Table, WinogradKernelTest,
    ::testing::ValuesIn(UsableEntries(MicroKernelKind::kWinograd)), EntryName);

}  // namespace
}  // namespace optfarm::runtime
#endif  // OPTFARM_FAST_KERNELS
