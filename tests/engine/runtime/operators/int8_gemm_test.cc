// int8 matrix products and convolutions by each GEMM micro-kernel of the table,
// and by emulated ones of other shapes, against three plain loops: packing,
// indirection buffers, drivers and kernels together.

#ifdef OPTFARM_FAST_KERNELS
#include "engine/runtime/operators/int8_gemm.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "engine/runtime/operators/int8_cost.h"
#include "engine/runtime/operators/int8_kernels.h"
#include "engine/runtime/operators/int8_weights.h"
#include "engine/runtime/ukernels/micro_kernel_catalog.h"
#include "tests/engine/runtime/emulated_kernels.h"
#include "tests/engine/runtime/usable_entries.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

struct Case {
  std::string name;
  // Image: height, width, channels; window: height, width.
  int64_t height = 1, width = 1, channels = 1, size_y = 1, size_x = 1;
  int64_t columns = 1;
  int64_t stride = 1, dilation = 1;
  int64_t batch = 1;
  // Of the weights; 128 and `is_signed`: qint8.
  int32_t weights_zero_point = 128;
  bool is_signed = false;
  // Whether few or many weights lie far from the zero point.
  int outliers = 0;
};

void PrintTo(const Case& test, std::ostream* out) { *out << test.name; }

// Stores accumulators as rows x columns.
class Collector final : public Int8Sink {
 public:
  Collector(int64_t rows, int64_t columns)
      : columns_(columns), values_(static_cast<size_t>(rows * columns)) {}

  void Take(const Int8Accumulators& tile, int64_t row) const override {
    for (int r = 0; r < tile.rows; ++r) {
      for (int c = 0; c < tile.nr && tile.channel + c < columns_; ++c) {
        values_[(row + r) * columns_ + tile.channel + c] =
            tile.data[r * tile.nr + c];
      }
    }
  }
  const std::vector<int32_t>& values() const { return values_; }

 private:
  int64_t columns_;
  mutable std::vector<int32_t> values_;
};

class Int8GemmTest : public ::testing::TestWithParam<Case> {
 protected:
  Int8GemmTest() {
    const Case& p = GetParam();
    input_.batch = p.batch;
    input_.channels = p.channels;
    input_.zero_point = 117;
    WindowAxis axis;
    axis.in = p.height;
    axis.size = p.size_y;
    axis.stride = p.stride;
    axis.dilation = p.dilation;
    input_.window.y = *PlaceWindowAxis(axis, Padding::kSame);
    axis.in = p.width;
    axis.size = p.size_x;
    input_.window.x = *PlaceWindowAxis(axis, Padding::kSame);
    values_.resize(p.batch * p.height * p.width * p.channels);
    for (uint8_t& value : values_) value = static_cast<uint8_t>(random_());
    input_.values = values_.data();
    filter_ = *Tensor::Allocate(
        p.is_signed ? tensorflow::DT_QINT8 : tensorflow::DT_QUINT8,
        *Shape::FromDims({p.size_y, p.size_x, p.channels, p.columns}));
    std::uniform_int_distribution<int> near(-100, 100);
    auto* weights = static_cast<uint8_t*>(filter_.raw());
    for (int64_t i = 0; i < filter_.num_elements(); ++i) {
      const int around = p.is_signed ? 0 : p.weights_zero_point;
      weights[i] = static_cast<uint8_t>(std::clamp(around + near(random_),
                                                   p.is_signed ? -128 : 0,
                                                   p.is_signed ? 127 : 255));
      if (p.outliers > 0 && i % p.outliers == 0) {
        weights[i] = p.weights_zero_point > 128 ? 0 : 255;
      }
    }
    for (int64_t c = 0; c < p.columns; ++c) {
      bias_.push_back(static_cast<int32_t>(random_()));
    }
  }

  int32_t WeightAt(int64_t y, int64_t x, int64_t channel, int64_t c) const {
    const Case& p = GetParam();
    const uint8_t value = static_cast<const uint8_t*>(
        filter_.raw())[((y * p.size_x + x) * p.channels + channel) * p.columns +
                       c];
    return p.is_signed ? int32_t{static_cast<int8_t>(value)}
                       : value - p.weights_zero_point;
  }

  int32_t InputAt(int64_t image, int64_t y, int64_t x, int64_t channel) const {
    const Case& p = GetParam();
    if (y < 0 || y >= p.height || x < 0 || x >= p.width) return 0;
    return values_[((image * p.height + y) * p.width + x) * p.channels +
                   channel] -
           input_.zero_point;
  }

  std::vector<int32_t> Expected() const {
    const Case& p = GetParam();
    const WindowAxis &y = input_.window.y, &x = input_.window.x;
    std::vector<int32_t> expected;
    for (int64_t row = 0; row < input_.rows(); ++row) {
      const int64_t image = row / (y.out * x.out);
      const int64_t top = row / x.out % y.out * y.stride - y.pad_before;
      const int64_t left = row % x.out * x.stride - x.pad_before;
      for (int64_t c = 0; c < p.columns; ++c) {
        auto sum = static_cast<uint32_t>(bias_[c]);
        for (int64_t fy = 0; fy < p.size_y; ++fy) {
          for (int64_t fx = 0; fx < p.size_x; ++fx) {
            for (int64_t k = 0; k < p.channels; ++k) {
              sum += static_cast<uint32_t>(InputAt(image, top + fy * p.dilation,
                                                   left + fx * p.dilation, k) *
                                           WeightAt(fy, fx, k, c));
            }
          }
        }
        expected.push_back(static_cast<int32_t>(sum));
      }
    }
    return expected;
  }

  // The GEMM by this kernel, as a layer does it.
  std::vector<int32_t> Made(const MicroKernel& kernel) {
    const PreferredMicroKernels preferred({&kernel});
    const Int8Kernels kernels = SelectInt8Kernels(HostCpuFeatures());
    EXPECT_EQ(kernels.gemm, &kernel);
    return Made(kernels);
  }

  std::vector<int32_t> Made(const Int8Kernels& kernels) {
    const Case& p = GetParam();
    const MicroKernel& kernel = *kernels.gemm;
    const PanelLayout& panel = kernels.panel();
    const bool is_by_row = p.channels % panel.kr != 0 && p.dilation == 1;
    const int64_t depth = p.size_y * p.size_x * p.channels;
    const Int8Matrix matrix =
        is_by_row
            ? MakeInt8RowMatrix(filter_.shape(), p.weights_zero_point, panel)
            : MakeInt8Matrix(depth, p.columns, p.weights_zero_point, panel);
    const absl::StatusOr<Tensor> packed =
        is_by_row ? Int8Weights::PackRows(filter_, matrix, &pool_)
                  : Int8Weights::Pack(filter_, matrix, false, &pool_);
    EXPECT_TRUE(packed.ok());
    const Int8Weights weights(PackedWeights(*packed), matrix);
    const Int8Gemm gemm = {.input = input_,
                           .weights = weights,
                           .kernels = kernels,
                           .bias = bias_.data(),
                           .is_by_row = is_by_row};
    const Collector collector(input_.rows(), p.columns);
    Int8Extremes extremes;
    Multiply(gemm, &pool_, collector, &extremes);
    for (int64_t c = 0; c < p.columns; ++c) {
      int32_t low = INT32_MAX, high = INT32_MIN;
      for (int64_t row = 0; row < input_.rows(); ++row) {
        low = std::min(low, collector.values()[row * p.columns + c]);
        high = std::max(high, collector.values()[row * p.columns + c]);
      }
      EXPECT_EQ(extremes.low[c], low) << kernel.name;
      EXPECT_EQ(extremes.high[c], high) << kernel.name;
    }
    const Collector again(input_.rows(), p.columns);
    Multiply(gemm, &pool_, again);
    EXPECT_EQ(again.values(), collector.values()) << kernel.name;
    return collector.values();
  }

  std::mt19937 random_{11};
  ThreadPool pool_{2};
  Int8Activations input_;
  std::vector<uint8_t> values_;
  Tensor filter_;
  std::vector<int32_t> bias_;
};

TEST_P(Int8GemmTest, IsThreeLoopsWhateverTheShapeOfTheKernel) {
  const std::vector<int32_t> expected = Expected();
  std::vector<const MicroKernel*> kernels = EmulatedKernels();
  for (const MicroKernel* kernel : UsableEntries(MicroKernelKind::kInt8Gemm)) {
    kernels.push_back(kernel);
  }
  for (const MicroKernel* kernel : kernels) {
    EXPECT_EQ(Made(*kernel), expected) << kernel->name;
  }
}

// Where small products are left to another kernel, also on a machine that has
// the unit: here it is given all of them.
TEST_P(Int8GemmTest, IsThreeLoopsByAMatrixUnit) {
  const std::vector<int32_t> expected = Expected();
  for (const MicroKernel* entry :
       UsableEntries(MicroKernelKind::kInt8MatrixGemm)) {
    MicroKernel kernel = *entry;
    kernel.kind = MicroKernelKind::kInt8Gemm;
    EXPECT_EQ(Made(kernel), expected) << kernel.name;
  }
}

// Panels that are filled up for a matrix unit are whole for the kernel beside
// it.
TEST_P(Int8GemmTest, IsThreeLoopsBesideAMatrixUnit) {
  Int8Kernels kernels;
  {
    const PreferredMicroKernels preferred(
        {&kInt8GemmPortable, &kInt8MatrixGemmEmulatedAmx});
    kernels = SelectInt8Kernels({});
  }
  ASSERT_EQ(kernels.matrix, &kInt8MatrixGemmEmulatedAmx);
  EXPECT_EQ(Made(kernels), Expected());
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, Int8GemmTest,
    ::testing::Values(
        Case{.name = "one_number"},
        Case{.name = "matrix", .width = 29, .channels = 64, .columns = 40},
        Case{.name = "deep_matrix", .width = 7, .channels = 260, .columns = 97},
        Case{.name = "odd_matrix", .width = 33, .channels = 37, .columns = 5},
        Case{.name = "matrix_of_tails",
             .width = 61,
             .channels = 72,
             .columns = 33},
        Case{.name = "large_matrix",
             .width = 101,
             .channels = 320,
             .columns = 160},
        Case{.name = "matrix_with_residual",
             .width = 70,
             .channels = 128,
             .columns = 96,
             .weights_zero_point = 131,
             .outliers = 3000},
        Case{.name = "rows_of_many_pixels",
             .height = 5,
             .width = 28,
             .channels = 64,
             .size_y = 3,
             .size_x = 3,
             .columns = 64,
             .batch = 2},
        Case{.name = "rows_of_two_tiles",
             .height = 4,
             .width = 57,
             .channels = 64,
             .size_y = 2,
             .size_x = 3,
             .columns = 33},
        Case{.name = "stride_of_many_pixels",
             .height = 5,
             .width = 55,
             .channels = 128,
             .size_y = 3,
             .size_x = 3,
             .columns = 40,
             .stride = 2},
        Case{.name = "stride_without_padding",
             .height = 6,
             .width = 60,
             .channels = 64,
             .columns = 48,
             .stride = 2},
        Case{.name = "dilation_of_many_pixels",
             .height = 7,
             .width = 30,
             .channels = 64,
             .size_y = 3,
             .size_x = 3,
             .columns = 16,
             .dilation = 2},
        Case{.name = "residual_of_many_pixels",
             .height = 4,
             .width = 29,
             .channels = 64,
             .size_y = 3,
             .size_x = 3,
             .columns = 70,
             .weights_zero_point = 131,
             .outliers = 12000},
        Case{.name = "zero_point_of_many_pixels",
             .height = 4,
             .width = 29,
             .channels = 64,
             .size_y = 3,
             .size_x = 3,
             .columns = 70,
             .weights_zero_point = 140,
             .outliers = 7},
        Case{.name = "pixels",
             .height = 9,
             .width = 11,
             .channels = 24,
             .size_y = 3,
             .size_x = 3,
             .columns = 20,
             .batch = 2},
        Case{.name = "stride",
             .height = 9,
             .width = 11,
             .channels = 16,
             .size_y = 3,
             .size_x = 2,
             .columns = 17,
             .stride = 2},
        Case{.name = "rows_of_few_channels",
             .height = 12,
             .width = 19,
             .channels = 3,
             .size_y = 5,
             .size_x = 3,
             .columns = 33,
             .stride = 2},
        Case{.name = "copies",
             .height = 8,
             .width = 9,
             .channels = 5,
             .size_y = 3,
             .size_x = 3,
             .columns = 9,
             .dilation = 2},
        Case{.name = "signed_weights",
             .height = 6,
             .width = 7,
             .channels = 12,
             .size_y = 2,
             .size_x = 2,
             .columns = 65,
             .is_signed = true},
        Case{.name = "residual",
             .height = 6,
             .width = 7,
             .channels = 64,
             .size_y = 3,
             .size_x = 3,
             .columns = 35,
             .weights_zero_point = 131,
             .outliers = 12000},
        Case{.name = "residual_of_rows",
             .height = 6,
             .width = 17,
             .channels = 3,
             .size_y = 3,
             .size_x = 3,
             .columns = 8,
             .weights_zero_point = 131,
             .outliers = 1000},
        Case{.name = "zero_point_remains",
             .height = 6,
             .width = 7,
             .channels = 16,
             .size_y = 3,
             .size_x = 3,
             .columns = 35,
             .weights_zero_point = 140,
             .outliers = 7},
        Case{.name = "zero_point_beyond_values",
             .width = 13,
             .channels = 20,
             .columns = 18,
             .weights_zero_point = -20}),
    [](const auto& test) { return test.param.name; });

// An entry of AMX's shape that the system grants or not.
int requests = 0;

template <bool kIsGranted>
constexpr MicroKernel AskingKernel() {
  MicroKernel kernel = kInt8GemmEmulatedAmx;
  kernel.request_permission = [] {
    ++requests;
    return kIsGranted;
  };
  return kernel;
}

TEST(EmulatedKernelsTest, ThePermissionIsAskedForOnce) {
  static constexpr MicroKernel kGranted = AskingKernel<true>();
  requests = 0;
  for (int i = 0; i < 3; ++i) {
    const PreferredMicroKernels preferred({&kGranted});
    EXPECT_EQ(SelectMicroKernel(MicroKernelKind::kInt8Gemm, HostCpuFeatures()),
              &kGranted);
  }
  EXPECT_EQ(requests, 1);
}

TEST(EmulatedKernelsTest, WithoutPermissionTheNextEntryIsUsed) {
  static constexpr MicroKernel kRefused = AskingKernel<false>();
  const MicroKernel* usual =
      SelectMicroKernel(MicroKernelKind::kInt8Gemm, HostCpuFeatures());
  requests = 0;
  for (int i = 0; i < 2; ++i) {
    const PreferredMicroKernels preferred({&kRefused});
    EXPECT_EQ(SelectMicroKernel(MicroKernelKind::kInt8Gemm, HostCpuFeatures()),
              usual);
  }
  EXPECT_EQ(requests, 1);
}

TEST(MatrixUnitTest, IsOfferedBesideAKernelThatReadsItsPanels) {
  const PreferredMicroKernels fitting(
      {&kInt8GemmPortable, &kInt8MatrixGemmEmulatedAmx});
  EXPECT_EQ(SelectInt8Kernels({}).matrix, &kInt8MatrixGemmEmulatedAmx);
  EXPECT_EQ(SelectInt8Kernels({}).panel(), kInt8MatrixGemmEmulatedAmx.panel);
  const PreferredMicroKernels others(
      {&kInt8GemmEmulatedI8mm, &kInt8MatrixGemmEmulatedAmx});
  EXPECT_EQ(SelectInt8Kernels({}).matrix, nullptr);
  EXPECT_EQ(SelectInt8Kernels({}).panel(), kInt8GemmEmulatedI8mm.panel);
}

// The products of tiles, and the configurations, that a layer of this size
// takes, on one thread.
struct TileUse {
  int64_t products = 0;
  int64_t configurations = 0;
  int64_t releases = 0;
};

TileUse UseOfTiles(int64_t rows, int64_t depth, int64_t columns) {
  const PreferredMicroKernels preferred(
      {&kInt8GemmPortable, &kInt8MatrixGemmEmulatedAmx});
  const std::vector<uint8_t> values(static_cast<size_t>(rows * depth), 3);
  Int8Activations input;
  input.values = values.data();
  input.batch = rows;
  input.channels = depth;
  input.window = Int8MatrixWindow();
  const Int8Kernels kernels = SelectInt8Kernels({});
  const Int8Matrix matrix =
      MakeInt8Matrix(depth, columns, kInt8Shift, kernels.panel());
  ThreadPool pool(1);
  const Tensor filter =
      *Tensor::Zeros(tensorflow::DT_QINT8, *Shape::FromDims({depth, columns}));
  const Int8Weights weights(
      PackedWeights(*Int8Weights::Pack(filter, matrix, false, &pool)), matrix);
  const amx::State before = amx::OfThread();
  Multiply({.input = input, .weights = weights, .kernels = kernels}, &pool,
           Collector(rows, columns));
  const amx::State& after = amx::OfThread();
  EXPECT_FALSE(after.is_configured);
  return {after.products - before.products,
          after.configurations - before.configurations,
          after.releases - before.releases};
}

TEST(MatrixUnitTest, IsConfiguredOnceForALayerAndReleased) {
  const TileUse use = UseOfTiles(64, 256, 128);
  // Registers of rows and of columns, blocks of the depth.
  EXPECT_EQ(use.products, 4 * 8 * 4);
  EXPECT_EQ(use.configurations, 1);
  EXPECT_EQ(use.releases, 1);
}

TEST(MatrixUnitTest, IsLeftAloneBySmallLayers) {
  for (const int64_t rows : {1, 2}) {
    const TileUse use = UseOfTiles(rows, 256, 128);
    EXPECT_EQ(use.products, 0) << rows;
    EXPECT_EQ(use.configurations, 0) << rows;
  }
}

TEST(MatrixUnitTest, IsPreferredWhereItsProductsPay) {
  // Pointwise layers of MobileNet and ResNet-50.
  EXPECT_TRUE(PrefersMatrixUnit({.rows = 3136, .depth = 128, .columns = 128}));
  EXPECT_TRUE(PrefersMatrixUnit({.rows = 49, .depth = 2048, .columns = 512}));
  // Windows of 3 x 3, whose rows are copied.
  EXPECT_TRUE(PrefersMatrixUnit(
      {.rows = 3136, .depth = 576, .columns = 64, .copies_rows = true}));
  // A classifier's one row, and a product that is all epilogue.
  EXPECT_FALSE(PrefersMatrixUnit({.rows = 1, .depth = 1024, .columns = 1001}));
  EXPECT_FALSE(PrefersMatrixUnit({.rows = 12544, .depth = 8, .columns = 8}));
}

}  // namespace
}  // namespace optfarm::runtime
#endif  // OPTFARM_FAST_KERNELS
