// TensorFlow 2's lists of tensors.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/runtime/graph_maker.h"
#include "tests/engine/runtime/run_op.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kFloat = tensorflow::DT_FLOAT;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

absl::StatusOr<Tensor> Reserved(int32_t size, const Tensor& shape) {
  return Op("TensorListReserve")
      .Type("element_dtype", kFloat)
      .In(shape)
      .In(Int(size))
      .Run();
}

absl::StatusOr<Tensor> WithItem(const Tensor& list, int32_t index,
                                const Tensor& item) {
  return Op("TensorListSetItem")
      .Type("element_dtype", kFloat)
      .In(list)
      .In(Int(index))
      .In(item)
      .Run();
}

absl::StatusOr<Tensor> Stacked(const Tensor& list, int num_elements = -1) {
  return Op("TensorListStack")
      .Type("element_dtype", kFloat)
      .Int("num_elements", num_elements)
      .In(list)
      .In(Int(-1))
      .Run();
}

TEST(TensorListTest, ElementsThatAreNotSetAreZero) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor list, Reserved(3, Ints({2})));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor set,
                               WithItem(list, 1, Floats({2}, {5, 6})));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor all, Stacked(set, 3));
  EXPECT_EQ(all.shape(), (Shape{3, 2}));
  EXPECT_THAT(ValuesOf<float>(all), ElementsAre(0, 0, 5, 6, 0, 0));
}

TEST(TensorListTest, AChangedListIsAnotherOne) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor list, Reserved(2, Ints({1})));
  OPTFARM_ASSERT_OK(WithItem(list, 0, Floats({1}, {7})));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor all, Stacked(list));
  EXPECT_THAT(ValuesOf<float>(all), ElementsAre(0, 0));
}

TEST(TensorListTest, ATensorAndItsRows) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor list,
                               Op("TensorListFromTensor")
                                   .Type("element_dtype", kFloat)
                                   .In(Counted({3, 2}))
                                   .In(Ints({2}))
                                   .Run());
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor item,
                               Op("TensorListGetItem")
                                   .Type("element_dtype", kFloat)
                                   .In(list)
                                   .In(Int(2))
                                   .In(Ints({2}))
                                   .Run());
  EXPECT_THAT(ValuesOf<float>(item), ElementsAre(4, 5));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor some,
                               Op("TensorListGather")
                                   .Type("element_dtype", kFloat)
                                   .In(list)
                                   .In(Ints({2, 0}))
                                   .In(Ints({2}))
                                   .Run());
  EXPECT_THAT(ValuesOf<float>(some), ElementsAre(4, 5, 0, 1));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor length,
                               Op("TensorListLength").In(list).Run());
  EXPECT_THAT(ValuesOf<int32_t>(length), ElementsAre(3));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor shape,
                               Op("TensorListElementShape")
                                   .Type("shape_type", tensorflow::DT_INT64)
                                   .In(list)
                                   .Run());
  EXPECT_THAT(ValuesOf<int64_t>(shape), ElementsAre(2));
}

TEST(TensorListTest, GrowsAndShrinksAtItsEnd) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(Tensor list, Op("EmptyTensorList")
                                                .Type("element_dtype", kFloat)
                                                .In(Int(-1))
                                                .In(Int(-1))
                                                .Run());
  for (float value : {1.0f, 2.0f, 3.0f}) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(list, Op("TensorListPushBack")
                                           .Type("element_dtype", kFloat)
                                           .In(list)
                                           .In(Float(value))
                                           .Run());
  }
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto popped,
                               Op("TensorListPopBack")
                                   .Type("element_dtype", kFloat)
                                   .In(list)
                                   .In(Int(-1))
                                   .RunAll(2));
  EXPECT_THAT(ValuesOf<float>(popped[1]), ElementsAre(3));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor rest, Stacked(popped[0]));
  EXPECT_THAT(ValuesOf<float>(rest), ElementsAre(1, 2));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor longer,
      Op("TensorListResize").In(popped[0]).In(Int(3)).Run());
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor all, Stacked(longer));
  EXPECT_THAT(ValuesOf<float>(all), ElementsAre(1, 2, 0));
}

TEST(TensorListTest, RefusesWhatDoesNotFit) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor list, Reserved(2, Ints({2})));
  EXPECT_THAT(WithItem(list, 2, Floats({2}, {1, 2})),
              StatusIs(kInvalid, HasSubstr("no element 2 in a list of 2")));
  EXPECT_THAT(WithItem(list, 0, Ints({2}, {1, 2})),
              StatusIs(kInvalid, HasSubstr("does not fit a list of float")));
  EXPECT_FALSE(WithItem(list, 0, Floats({3}, {1, 2, 3})).ok());
  EXPECT_FALSE(Stacked(list, 3).ok());
  EXPECT_FALSE(Stacked(Float(1)).ok());
  EXPECT_FALSE(Reserved(-1, Ints({2})).ok());
  EXPECT_FALSE(Reserved(2000000000, Ints({2})).ok());
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor shapeless, Reserved(2, Int(-1)));
  EXPECT_THAT(Stacked(shapeless),
              StatusIs(kInvalid, HasSubstr("no known shape")));
}

// Running sums of a loop, as an inlined While of TensorFlow 2 collects them.
Tensor Longs(const std::vector<int64_t>& values) {
  return Tensor::FromValues<int64_t>({static_cast<int64_t>(values.size())},
                                     values);
}

absl::StatusOr<Tensor> Split(const Tensor& tensor, const Tensor& shape,
                             const std::vector<int64_t>& lengths) {
  return Op("TensorListSplit")
      .Type("element_dtype", kFloat)
      .Type("shape_type", shape.dtype())
      .In(tensor)
      .In(shape)
      .In(Longs(lengths))
      .Run();
}

TEST(TensorListTest, ATensorIsSplitIntoPartsAndJoinedAgain) {
  const Tensor tensor = Counted({5, 2});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor list,
                               Split(tensor, Ints({-1, 2}), {2, 0, 3}));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto joined,
      Op("TensorListConcat").Type("element_dtype", kFloat).In(list).RunAll(2));
  EXPECT_EQ(joined[0].shape(), Shape({5, 2}));
  EXPECT_EQ(ValuesOf<float>(joined[0]), ValuesOf<float>(tensor));
  EXPECT_THAT(ValuesOf<int64_t>(joined[1]), ElementsAre(2, 0, 3));
  for (const std::vector<int64_t>& lengths :
       {std::vector<int64_t>{2, 2}, {6}, {-1, 6}}) {
    EXPECT_THAT(Split(tensor, Ints({-1, 2}), lengths),
                StatusIs(kInvalid, ::testing::_));
  }
  EXPECT_THAT(Split(tensor, Ints({-1, 3}), {5}),
              StatusIs(kInvalid, ::testing::_));
}

TEST(TensorListTest, PartsThatWereNeverSetAreJoinedAsZero) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(Tensor list, Reserved(2, Ints({-1, 1})));
  OPTFARM_ASSERT_OK_AND_ASSIGN(list, WithItem(list, 0, Floats({1, 1}, {7})));
  const auto join = [&](const std::vector<int64_t>& leading) {
    return Op("TensorListConcatV2")
        .Type("element_dtype", kFloat)
        .Type("shape_type", tensorflow::DT_INT32)
        .In(list)
        .In(Ints({-1, 1}))
        .In(Longs(leading))
        .RunAll(2);
  };
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto joined, join({1, 2}));
  EXPECT_THAT(ValuesOf<float>(joined[0]), ElementsAre(7, 0, 0));
  EXPECT_THAT(ValuesOf<int64_t>(joined[1]), ElementsAre(1, 2));
  EXPECT_THAT(join({}), StatusIs(kInvalid, HasSubstr("never set")));
}

TEST(TensorListTest, RowsAreScatteredIntoANewListOrAnOldOne) {
  const auto scatter = [](const std::vector<int32_t>& indices, int32_t size) {
    return Op("TensorListScatterV2")
        .Type("element_dtype", kFloat)
        .Type("shape_type", tensorflow::DT_INT32)
        .In(Floats({2, 1}, {4, 5}))
        .In(Ints(indices))
        .In(Ints({1}))
        .In(Int(size))
        .Run();
  };
  OPTFARM_ASSERT_OK_AND_ASSIGN(Tensor list, scatter({2, 0}, 4));
  OPTFARM_ASSERT_OK_AND_ASSIGN(Tensor stacked, Stacked(list));
  EXPECT_THAT(ValuesOf<float>(stacked), ElementsAre(5, 0, 4, 0));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor longer,
                               Op("TensorListScatterIntoExistingList")
                                   .Type("element_dtype", kFloat)
                                   .In(list)
                                   .In(Floats({2, 1}, {8, 9}))
                                   .In(Ints({0, 4}))
                                   .Run());
  OPTFARM_ASSERT_OK_AND_ASSIGN(stacked, Stacked(longer));
  EXPECT_THAT(ValuesOf<float>(stacked), ElementsAre(8, 0, 4, 0, 9));
  OPTFARM_ASSERT_OK_AND_ASSIGN(stacked, Stacked(list));
  EXPECT_THAT(ValuesOf<float>(stacked), ElementsAre(5, 0, 4, 0));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor both,
                               Op("TensorListConcatLists")
                                   .Type("element_dtype", kFloat)
                                   .In(list)
                                   .In(longer)
                                   .Run());
  OPTFARM_ASSERT_OK_AND_ASSIGN(stacked, Stacked(both));
  EXPECT_THAT(ValuesOf<float>(stacked), ElementsAre(5, 0, 4, 0, 8, 0, 4, 0, 9));
  EXPECT_THAT(scatter({2, 4}, 4), StatusIs(kInvalid, HasSubstr("4 elements")));
  EXPECT_THAT(scatter({-1, 0}, -1), StatusIs(kInvalid, ::testing::_));
  EXPECT_THAT(scatter({1 << 30, 0}, -1), StatusIs(kInvalid, ::testing::_));
  EXPECT_THAT(scatter({0}, -1), StatusIs(kInvalid, HasSubstr("1 indices")));
}

TEST(TensorListTest, ALoopFillsOne) {
  constexpr auto kInt = tensorflow::DT_INT32;
  GraphMaker g;
  g.Placeholder("n", kInt).Const("zero", Int(0)).Const("one", Int(1));
  g.Const("shape", Tensor::FromValues<int32_t>(Shape{0}, {}));
  g.Node("list", "TensorListReserve", {"shape", "n"})
      .Type("element_dtype", kInt)
      .Type("shape_type", kInt);
  g.LoopVariable("i", "zero", "loop", "cond", "next_i", kInt);
  g.LoopVariable("l", "list", "loop", "cond", "next_l", tensorflow::DT_VARIANT);
  g.Enter("limit", "n", "loop", kInt, true);
  g.Enter("step", "one", "loop", kInt, true);
  g.Math("less", "Less", {"i/merge", "limit"}, kInt);
  g.Node("cond", "LoopCond", {"less"});
  g.Math("next_i", "Add", {"i/switch:1", "step"}, kInt);
  g.Math("square", "Mul", {"i/switch:1", "i/switch:1"}, kInt);
  g.Node("next_l", "TensorListSetItem", {"l/switch:1", "i/switch:1", "square"})
      .Type("element_dtype", kInt);
  g.Node("all", "TensorListStack", {"l/exit", "shape"})
      .Type("element_dtype", kInt);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto session, g.Session("n", "all"));
  for (int i = 0; i < 2; ++i) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto out, session->Run({Int(4)}));
    EXPECT_THAT(ValuesOf<int32_t>(out[0]), ElementsAre(0, 1, 4, 9));
  }
}

}  // namespace
}  // namespace optfarm::runtime
