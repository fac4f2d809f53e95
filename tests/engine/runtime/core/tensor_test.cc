#include "engine/runtime/core/tensor.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

tensorflow::TensorProto Parse(const std::string& text) {
  tensorflow::TensorProto proto;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &proto));
  return proto;
}

TEST(TensorTest, ShortListRepeatsItsLastValue) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      Tensor t, Tensor::FromProto(Parse("dtype: DT_FLOAT tensor_shape { dim { "
                                        "size: 4 } } float_val: [1, 2]")));
  EXPECT_THAT(t.flat<float>(), ElementsAre(1, 2, 2, 2));
}

TEST(TensorTest, EmptyListIsZero) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      Tensor t, Tensor::FromProto(
                    Parse("dtype: DT_INT32 tensor_shape { dim { size: 2 } }")));
  EXPECT_THAT(t.flat<int32_t>(), ElementsAre(0, 0));
}

TEST(TensorTest, ALongListIsCut) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      Tensor t, Tensor::FromProto(
                    Parse("dtype: DT_UINT8 tensor_shape {} int_val: [7, 8]")));
  EXPECT_THAT(t.flat<uint8_t>(), ElementsAre(7));
}

TEST(TensorTest, ContentMustHaveExactlyTheRightLength) {
  EXPECT_THAT(Tensor::FromProto(Parse("dtype: DT_FLOAT tensor_shape { dim { "
                                      "size: 2 } } tensor_content: 'abc'")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("3")));
}

TEST(TensorTest, AHugeClaimWithFewBytesIsRefusedWithoutTakingMemory) {
  EXPECT_THAT(Tensor::FromProto(
                  Parse("dtype: DT_FLOAT tensor_shape { dim { size: "
                        "1099511627776 } } tensor_content: '0123456789'")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("10")));
  EXPECT_FALSE(Tensor::FromProto(Parse("dtype: DT_FLOAT tensor_shape { dim { "
                                       "size: 1099511627776 } } float_val: 1"))
                   .ok());
}

TEST(TensorTest, OverflowingAndNegativeShapesAreRefused) {
  EXPECT_FALSE(Shape::FromDims({1 << 30, 1 << 30, 1 << 30}).ok());
  EXPECT_FALSE(Shape::FromDims({2, -1}).ok());
  EXPECT_FALSE(Shape::FromDims({int64_t{1} << 62, 0, 8}).ok());
  OPTFARM_ASSERT_OK_AND_ASSIGN(Shape empty, Shape::FromDims({1 << 30, 0, 8}));
  EXPECT_EQ(empty.num_elements(), 0);
}

TEST(TensorTest, BoolContentBecomesZeroOrOne) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      Tensor t,
      Tensor::FromProto(Parse("dtype: DT_BOOL tensor_shape { dim { size: 2 } } "
                              "tensor_content: '\\000\\377'")));
  EXPECT_THAT(t.flat<uint8_t>(), ElementsAre(0, 1));
}

TEST(TensorTest, ProtoRoundTripKeepsStringsAndNumbers) {
  const Tensor text = Tensor::Scalar<std::string>("hello");
  OPTFARM_ASSERT_OK_AND_ASSIGN(Tensor back, Tensor::FromProto(text.ToProto()));
  EXPECT_EQ(back.flat<std::string>()[0], "hello");
  const Tensor numbers =
      Tensor::FromValues<int64_t>({2, 2}, {1, -2, 3, int64_t{1} << 60});
  OPTFARM_ASSERT_OK_AND_ASSIGN(back, Tensor::FromProto(numbers.ToProto()));
  EXPECT_EQ(back.DebugString(4), "int64 [2,2]: 1 -2 3 1152921504606846976");
}

TEST(TensorTest, CopiesShareAndSoleOwnershipIsSeen) {
  Tensor a = Tensor::Scalar(1.0f);
  EXPECT_TRUE(a.IsSoleOwner());
  const Tensor b = a;
  EXPECT_FALSE(a.IsSoleOwner());
  EXPECT_EQ(a.raw(), b.raw());
}

}  // namespace
}  // namespace optfarm::runtime
