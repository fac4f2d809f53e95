// Conv2D, Conv2DBackpropInput, DepthwiseConv2dNative and pooling: small cases
// by hand, and many geometries against the definition as a plain loop.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/engine/runtime/run_op.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

struct Geometry {
  int64_t height, width, channels;
  int64_t filter_y, filter_x, filters;
  int64_t stride_y, stride_x;
  int64_t dilation;
  std::string padding;
};

// Position of the window's first cell, and the number of positions.
struct Axis {
  int64_t before = 0;
  int64_t out = 0;
};

Axis PlaceAxis(int64_t in, int64_t size, int64_t stride, int64_t dilation,
               const std::string& padding) {
  const int64_t extent = (size - 1) * dilation + 1;
  if (padding == "VALID") return {0, (in - extent) / stride + 1};
  const int64_t out = (in + stride - 1) / stride;
  return {std::max<int64_t>(0, (out - 1) * stride + extent - in) / 2, out};
}

// The definition. For a depthwise convolution `filters` counts per channel.
std::vector<float> ConvolvePlainly(const Tensor& in, const Tensor& filter,
                                   const Geometry& g, bool is_depthwise) {
  const Axis y =
      PlaceAxis(g.height, g.filter_y, g.stride_y, g.dilation, g.padding);
  const Axis x =
      PlaceAxis(g.width, g.filter_x, g.stride_x, g.dilation, g.padding);
  const int64_t depth = is_depthwise ? g.channels * g.filters : g.filters;
  std::vector<float> out;
  for (int64_t n = 0; n < in.dim(0); ++n) {
    for (int64_t oy = 0; oy < y.out; ++oy) {
      for (int64_t ox = 0; ox < x.out; ++ox) {
        for (int64_t o = 0; o < depth; ++o) {
          double sum = 0;
          for (int64_t k = 0; k < g.filter_y * g.filter_x * g.channels; ++k) {
            const int64_t c = k % g.channels;
            if (is_depthwise && c != o / g.filters) continue;
            const int64_t iy = oy * g.stride_y - y.before +
                               k / g.channels / g.filter_x * g.dilation;
            const int64_t ix = ox * g.stride_x - x.before +
                               k / g.channels % g.filter_x * g.dilation;
            if (iy < 0 || iy >= g.height || ix < 0 || ix >= g.width) continue;
            sum +=
                double{in.data<float>()[((n * g.height + iy) * g.width + ix) *
                                            g.channels +
                                        c]} *
                filter.data<float>()[k * g.filters +
                                     (is_depthwise ? o % g.filters : o)];
          }
          out.push_back(static_cast<float>(sum));
        }
      }
    }
  }
  return out;
}

Op& Window(Op& op, const Geometry& g) {
  return op.Ints("strides", {1, g.stride_y, g.stride_x, 1})
      .Ints("dilations", {1, g.dilation, g.dilation, 1})
      .Text("padding", g.padding);
}

class GeometryTest : public ::testing::TestWithParam<Geometry> {};

TEST_P(GeometryTest, Conv2DFollowsTheDefinition) {
  const Geometry& g = GetParam();
  const Tensor in = Scattered({2, g.height, g.width, g.channels}, 1);
  const Tensor filter =
      Scattered({g.filter_y, g.filter_x, g.channels, g.filters}, 2);
  Op op("Conv2D");
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor out,
                               Window(op, g).In(in).In(filter).Run());
  EXPECT_THAT(
      ValuesOf<float>(out),
      Pointwise(FloatNear(1e-4f), ConvolvePlainly(in, filter, g, false)));
}

TEST_P(GeometryTest, DepthwiseConvFollowsTheDefinition) {
  const Geometry& g = GetParam();
  const Tensor in = Scattered({2, g.height, g.width, g.channels}, 3);
  const Tensor filter =
      Scattered({g.filter_y, g.filter_x, g.channels, g.filters}, 4);
  Op op("DepthwiseConv2dNative");
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor out,
                               Window(op, g).In(in).In(filter).Run());
  EXPECT_THAT(
      ValuesOf<float>(out),
      Pointwise(FloatNear(1e-4f), ConvolvePlainly(in, filter, g, true)));
}

// <Conv(x), y> = <x, ConvTransposed(y)> for every x and y.
TEST_P(GeometryTest, BackpropInputIsTheAdjointOfConv2D) {
  const Geometry& g = GetParam();
  const Tensor x = Scattered({2, g.height, g.width, g.channels}, 5);
  const Tensor filter =
      Scattered({g.filter_y, g.filter_x, g.channels, g.filters}, 6);
  Op forward("Conv2D");
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor image,
                               Window(forward, g).In(x).In(filter).Run());
  const Tensor y = Scattered(image.shape(), 7);
  Op backward("Conv2DBackpropInput");
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor back,
                               Window(backward, g)
                                   .In(Ints({2, static_cast<int32_t>(g.height),
                                             static_cast<int32_t>(g.width),
                                             static_cast<int32_t>(g.channels)}))
                                   .In(filter)
                                   .In(y)
                                   .Run());
  ASSERT_EQ(back.shape(), x.shape());
  double left = 0;
  double right = 0;
  for (int64_t i = 0; i < y.num_elements(); ++i) {
    left += double{image.data<float>()[i]} * y.data<float>()[i];
  }
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    right += double{x.data<float>()[i]} * back.data<float>()[i];
  }
  EXPECT_NEAR(left, right, 1e-3);
}

INSTANTIATE_TEST_SUITE_P(
    Geometries, GeometryTest,
    ::testing::Values(Geometry{5, 5, 1, 3, 3, 1, 1, 1, 1, "SAME"},
                      Geometry{6, 7, 3, 3, 2, 4, 2, 2, 1, "SAME"},
                      Geometry{7, 6, 2, 3, 3, 3, 1, 2, 1, "VALID"},
                      Geometry{9, 9, 17, 3, 3, 2, 2, 2, 1, "SAME"},
                      Geometry{4, 4, 5, 1, 1, 6, 1, 1, 1, "VALID"},
                      Geometry{5, 5, 2, 1, 1, 3, 2, 2, 1, "SAME"},
                      Geometry{8, 8, 2, 3, 3, 2, 1, 1, 2, "SAME"},
                      Geometry{9, 8, 2, 2, 3, 2, 1, 1, 3, "VALID"},
                      Geometry{3, 3, 2, 7, 7, 2, 1, 1, 1, "SAME"},
                      Geometry{40, 40, 4, 5, 5, 8, 1, 1, 1, "SAME"}));

TEST(Conv2DTest, ExplicitPaddingIsTakenAsGiven) {
  Op op("Conv2D");
  op.Ints("strides", {1, 1, 1, 1})
      .Text("padding", "EXPLICIT")
      .Ints("explicit_paddings", {0, 0, 1, 0, 0, 2, 0, 0})
      .In(Floats({1, 1, 1, 1}, {3}))
      .In(Floats({1, 1, 1, 1}, {2}));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor out, op.Run());
  EXPECT_EQ(out.shape(), Shape({1, 2, 3, 1}));
  EXPECT_THAT(ValuesOf<float>(out), ElementsAre(0, 0, 0, 6, 0, 0));
}

TEST(Conv2DTest, NchwIsTheSameImageTransposed) {
  const Tensor in = Scattered({2, 5, 4, 3}, 8);
  const Tensor filter = Scattered({3, 3, 3, 2}, 9);
  Op plain("Conv2D");
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor want,
                               plain.Ints("strides", {1, 2, 1, 1})
                                   .Text("padding", "SAME")
                                   .In(in)
                                   .In(filter)
                                   .Run());
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor flipped,
      Op("Transpose").In(in).In(Ints({0, 3, 1, 2})).Run());
  Op nchw("Conv2D");
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor got,
                               nchw.Ints("strides", {1, 1, 2, 1})
                                   .Text("padding", "SAME")
                                   .Text("data_format", "NCHW")
                                   .In(flipped)
                                   .In(filter)
                                   .Run());
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor back, Op("Transpose").In(got).In(Ints({0, 2, 3, 1})).Run());
  EXPECT_EQ(ValuesOf<float>(back), ValuesOf<float>(want));
}

// The fused ops are what they are made of.
TEST(FusedConvolutionTest, ResizesAndPadsFirst) {
  const Tensor image = Floats({1, 2, 3, 1}, {1, 2, 3, 4, 5, 6});
  const Tensor size = Tensor::FromValues<int32_t>({2}, {4, 5});
  const Tensor margins =
      Tensor::FromValues<int32_t>({4, 2}, {0, 0, 1, 2, 2, 1, 0, 0});
  const Tensor filter = Floats({2, 2, 1, 2}, {1, -1, 2, 0, 0, 3, -2, 1});
  const auto convolution = [&](const char* op) {
    Op made(op);
    made.Type("T", tensorflow::DT_FLOAT)
        .Ints("strides", {1, 2, 1, 1})
        .Text("padding", "SAME")
        .Text("mode", "SYMMETRIC");
    return made;
  };
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor resized,
                               Op("ResizeBilinear")
                                   .Type("T", tensorflow::DT_FLOAT)
                                   .Bool("align_corners", true)
                                   .In(image)
                                   .In(size)
                                   .Run());
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor padded,
                               Op("MirrorPad")
                                   .Type("T", tensorflow::DT_FLOAT)
                                   .Text("mode", "SYMMETRIC")
                                   .In(resized)
                                   .In(margins)
                                   .Run());
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor expected, convolution("Conv2D").In(padded).In(filter).Run());
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor fused,
                               convolution("FusedResizeAndPadConv2D")
                                   .Bool("resize_align_corners", true)
                                   .In(image)
                                   .In(size)
                                   .In(margins)
                                   .In(filter)
                                   .Run());
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor only_padded,
      convolution("FusedPadConv2D").In(resized).In(margins).In(filter).Run());
  EXPECT_EQ(ValuesOf<float>(fused), ValuesOf<float>(expected));
  EXPECT_EQ(ValuesOf<float>(only_padded), ValuesOf<float>(expected));
}

TEST(FusedConvolutionTest, RefusesAModeThatDoesNotExist) {
  EXPECT_THAT(Op("FusedPadConv2D")
                  .Type("T", tensorflow::DT_FLOAT)
                  .Ints("strides", {1, 1, 1, 1})
                  .Text("padding", "SAME")
                  .Text("mode", "CONSTANT")
                  .In(Floats({1, 1, 1, 1}, {1}))
                  .In(Floats({1, 1, 1, 1}, {1}))
                  .In(Floats({1, 1, 1, 1}, {1}))
                  .Run()
                  .status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("mode")));
}

TEST(Conv2DTest, WrongInputsAreErrorsThatNameThem) {
  const auto conv = [](const Tensor& in, const Tensor& filter) {
    return Op("Conv2D")
        .Ints("strides", {1, 1, 1, 1})
        .Text("padding", "VALID")
        .In(in)
        .In(filter)
        .Run();
  };
  EXPECT_THAT(conv(Counted({1, 4, 4, 3}), Counted({3, 3, 2, 1})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("[3,3,2,1] takes 2")));
  EXPECT_THAT(
      conv(Counted({4, 4, 3}), Counted({3, 3, 3, 1})),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("rank 4")));
  EXPECT_THAT(
      conv(Counted({1, 2, 2, 1}), Counted({5, 5, 1, 1})),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("does not fit")));
  EXPECT_THAT(conv(Ints({1, 1, 1, 1}, {1}), Counted({1, 1, 1, 1})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("must be float, but is int32")));
}

TEST(Conv2DTest, ZeroStrideIsRefusedWhenTheKernelIsMade) {
  EXPECT_THAT(
      Op("Conv2D")
          .Ints("strides", {1, 0, 1, 1})
          .Text("padding", "SAME")
          .In(Counted({1, 1, 1, 1}))
          .In(Counted({1, 1, 1, 1}))
          .Run(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("strides")));
}

TEST(Conv2DTest, NoChannelsGiveZeros) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor out,
                               Op("Conv2D")
                                   .Ints("strides", {1, 1, 1, 1})
                                   .Text("padding", "SAME")
                                   .In(Counted({1, 1, 2, 0}))
                                   .In(Counted({3, 3, 0, 1}))
                                   .Run());
  EXPECT_THAT(ValuesOf<float>(out), ElementsAre(0, 0));
}

Op Pool(const char* op, const Tensor& in) {
  return Op(op)
      .Ints("ksize", {1, 2, 2, 1})
      .Ints("strides", {1, 2, 2, 1})
      .Text("padding", "SAME")
      .In(in);
}

TEST(PoolingTest, CellsOutsideTheImageTakeNoPart) {
  const Tensor in = Floats({1, 3, 3, 1}, {-1, -2, -3, -4, -5, -6, -7, -8, -9});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor max, Pool("MaxPool", in).Run());
  EXPECT_THAT(ValuesOf<float>(max), ElementsAre(-1, -3, -7, -9));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor mean, Pool("AvgPool", in).Run());
  EXPECT_THAT(ValuesOf<float>(mean), ElementsAre(-3, -4.5, -7.5, -9));
}

TEST(PoolingTest, WindowOverChannelsIsNotSupported) {
  EXPECT_THAT(
      Op("MaxPool")
          .Ints("ksize", {1, 1, 1, 2})
          .Ints("strides", {1, 1, 1, 2})
          .Text("padding", "VALID")
          .In(Counted({1, 1, 1, 2}))
          .Run(),
      StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("channels")));
}

}  // namespace
}  // namespace optfarm::runtime
