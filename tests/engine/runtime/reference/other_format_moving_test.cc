// Ops that ONNX and TensorFlow Lite have and TensorFlow has not: indices,
// shapes that come as tensors, images, sound.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/engine/runtime/run_op.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;

Tensor Longs(const std::vector<int64_t>& values) {
  return Tensor::FromValues<int64_t>({static_cast<int64_t>(values.size())},
                                     values);
}
Tensor NoFloats() { return Floats({0}, {}); }

std::vector<float> Values(const Op& op) {
  const auto out = op.Run();
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() ? ValuesOf<float>(*out) : std::vector<float>();
}

TEST(ElementIndicesTest, GatherElementsCountsFromBothEnds) {
  EXPECT_THAT(Values(Op("GatherElements")
                         .Int("axis", 1)
                         .In(Floats({2, 3}, {1, 2, 3, 4, 5, 6}))
                         .In(Ints({2, 2}, {0, -1, 1, 1}))),
              ElementsAre(1, 3, 5, 5));
  EXPECT_THAT(Op("GatherElements")
                  .In(Floats({2}, {1, 2}))
                  .In(Ints({1}, {2}))
                  .Run()
                  .status(),
              StatusIs(absl::StatusCode::kInvalidArgument, ::testing::_));
}

TEST(ElementIndicesTest, ScatterElementsReduces) {
  const auto scattered = [](const char* reduction) {
    return Values(Op("ScatterElements")
                      .Text("reduction", reduction)
                      .In(Floats({3}, {1, 2, 3}))
                      .In(Ints({3}, {1, 1, -1}))
                      .In(Floats({3}, {10, 20, 0.5f})));
  };
  EXPECT_THAT(scattered("none"), ElementsAre(1, 20, 0.5f));
  EXPECT_THAT(scattered("add"), ElementsAre(1, 32, 3.5f));
  EXPECT_THAT(scattered("mul"), ElementsAre(1, 400, 1.5f));
  EXPECT_THAT(scattered("min"), ElementsAre(1, 2, 0.5f));
  EXPECT_THAT(scattered("max"), ElementsAre(1, 20, 3));
}

TEST(ElementIndicesTest, TensorScatterMulMultiplies) {
  EXPECT_THAT(Values(Op("TensorScatterMul")
                         .In(Floats({2, 2}, {1, 2, 3, 4}))
                         .In(Ints({2, 1}, {1, 1}))
                         .In(Floats({2, 2}, {10, 10, 1, 2}))),
              ElementsAre(1, 2, 30, 80));
}

TEST(ElementIndicesTest, NegativeIndicesCountFromTheEndIfTheyMay) {
  const auto gathered = [](bool wraps) {
    return Op("GatherV2")
        .Bool("wraps_negative", wraps)
        .In(Floats({3}, {1, 2, 3}))
        .In(Ints({-1, 0}))
        .In(Int(0))
        .Run();
  };
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor picked, gathered(true));
  EXPECT_THAT(ValuesOf<float>(picked), ElementsAre(3, 1));
  EXPECT_THAT(gathered(false).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, ::testing::_));
  EXPECT_THAT(Values(Op("GatherNd")
                         .Bool("wraps_negative", true)
                         .In(Floats({2, 2}, {1, 2, 3, 4}))
                         .In(Ints({1, 2}, {-1, -2}))),
              ElementsAre(3));
  EXPECT_THAT(Values(Op("TensorScatterUpdate")
                         .Bool("wraps_negative", true)
                         .In(Floats({3}, {1, 2, 3}))
                         .In(Ints({1, 1}, {-2}))
                         .In(Floats({1}, {9}))),
              ElementsAre(1, 9, 3));
}

TEST(ElementIndicesTest, GatherNdBatchedStaysInItsExample) {
  EXPECT_THAT(Values(Op("GatherNdBatched")
                         .Int("batch_dims", 1)
                         .In(Floats({2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7}))
                         .In(Ints({2, 1}, {1, -2}))),
              ElementsAre(2, 3, 4, 5));
}

TEST(AnyAxesTest, SlicesStopAtTheEnds) {
  EXPECT_THAT(Values(Op("SliceAxes")
                         .In(Floats({2, 3}, {1, 2, 3, 4, 5, 6}))
                         .In(Longs({100, -5}))
                         .In(Longs({std::numeric_limits<int64_t>::min(), 2}))
                         .In(Longs({1, 0}))
                         .In(Longs({-2, 1}))),
              ElementsAre(3, 1, 6, 4));
}

TEST(AnyAxesTest, PaddingRepeatsReflectsAndCuts) {
  const auto padded = [](const char* mode, const std::vector<int64_t>& pads) {
    return Values(Op("PadAxes")
                      .Text("mode", mode)
                      .In(Floats({3}, {1, 2, 3}))
                      .In(Longs(pads))
                      .In(Float(9))
                      .In(Longs({})));
  };
  EXPECT_THAT(padded("constant", {1, 2}), ElementsAre(9, 1, 2, 3, 9, 9));
  EXPECT_THAT(padded("constant", {-1, 1}), ElementsAre(2, 3, 9));
  EXPECT_THAT(padded("edge", {2, 1}), ElementsAre(1, 1, 1, 2, 3, 3));
  EXPECT_THAT(padded("wrap", {2, 1}), ElementsAre(2, 3, 1, 2, 3, 1));
  EXPECT_THAT(padded("reflect", {3, 1}), ElementsAre(2, 3, 2, 1, 2, 3, 2));
}

TEST(AnyAxesTest, CenterCropPadKeepsTheMiddle) {
  EXPECT_THAT(Values(Op("CenterCropPad")
                         .In(Floats({4, 1}, {1, 2, 3, 4}))
                         .In(Longs({1, 4}))),
              ElementsAre(0, 2, 0, 0));
}

TEST(AnyAxesTest, ReshapeCopyKeepsDimensionsAtZero) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor y,
      Op("ReshapeCopy").In(Counted({2, 3, 4})).In(Longs({0, -1})).Run());
  EXPECT_EQ(y.shape(), Shape({2, 12}));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor empty, Op("ReshapeCopy")
                                                       .Bool("allow_zero", true)
                                                       .In(Counted({0, 3}))
                                                       .In(Longs({3, 0}))
                                                       .Run());
  EXPECT_EQ(empty.shape(), Shape({3, 0}));
}

TEST(AnyAxesTest, AxesComeAndGo) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor more,
      Op("UnsqueezeAxes").In(Counted({2, 3})).In(Longs({-1, 1})).Run());
  EXPECT_EQ(more.shape(), Shape({2, 1, 3, 1}));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor fewer,
                               Op("SqueezeAxes").In(more).In(Longs({1})).Run());
  EXPECT_EQ(fewer.shape(), Shape({2, 3, 1}));
  EXPECT_THAT(Op("SqueezeAxes").In(more).In(Longs({0})).Run().status(),
              StatusIs(absl::StatusCode::kInvalidArgument, ::testing::_));
}

TEST(AnyAxesTest, CompressKeepsWhereTheConditionHolds) {
  EXPECT_THAT(Values(Op("Compress")
                         .Int("axis", 1)
                         .In(Floats({2, 3}, {1, 2, 3, 4, 5, 6}))
                         .In(Tensor::FromValues<bool>({2}, {false, true}))),
              ElementsAre(2, 5));
}

TEST(TriluTest, KeepsOneSideOfADiagonal) {
  const Tensor x = Floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor one = Tensor::Scalar<int64_t>(1);
  EXPECT_THAT(Values(Op("Trilu").In(x).In(one)), ElementsAre(0, 2, 3, 0, 0, 6));
  EXPECT_THAT(Values(Op("Trilu")
                         .Bool("upper", false)
                         .In(x)
                         .In(Tensor::Scalar<int64_t>(-1))),
              ElementsAre(0, 0, 0, 4, 0, 0));
}

TEST(UniqueElementsTest, SortedOrInTheOrderOfTheirFirst) {
  const auto unique = [](bool sorted) {
    return Op("UniqueElements")
        .Bool("sorted", sorted)
        .In(Floats({2, 2}, {3, 1, 3, 2}))
        .RunAll(4);
  };
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto sorted, unique(true));
  EXPECT_THAT(ValuesOf<float>(sorted[0]), ElementsAre(1, 2, 3));
  EXPECT_THAT(ValuesOf<int64_t>(sorted[1]), ElementsAre(1, 3, 0));
  EXPECT_THAT(ValuesOf<int64_t>(sorted[2]), ElementsAre(2, 0, 2, 1));
  EXPECT_THAT(ValuesOf<int64_t>(sorted[3]), ElementsAre(1, 1, 2));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto first, unique(false));
  EXPECT_THAT(ValuesOf<float>(first[0]), ElementsAre(3, 1, 2));
  EXPECT_THAT(ValuesOf<int64_t>(first[2]), ElementsAre(0, 1, 0, 2));
}

TEST(UniqueElementsTest, SlicesAlongAnAxis) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto out,
                               Op("UniqueElements")
                                   .Bool("flattens", false)
                                   .Int("axis", 1)
                                   .In(Floats({2, 3}, {2, 1, 2, 5, 6, 5}))
                                   .RunAll(4));
  EXPECT_EQ(out[0].shape(), Shape({2, 2}));
  EXPECT_THAT(ValuesOf<float>(out[0]), ElementsAre(1, 2, 6, 5));
}

Op Grid(const char* mode, const char* padding) {
  return Op("GridSample")
      .Text("mode", mode)
      .Text("padding_mode", padding)
      .Bool("align_corners", true)
      .In(Floats({1, 1, 2, 2}, {0, 1, 2, 3}));
}

TEST(GridSampleTest, InterpolatesAndPads) {
  // The center, a corner, and a place beyond the right edge.
  const Tensor grid = Floats({1, 1, 3, 2}, {0, 0, 1, 1, 3, -1});
  EXPECT_THAT(Values(Grid("linear", "zeros").In(grid)),
              ElementsAre(1.5f, 3, 0));
  EXPECT_THAT(Values(Grid("linear", "border").In(grid)),
              ElementsAre(1.5f, 3, 1));
  EXPECT_THAT(Values(Grid("nearest", "reflection").In(grid)),
              ElementsAre(0, 3, 0));
}

TEST(RoiAlignTest, AveragesSamplesOfEachCell) {
  // Values are x + 4 y: the mean over a region is the value at its center.
  EXPECT_THAT(Values(Op("RoiAlign")
                         .Int("output_height", 1)
                         .Int("output_width", 2)
                         .Int("sampling_ratio", 2)
                         .In(Counted({1, 1, 4, 4}))
                         .In(Floats({1, 4}, {0.5f, 0.5f, 2.5f, 2.5f}))
                         .In(Longs({0}))),
              Pointwise(FloatNear(1e-5f), {4.5f, 5.5f}));
}

TEST(MultiClassNonMaxSuppressionTest, SuppressesWithinEachClass) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor kept,
      Op("MultiClassNonMaxSuppression")
          .In(Floats({1, 3, 4}, {0, 0, 1, 1, 0, 0, 1, 0.9f, 0, 2, 1, 3}))
          .In(Floats({1, 2, 3}, {0.8f, 0.9f, 0.1f, 0.3f, 0.2f, 0.7f}))
          .In(Tensor::Scalar<int64_t>(2))
          .In(Float(0.5f))
          .In(Float(0.15f))
          .Run());
  EXPECT_EQ(kept.shape(), Shape({3, 3}));
  EXPECT_THAT(ValuesOf<int64_t>(kept), ElementsAre(0, 0, 1, 0, 1, 2, 0, 1, 0));
}

TEST(DftTest, InverseGivesTheSignalBack) {
  const Tensor x = Scattered({2, 6, 1}, 7);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor half, Op("Dft")
                                                      .Bool("onesided", true)
                                                      .In(x)
                                                      .In(Longs({}))
                                                      .In(Longs({1}))
                                                      .Run());
  EXPECT_EQ(half.shape(), Shape({2, 4, 2}));
  EXPECT_THAT(Values(Op("Dft")
                         .Bool("onesided", true)
                         .Bool("inverse", true)
                         .In(half)
                         .In(Longs({}))
                         .In(Longs({-2}))),
              Pointwise(FloatNear(1e-6f), ValuesOf<float>(x)));
}

TEST(StftTest, FramesOfAConstantHaveOneBin) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor y,
                               Op("Stft")
                                   .In(Floats({1, 8}, std::vector<float>(8, 1)))
                                   .In(Tensor::Scalar<int64_t>(2))
                                   .In(NoFloats())
                                   .In(Longs({4}))
                                   .Run());
  EXPECT_EQ(y.shape(), Shape({1, 3, 3, 2}));
  EXPECT_NEAR(y.data<float>()[0], 4, 1e-6);
  EXPECT_NEAR(y.data<float>()[2], 0, 1e-6);
}

TEST(MelWeightMatrixTest, BandsAreTriangles) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor y,
                               Op("MelWeightMatrix")
                                   .In(Tensor::Scalar<int64_t>(8))
                                   .In(Tensor::Scalar<int64_t>(16))
                                   .In(Tensor::Scalar<int64_t>(8192))
                                   .In(Float(0))
                                   .In(Float(4096))
                                   .Run());
  EXPECT_EQ(y.shape(), Shape({9, 8}));
  // The first band is a single bin, the last one three.
  EXPECT_EQ(y.data<float>()[0], 1);
  EXPECT_EQ(y.data<float>()[8], 0);
}

TEST(LpPoolTest, TakesTheNormOfEachWindow) {
  EXPECT_THAT(Values(Op("LpPool")
                         .Ints("kernel_shape", {2})
                         .Ints("pads", {0, 1})
                         .In(Floats({1, 1, 3}, {3, -4, 0}))),
              ElementsAre(5, 4, 0));
}

TEST(Col2ImTest, OverlappingBlocksAddUp) {
  // Blocks of 2 at each of two positions in an image of 3.
  EXPECT_THAT(Values(Op("Col2Im")
                         .In(Floats({1, 2, 2}, {1, 2, 10, 20}))
                         .In(Longs({3}))
                         .In(Longs({2}))),
              ElementsAre(1, 12, 20));
}

}  // namespace
}  // namespace optfarm::runtime
