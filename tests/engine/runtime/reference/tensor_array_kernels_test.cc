// TensorArray's ops one by one, in each version; loops use them in
// session_loops_test.cc.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/runtime/run_op.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kFloat = tensorflow::DT_FLOAT;

// The ops of one version.
class TensorArrayTest : public ::testing::TestWithParam<const char*> {
 protected:
  Op Make(const std::string& what) const {
    return Op("TensorArray" + what + GetParam());
  }
  Tensor Array(int size, bool is_dynamic = false) const {
    Op op = Make("");
    op.Type("dtype", kFloat).Bool("dynamic_size", is_dynamic).In(Int(size));
    const auto out = op.RunAll(std::string(GetParam()) == "V3" ? 2 : 1);
    EXPECT_TRUE(out.ok()) << out.status();
    return (*out)[0];
  }
  absl::Status Write(const Tensor& array, int index, const Tensor& value) {
    Op op = Make("Write");
    op.Type("T", kFloat).In(array).In(Int(index)).In(value).In(Float(0));
    return op.RunAll(1).status();
  }
  absl::StatusOr<Tensor> Read(const Tensor& array, int index) {
    Op op = Make("Read");
    op.Type("dtype", kFloat).In(array).In(Int(index)).In(Float(0));
    return op.Run();
  }
  int SizeOf(const Tensor& array) {
    const auto size = Make("Size").In(array).In(Float(0)).Run();
    EXPECT_TRUE(size.ok()) << size.status();
    return size->data<int32_t>()[0];
  }
};

TEST_P(TensorArrayTest, AnElementIsWrittenOnceAndReadOnce) {
  const Tensor array = Array(2);
  OPTFARM_ASSERT_OK(Write(array, 1, Float(5)));
  EXPECT_THAT(Write(array, 1, Float(6)),
              StatusIs(kInvalid, HasSubstr("element 1")));
  EXPECT_THAT(Read(array, 0), StatusIs(kInvalid, HasSubstr("nothing was")));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor value, Read(array, 1));
  EXPECT_THAT(ValuesOf<float>(value), ElementsAre(5));
  EXPECT_THAT(Read(array, 1), StatusIs(kInvalid, HasSubstr("read twice")));
}

TEST_P(TensorArrayTest, OnlyADynamicOneGrows) {
  EXPECT_THAT(Write(Array(2), 2, Float(1)),
              StatusIs(kInvalid, HasSubstr("does not grow")));
  const Tensor array = Array(0, true);
  OPTFARM_ASSERT_OK(Write(array, 4, Float(1)));
  EXPECT_EQ(SizeOf(array), 5);
  EXPECT_THAT(Write(array, -1, Float(1)),
              StatusIs(kInvalid, HasSubstr("is not there")));
}

TEST_P(TensorArrayTest, SplitsAndConcatenates) {
  const Tensor array = Array(3);
  const int64_t lengths[] = {1, 0, 2};
  Op split = Make("Split");
  split.Type("T", kFloat)
      .In(array)
      .In(Counted({3, 2}))
      .In(Tensor::FromValues<int64_t>({3}, lengths))
      .In(Float(0));
  OPTFARM_ASSERT_OK(split.RunAll(1));
  Op concat = Make("Concat");
  concat.Type("dtype", kFloat).In(array).In(Float(0));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto out, concat.RunAll(2));
  EXPECT_EQ(out[0].shape(), (Shape{3, 2}));
  EXPECT_THAT(ValuesOf<float>(out[0]), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(ValuesOf<int64_t>(out[1]), ElementsAre(1, 0, 2));
}

TEST_P(TensorArrayTest, ScattersAndGathersRows) {
  const Tensor array = Array(3);
  Op scatter = Make("Scatter");
  scatter.Type("T", kFloat)
      .In(array)
      .In(Ints({2, 0}))
      .In(Counted({2, 2}))
      .In(Float(0));
  OPTFARM_ASSERT_OK(scatter.RunAll(1));
  Op gather = Make("Gather");
  gather.Type("dtype", kFloat).In(array).In(Ints({0, 2})).In(Float(0));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor out, gather.Run());
  EXPECT_EQ(out.shape(), (Shape{2, 2}));
  EXPECT_THAT(ValuesOf<float>(out), ElementsAre(2, 3, 0, 1));
}

TEST_P(TensorArrayTest, AClosedOneIsOfNoUse) {
  const Tensor array = Array(3);
  OPTFARM_ASSERT_OK(Make("Close").In(array).RunAll(0));
  EXPECT_THAT(Write(array, 0, Float(1)),
              StatusIs(kInvalid, HasSubstr("closed")));
}

TEST_P(TensorArrayTest, AnotherTensorIsNoHandle) {
  EXPECT_THAT(Write(Float(1), 0, Float(1)),
              StatusIs(kInvalid, HasSubstr("not the handle")));
}

INSTANTIATE_TEST_SUITE_P(Versions, TensorArrayTest,
                         ::testing::Values("", "V2", "V3"));

// What the first version had for all elements at once.
TEST(FirstTensorArrayTest, UnpacksAndPacks) {
  Op make("TensorArray");
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor array,
                               make.Type("dtype", kFloat).In(Int(2)).Run());
  Op unpack("TensorArrayUnpack");
  unpack.In(array).In(Counted({2, 3})).In(Float(0));
  OPTFARM_ASSERT_OK(unpack.RunAll(1));
  Op pack("TensorArrayPack");
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor out,
      pack.Type("dtype", kFloat).In(array).In(Float(0)).Run());
  EXPECT_EQ(out.shape(), (Shape{2, 3}));
  EXPECT_THAT(ValuesOf<float>(out), ElementsAre(0, 1, 2, 3, 4, 5));
}

}  // namespace
}  // namespace optfarm::runtime
