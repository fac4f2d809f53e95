// Kernels that move elements or ask for shapes: reshaping, joining, slicing,
// gathering, padding, transposing.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tests/engine/runtime/run_op.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(ReshapeTest, OneDimensionMayBeInferred) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor out,
      Op("Reshape").In(Counted({2, 6})).In(Ints({3, -1})).Run());
  EXPECT_EQ(out.shape(), Shape({3, 4}));
}

TEST(ReshapeTest, OfAnEmptyTensorTheOtherDimensionsDecide) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor out,
      Op("Reshape").In(Counted({1, 6, 0})).In(Ints({2, 0, -1})).Run());
  EXPECT_EQ(out.shape(), Shape({2, 0, 3}));
}

TEST(ReshapeTest, ImpossibleShapesAreShown) {
  const auto reshape = [](const Shape& from, const std::vector<int32_t>& to) {
    return Op("Reshape").In(Counted(from)).In(Ints(to)).Run();
  };
  EXPECT_THAT(reshape({2, 3}, {4, 2}),
              StatusIs(kInvalid, HasSubstr("cannot become [4,2]")));
  EXPECT_THAT(reshape({2, 3}, {-1, -1}),
              StatusIs(kInvalid, HasSubstr("more than one -1")));
  EXPECT_THAT(reshape({2, 3}, {-2, 3}),
              StatusIs(kInvalid, HasSubstr("negative")));
  EXPECT_THAT(reshape({2, 3}, {4, -1}),
              StatusIs(kInvalid, HasSubstr("[4,-1]")));
}

TEST(ShapeTest, ShapeSizeRank) {
  const Tensor x = Counted({2, 0, 3});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor shape, Op("Shape").In(x).Run());
  EXPECT_THAT(ValuesOf<int32_t>(shape), ElementsAre(2, 0, 3));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor size,
      Op("Size").Type("out_type", tensorflow::DT_INT64).In(x).Run());
  EXPECT_THAT(ValuesOf<int64_t>(size), ElementsAre(0));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor rank, Op("Rank").In(x).Run());
  EXPECT_THAT(ValuesOf<int32_t>(rank), ElementsAre(3));
}

TEST(SqueezeTest, DropsTheGivenOrAllOnes) {
  const Tensor x = Counted({1, 2, 1, 3});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor all, Op("Squeeze").In(x).Run());
  EXPECT_EQ(all.shape(), Shape({2, 3}));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor one, Op("Squeeze").Ints("squeeze_dims", {-2}).In(x).Run());
  EXPECT_EQ(one.shape(), Shape({1, 2, 3}));
  EXPECT_THAT(Op("Squeeze").Ints("squeeze_dims", {1}).In(x).Run(),
              StatusIs(kInvalid, HasSubstr("its size is not 1")));
}

TEST(ExpandDimsTest, CountsNegativeAxesFromTheNewRank) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor out, Op("ExpandDims").In(Counted({2, 3})).In(Int(-1)).Run());
  EXPECT_EQ(out.shape(), Shape({2, 3, 1}));
  EXPECT_THAT(Op("ExpandDims").In(Counted({2, 3})).In(Int(4)).Run(),
              StatusIs(kInvalid, HasSubstr("axis 4")));
}

TEST(FillTest, RefusesImpossibleSizes) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor out,
                               Op("Fill").In(Ints({2, 2})).In(Float(7)).Run());
  EXPECT_THAT(ValuesOf<float>(out), ElementsAre(7, 7, 7, 7));
  EXPECT_THAT(Op("Fill").In(Ints({-1})).In(Float(7)).Run(),
              StatusIs(kInvalid, HasSubstr("negative")));
  const int64_t huge[] = {int64_t{1} << 40, int64_t{1} << 40};
  EXPECT_THAT(
      Op("Fill").In(Tensor::FromValues<int64_t>({2}, huge)).In(Float(7)).Run(),
      StatusIs(kInvalid, HasSubstr("2^63")));
}

TEST(RangeTest, CountsUpAndDown) {
  const auto range = [](const Tensor& a, const Tensor& b, const Tensor& c) {
    return Op("Range").In(a).In(b).In(c).Run();
  };
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor up, range(Int(1), Int(8), Int(3)));
  EXPECT_THAT(ValuesOf<int32_t>(up), ElementsAre(1, 4, 7));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor down,
                               range(Float(1), Float(-1), Float(-0.5f)));
  EXPECT_THAT(ValuesOf<float>(down), ElementsAre(1, 0.5f, 0, -0.5f));
  EXPECT_THAT(range(Int(0), Int(5), Int(0)),
              StatusIs(kInvalid, HasSubstr("'delta' must not be 0")));
  EXPECT_THAT(range(Int(5), Int(0), Int(1)),
              StatusIs(kInvalid, HasSubstr("never ends")));
}

TEST(RangeTest, TheWholeOfInt32InGiantSteps) {
  const int32_t low = std::numeric_limits<int32_t>::min();
  const int32_t high = std::numeric_limits<int32_t>::max();
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor out,
      Op("Range").In(Int(low)).In(Int(high)).In(Int(high)).Run());
  EXPECT_THAT(ValuesOf<int32_t>(out), ElementsAre(low, -1, high - 1));
}

TEST(ConcatTest, JoinsAlongAnyAxis) {
  const Tensor a = Floats({2, 1}, {1, 2});
  const Tensor b = Floats({2, 2}, {3, 4, 5, 6});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor out,
                               Op("ConcatV2").In(a).In(b).In(Int(-1)).Run());
  EXPECT_THAT(ValuesOf<float>(out), ElementsAre(1, 3, 4, 2, 5, 6));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor old,
                               Op("Concat").In(Int(0)).In(b).In(b).Run());
  EXPECT_EQ(old.shape(), Shape({4, 2}));
  EXPECT_THAT(Op("ConcatV2").In(a).In(b).In(Int(0)).Run(),
              StatusIs(kInvalid, HasSubstr("[2,1] and [2,2]")));
}

TEST(ConcatTest, MovesStrings) {
  const std::string words[] = {"a", "bc"};
  const Tensor x = Tensor::FromValues<std::string>({2}, words);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor out,
                               Op("ConcatV2").In(x).In(x).In(Int(0)).Run());
  EXPECT_THAT(ValuesOf<std::string>(out), ElementsAre("a", "bc", "a", "bc"));
}

TEST(PackTest, PackAndUnpackAreInverse) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor packed, Op("Pack")
                                                        .Int("axis", 1)
                                                        .In(Floats({2}, {1, 2}))
                                                        .In(Floats({2}, {3, 4}))
                                                        .Run());
  EXPECT_THAT(ValuesOf<float>(packed), ElementsAre(1, 3, 2, 4));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto parts, Op("Unpack").Int("axis", 1).In(packed).RunAll(2));
  EXPECT_THAT(ValuesOf<float>(parts[1]), ElementsAre(3, 4));
  EXPECT_THAT(Op("Unpack").Int("axis", 1).In(packed).RunAll(3),
              StatusIs(kInvalid, HasSubstr("into 3 tensors")));
}

TEST(SplitTest, EqualAndGivenParts) {
  const Tensor x = Counted({2, 4});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto halves,
                               Op("Split").In(Int(1)).In(x).RunAll(2));
  EXPECT_THAT(ValuesOf<float>(halves[1]), ElementsAre(2, 3, 6, 7));
  EXPECT_THAT(Op("Split").In(Int(1)).In(x).RunAll(3),
              StatusIs(kInvalid, HasSubstr("3 equal parts")));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto parts,
      Op("SplitV").In(x).In(Ints({1, -1})).In(Int(1)).RunAll(2));
  EXPECT_THAT(ValuesOf<float>(parts[1]), ElementsAre(1, 2, 3, 5, 6, 7));
  EXPECT_THAT(Op("SplitV").In(x).In(Ints({1, 2})).In(Int(1)).RunAll(2),
              StatusIs(kInvalid, HasSubstr("[1,2]")));
}

TEST(TileTest, RepeatsEveryDimension) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor out,
      Op("Tile").In(Floats({1, 2}, {1, 2})).In(Ints({2, 2})).Run());
  EXPECT_THAT(ValuesOf<float>(out), ElementsAre(1, 2, 1, 2, 1, 2, 1, 2));
  EXPECT_THAT(Op("Tile").In(Counted({2})).In(Ints({-1})).Run(),
              StatusIs(kInvalid, HasSubstr("-1 times")));
}

TEST(SliceTest, StaysWithinTheShape) {
  const Tensor x = Counted({3, 4});
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor out,
      Op("Slice").In(x).In(Ints({1, 2})).In(Ints({-1, 1})).Run());
  EXPECT_THAT(ValuesOf<float>(out), ElementsAre(6, 10));
  for (const auto& [begin, size] :
       {std::pair{std::vector<int32_t>{-1, 0}, std::vector<int32_t>{1, 1}},
        {{0, 0}, {4, 1}},
        {{4, 0}, {0, 1}},
        {{0, 0}, {-2, 1}},
        {{0}, {1}}}) {
    EXPECT_THAT(Op("Slice").In(x).In(Ints(begin)).In(Ints(size)).Run(),
                StatusIs(kInvalid, HasSubstr("does not lie within")));
  }
}

struct StridedCase {
  std::vector<int32_t> begin, end, strides;
  int64_t begin_mask, end_mask, ellipsis, new_axis, shrink;
  Shape shape;
  std::vector<float> values;
};

class StridedSliceTest : public ::testing::TestWithParam<StridedCase> {};

TEST_P(StridedSliceTest, SelectsAsNumpyDoes) {
  const StridedCase& c = GetParam();
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor out,
                               Op("StridedSlice")
                                   .Int("begin_mask", c.begin_mask)
                                   .Int("end_mask", c.end_mask)
                                   .Int("ellipsis_mask", c.ellipsis)
                                   .Int("new_axis_mask", c.new_axis)
                                   .Int("shrink_axis_mask", c.shrink)
                                   .In(Counted({2, 3, 2}))
                                   .In(Ints(c.begin))
                                   .In(Ints(c.end))
                                   .In(Ints(c.strides))
                                   .Run());
  EXPECT_EQ(out.shape(), c.shape);
  EXPECT_EQ(ValuesOf<float>(out), c.values);
}

INSTANTIATE_TEST_SUITE_P(
    Masks, StridedSliceTest,
    ::testing::Values(
        // x[1]
        StridedCase{{1}, {2}, {1}, 0, 0, 0, 0, 1, {3, 2}, {6, 7, 8, 9, 10, 11}},
        // x[-1, ::2]
        StridedCase{
            {-1, 0}, {0, 0}, {1, 2}, 2, 2, 0, 0, 1, {2, 2}, {6, 7, 10, 11}},
        // x[..., 1]
        StridedCase{
            {0, 1}, {0, 2}, {1, 1}, 0, 0, 1, 0, 2, {2, 3}, {1, 3, 5, 7, 9, 11}},
        // x[:, newaxis, ::-1, 0]
        StridedCase{{0, 0, 0, 0},
                    {0, 0, 0, 1},
                    {1, 1, -1, 1},
                    5,
                    5,
                    0,
                    2,
                    8,
                    {2, 1, 3},
                    {4, 2, 0, 10, 8, 6}},
        // x[0:1, 5:7] is empty
        StridedCase{{0, 5}, {1, 7}, {1, 1}, 0, 0, 0, 0, 0, {1, 0, 2}, {}},
        // x[-100:100, 2:0:-1]
        StridedCase{{-100, 2},
                    {100, 0},
                    {1, -1},
                    0,
                    0,
                    0,
                    0,
                    0,
                    {2, 2, 2},
                    {4, 5, 2, 3, 10, 11, 8, 9}}));

// Against an index for each element, for selections whose runs of neighbouring
// elements span none, one and several dimensions.
TEST(StridedSliceTest, AnySelectionTakesTheElementsItNames) {
  std::mt19937 random(7);
  const auto pick = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    const int rank = pick(1, 4);
    std::vector<int64_t> dims;
    std::vector<int32_t> begin, end, strides;
    for (int i = 0; i < rank; ++i) {
      const int size = pick(0, 3) == 0 ? 20 : pick(1, 5);
      const bool is_whole = pick(0, 1) == 0;
      const int step = is_whole          ? 1
                       : pick(0, 3) == 0 ? -pick(1, 3)
                                         : pick(1, 3);
      const int first = is_whole ? 0 : pick(0, size - 1);
      const int room = step > 0 ? (size - 1 - first) / step : first / -step;
      const int count = is_whole ? size : pick(1, room + 1);
      dims.push_back(size);
      begin.push_back(first);
      // One step short of the start is named from the end.
      const int past = first + count * step;
      end.push_back(past < 0 ? past - size : past);
      strides.push_back(step);
    }
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Shape shape, Shape::FromDims(dims));
    std::vector<int32_t> values(static_cast<size_t>(shape.num_elements()));
    std::iota(values.begin(), values.end(), 0);
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        const Tensor y, Op("StridedSlice")
                            .In(Tensor::FromValues<int32_t>(shape, values))
                            .In(Ints(begin))
                            .In(Ints(end))
                            .In(Ints(strides))
                            .Run());
    ASSERT_EQ(y.rank(), rank);
    const std::vector<int32_t> got = ValuesOf<int32_t>(y);
    for (size_t e = 0; e < got.size(); ++e) {
      auto rest = static_cast<int64_t>(e);
      int64_t at = 0, stride = 1;
      for (int i = rank - 1; i >= 0; --i) {
        at += (begin[i] + rest % y.dim(i) * strides[i]) * stride;
        rest /= y.dim(i);
        stride *= dims[i];
      }
      ASSERT_EQ(got[e], at) << "element " << e;
    }
  }
}

TEST(StridedSliceErrorTest, BadSpecifications) {
  const auto slice = [](const std::vector<int32_t>& begin,
                        const std::vector<int32_t>& strides, int64_t shrink) {
    return Op("StridedSlice")
        .Int("shrink_axis_mask", shrink)
        .In(Counted({2, 3}))
        .In(Ints(begin))
        .In(Ints(begin))
        .In(Ints(strides))
        .Run();
  };
  EXPECT_THAT(slice({0}, {0}, 0), StatusIs(kInvalid, HasSubstr("strides[0]")));
  EXPECT_THAT(slice({2}, {1}, 1), StatusIs(kInvalid, HasSubstr("index 2")));
  EXPECT_THAT(slice({0, 0, 0}, {1, 1, 1}, 0),
              StatusIs(kInvalid, HasSubstr("3 dimensions are sliced")));
  EXPECT_THAT(slice({0, 0}, {1}, 0),
              StatusIs(kInvalid, HasSubstr("2, 2 and 1 values")));
}

TEST(GatherTest, PicksAlongAnAxis) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor out,
      Op("GatherV2").In(Counted({2, 3})).In(Ints({2, 0})).In(Int(1)).Run());
  EXPECT_THAT(ValuesOf<float>(out), ElementsAre(2, 0, 5, 3));
  EXPECT_THAT(Op("Gather").In(Counted({2, 3})).In(Ints({2})).Run(),
              StatusIs(kInvalid, HasSubstr("indices[0] = 2")));
}

TEST(GatherTest, GatherNdTakesCoordinates) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor out,
      Op("GatherNd").In(Counted({2, 3})).In(Ints({2, 2}, {1, 0, 0, 2})).Run());
  EXPECT_THAT(ValuesOf<float>(out), ElementsAre(3, 2));
}

TEST(OneHotTest, IndexesOutsideLightNothing) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor out, Op("OneHot")
                                                     .In(Ints({1, -1, 5}))
                                                     .In(Int(2))
                                                     .In(Float(1))
                                                     .In(Float(0))
                                                     .Run());
  EXPECT_THAT(ValuesOf<float>(out), ElementsAre(0, 1, 0, 0, 0, 0));
}

TEST(PadTest, ConstantAndMirrored) {
  const Tensor x = Floats({3}, {1, 2, 3});
  const Tensor paddings = Ints({1, 2}, {2, 1});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor zeros,
                               Op("Pad").In(x).In(paddings).Run());
  EXPECT_THAT(ValuesOf<float>(zeros), ElementsAre(0, 0, 1, 2, 3, 0));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor nines, Op("PadV2").In(x).In(paddings).In(Float(9)).Run());
  EXPECT_THAT(ValuesOf<float>(nines), ElementsAre(9, 9, 1, 2, 3, 9));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor reflect,
      Op("MirrorPad").Text("mode", "REFLECT").In(x).In(paddings).Run());
  EXPECT_THAT(ValuesOf<float>(reflect), ElementsAre(3, 2, 1, 2, 3, 2));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor symmetric,
      Op("MirrorPad").Text("mode", "SYMMETRIC").In(x).In(paddings).Run());
  EXPECT_THAT(ValuesOf<float>(symmetric), ElementsAre(2, 1, 1, 2, 3, 3));
  EXPECT_THAT(Op("Pad").In(x).In(Ints({1, 2}, {-1, 0})).Run(),
              StatusIs(kInvalid, HasSubstr("must not be negative")));
  EXPECT_THAT(Op("MirrorPad")
                  .Text("mode", "REFLECT")
                  .In(x)
                  .In(Ints({1, 2}, {3, 0}))
                  .Run(),
              StatusIs(kInvalid, HasSubstr("cannot be mirrored")));
}

TEST(TransposeTest, EveryPermutationOfThreeDimensions) {
  const Tensor x = Counted({2, 3, 4});
  for (const std::vector<int32_t>& perm : std::vector<std::vector<int32_t>>{
           {0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor out,
                                 Op("Transpose").In(x).In(Ints(perm)).Run());
    const int64_t strides[] = {12, 4, 1};
    int64_t i = 0;
    for (int64_t a = 0; a < out.dim(0); ++a) {
      for (int64_t b = 0; b < out.dim(1); ++b) {
        for (int64_t c = 0; c < out.dim(2); ++c) {
          EXPECT_EQ(
              out.data<float>()[i++],
              static_cast<float>(a * strides[perm[0]] + b * strides[perm[1]] +
                                 c * strides[perm[2]]));
        }
      }
    }
  }
  EXPECT_THAT(Op("Transpose").In(x).In(Ints({0, 0, 1})).Run(),
              StatusIs(kInvalid, HasSubstr("no permutation")));
}

TEST(SpaceToBatchTest, RoundTripsWithPaddingAndCropping) {
  const Tensor x = Counted({1, 3, 4, 1});
  const Tensor block = Ints({2, 2});
  const Tensor margins = Ints({2, 2}, {0, 1, 0, 0});
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor batch,
      Op("SpaceToBatchND").In(x).In(block).In(margins).Run());
  EXPECT_EQ(batch.shape(), Shape({4, 2, 2, 1}));
  EXPECT_THAT(ValuesOf<float>(batch),
              ElementsAre(0, 2, 8, 10, 1, 3, 9, 11, 4, 6, 0, 0, 5, 7, 0, 0));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor back,
      Op("BatchToSpaceND").In(batch).In(block).In(margins).Run());
  EXPECT_EQ(ValuesOf<float>(back), ValuesOf<float>(x));
  EXPECT_THAT(Op("SpaceToBatchND").In(x).In(Ints({0, 1})).In(margins).Run(),
              StatusIs(kInvalid, HasSubstr("block size 0")));
}

TEST(SpaceToDepthTest, BlocksBecomeChannels) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor deep,
      Op("SpaceToDepth").Int("block_size", 2).In(Counted({1, 2, 4, 1})).Run());
  EXPECT_THAT(ValuesOf<float>(deep), ElementsAre(0, 1, 4, 5, 2, 3, 6, 7));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor back,
      Op("DepthToSpace").Int("block_size", 2).In(deep).Run());
  EXPECT_THAT(ValuesOf<float>(back), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

}  // namespace
}  // namespace optfarm::runtime
