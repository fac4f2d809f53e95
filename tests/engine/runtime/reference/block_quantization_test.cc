// DequantizeBlocks, with values computed by hand.

#include "engine/runtime/reference/quantized/block_quantization.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "engine/runtime/core/half.h"
#include "tests/engine/runtime/run_op.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor Bytes(const std::vector<uint8_t>& values) {
  return Tensor::FromValues<uint8_t>({static_cast<int64_t>(values.size())},
                                     values);
}

// A DequantizeBlocks that is begun; its inputs follow.
class Blocks {
 public:
  Blocks(const std::vector<int64_t>& shape, int64_t axis, int64_t block) {
    node_.set_name("n");
    node_.set_op("DequantizeBlocks");
    graph::SetInt(&node_, "axis", axis);
    graph::SetInt(&node_, "block_size", block);
    auto* dims = (*node_.mutable_attr())["shape"].mutable_shape();
    for (const int64_t dim : shape) dims->add_dim()->set_size(dim);
  }
  Blocks& In(Tensor input) {
    inputs_.push_back(std::move(input));
    return *this;
  }
  absl::StatusOr<Tensor> Run() {
    graph::SetType(&node_, "S", inputs_[1].dtype());
    auto outputs = EvaluateNode(node_, inputs_, 1);
    if (!outputs.ok()) return outputs.status();
    return (*outputs)[0];
  }

 private:
  tensorflow::NodeDef node_;
  std::vector<Tensor> inputs_;
};

TEST(DequantizeBlocksTest, FirstValueIsTheLowerHalf) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor y, Blocks({1, 3}, 1, 4)
                                                   .In(Bytes({0xf8, 0x00}))
                                                   .In(Floats({1, 1}, {0.5f}))
                                                   .In(Bytes({}))
                                                   .Run());
  EXPECT_EQ(y.shape(), Shape({1, 3}));
  EXPECT_THAT(ValuesOf<float>(y), ElementsAre(0, 3.5f, -4));
}

// Rows 0 and 1 are one block, row 2 the next; each column has its own scale.
TEST(DequantizeBlocksTest, BlocksAreAlongTheAxis) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor y,
                               Blocks({3, 2}, 0, 2)
                                   .In(Bytes({0x21, 0x43, 0x65}))
                                   .In(Floats({2, 2}, {1, 10, 100, 1000}))
                                   .In(Bytes({0x10, 0x32}))
                                   .Run());
  EXPECT_THAT(ValuesOf<float>(y), ElementsAre(1, 10, 3, 30, 300, 3000));
}

TEST(DequantizeBlocksTest, ScalesMayBeHalves) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor scale,
      FloatAsHalf(Floats({2, 1}, {0.25f, 2}), tensorflow::DT_HALF));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor y, Blocks({2, 2}, -1, 16)
                                                   .In(Bytes({0x79, 0xa8}))
                                                   .In(scale)
                                                   .In(Bytes({}))
                                                   .Run());
  EXPECT_THAT(ValuesOf<float>(y), ElementsAre(0.25f, -0.25f, 0, 4));
}

TEST(DequantizeBlocksTest, TellsWhatDoesNotFit) {
  const Tensor scale = Floats({1, 2}, {1, 1});
  EXPECT_THAT(Blocks({4, 2}, 0, 4).In(Bytes({1})).In(scale).In(Bytes({})).Run(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("'x' has 1 bytes, 4 expected for 8 values")));
  const Tensor x = Bytes({1, 2, 3, 4});
  EXPECT_THAT(Blocks({4, 2}, 0, 2).In(x).In(scale).In(Bytes({})).Run(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("scale")));
  EXPECT_THAT(Blocks({4, 2}, 0, 4).In(x).In(scale).In(Bytes({1, 2})).Run(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("'zero_point' has 2 bytes")));
  EXPECT_THAT(Blocks({4, 2}, 2, 4).In(x).In(scale).In(Bytes({})).Run(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("axis")));
  EXPECT_THAT(Blocks({4, 2}, 0, 0).In(x).In(scale).In(Bytes({})).Run(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("'block_size' must be at least 1")));
  EXPECT_THAT(Blocks({-1, 2}, 0, 4).In(x).In(scale).In(Bytes({})).Run(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("shape")));
}

TEST(DequantizeBlocksTest, OfNothingIsNothing) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor y, Blocks({3, 0}, 0, 2)
                                                   .In(Bytes({}))
                                                   .In(Floats({2, 0}, {}))
                                                   .In(Bytes({}))
                                                   .Run());
  EXPECT_EQ(y.shape(), Shape({3, 0}));
}

}  // namespace
}  // namespace optfarm::runtime
