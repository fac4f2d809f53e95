#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "engine/graph/attr.h"
#include "engine/transforms/nodes/quantized_layers.h"
#include "engine/transforms/quantizing/block_codes.h"
#include "tests/engine/transforms/transform_testing.h"

namespace optfarm::transforms::testing {
namespace {

using runtime::BlockGrid;
using runtime::Shape;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kQuantize[] = "quantize_product_weights(minimum_size=2)";

std::vector<float> Normal(int64_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::vector<float> values;
  // Sums of twelve uniform numbers, the same on every machine.
  for (int64_t i = 0; i < count; ++i) {
    float sum = -6;
    for (int j = 0; j < 12; ++j) {
      sum += static_cast<float>(engine() >> 8) / static_cast<float>(1 << 24);
    }
    values.push_back(0.1f * sum);
  }
  return values;
}

std::vector<float> Decoded(const BlockGrid& grid, const BlockCodes& codes) {
  std::vector<float> out(static_cast<size_t>(grid.shape().num_elements()));
  runtime::DequantizeOuter(grid, codes.values, codes.scales, codes.zero_points,
                           0, grid.outer(), out.data());
  return out;
}

double SnrDb(const std::vector<float>& wanted, const std::vector<float>& got) {
  double signal = 0, noise = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    signal += wanted[i] * wanted[i];
    noise += (got[i] - wanted[i]) * (got[i] - wanted[i]);
  }
  return 10 * std::log10(signal / noise);
}

TEST(BlockCodesTest, NormalValuesKeepTwentyTwoDecibels) {
  const std::vector<float> reals = Normal(32 * 64, 1);
  const BlockGrid grid(Shape({64, 32}), 0, 32);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const BlockCodes codes,
                               EncodeBlocks(reals, grid));
  EXPECT_GT(SnrDb(reals, Decoded(grid, codes)), 22);
  EXPECT_EQ(codes.scales.shape(), Shape({2, 32}));
  EXPECT_EQ(codes.values.num_elements(), 32 * 64 / 2);
  EXPECT_EQ(codes.zero_points.num_elements(), 32);
}

TEST(BlockCodesTest, ValuesOfFifteenStepsAreExactAndZeroStaysZero) {
  std::vector<float> reals;
  for (int i = 0; i < 16; ++i) reals.push_back(0.25f * (i - 5));
  const BlockGrid grid(Shape({1, 16}), 1, 16);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const BlockCodes codes,
                               EncodeBlocks(reals, grid));
  EXPECT_EQ(Decoded(grid, codes), reals);
}

TEST(BlockCodesTest, BlocksOfOneSignUseAllValues) {
  for (const float sign : {1.0f, -1.0f}) {
    std::vector<float> reals;
    for (int i = 0; i < 16; ++i) reals.push_back(sign * static_cast<float>(i));
    const BlockGrid grid(Shape({16, 1}), 0, 16);
    OPTFARM_ASSERT_OK_AND_ASSIGN(const BlockCodes codes,
                                 EncodeBlocks(reals, grid));
    EXPECT_EQ(Decoded(grid, codes), reals);
  }
}

// An outlier costs less when it is cut off a little.
TEST(BlockCodesTest, LeavesOutWhatCostsMoreThanItIsWorth) {
  std::vector<float> reals = Normal(32, 3);
  reals[7] = 0.6f;
  const BlockGrid grid(Shape({32, 1}), 0, 32);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const BlockCodes codes,
                               EncodeBlocks(reals, grid));
  const auto [least, most] = std::minmax_element(reals.begin(), reals.end());
  std::vector<float> plain;
  const float step = (*most - *least) / 15;
  for (const float real : reals) {
    plain.push_back(step * std::nearbyint(real / step));
  }
  // With the best scale for the whole range it is 0.01 dB.
  EXPECT_GE(SnrDb(reals, Decoded(grid, codes)), SnrDb(reals, plain) + 0.1);
}

TEST(BlockCodesTest, AllZerosAndTinyValuesStayFinite) {
  for (const float value : {0.0f, 1e-12f, -1e-40f}) {
    const std::vector<float> reals(20, value);
    const BlockGrid grid(Shape({20, 1}), 0, 16);
    OPTFARM_ASSERT_OK_AND_ASSIGN(const BlockCodes codes,
                                 EncodeBlocks(reals, grid));
    for (const float decoded : Decoded(grid, codes)) EXPECT_EQ(decoded, 0);
  }
}

// [7, 40] by [40, 12], with a block that is not full.
GraphBuilder Product(const std::vector<float>& weights) {
  GraphBuilder b;
  b.Placeholder("in", {7, 40});
  b.Floats("w", {40, 12}, weights);
  b.Node("out", "MatMul", {"in", "w"}, FloatT());
  return b;
}

TEST(QuantizeProductWeightsTest, StoresWeightsInBlocksUnderTheOldName) {
  const std::vector<float> weights = Normal(480, 5);
  Graph graph = Product(weights).Build();
  const Tensor x = Wave(Shape({7, 40}));
  const std::vector<float> before = testing::Run(graph, "in", x, "out");
  EXPECT_EQ(MustApply(&graph, kQuantize, "in", "out").nodes_changed, 1);
  EXPECT_EQ(Show(graph, "w"),
            "DequantizeBlocks(w_blocks, w_block_scales, w_block_zeros)");
  const std::vector<float> stored = testing::Run(graph, "in", x, "w");
  EXPECT_GT(SnrDb(weights, stored), 22);
  EXPECT_GT(SnrDb(before, testing::Run(graph, "in", x, "out")), 18);
}

TEST(QuantizeProductWeightsTest, IsTheSameEveryTime) {
  Graph one = Product(Normal(480, 5)).Build();
  Graph other = Product(Normal(480, 5)).Build();
  MustApply(&one, kQuantize, "in", "out");
  MustApply(&other, kQuantize, "in", "out");
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(
      one.ToDef(), other.ToDef()));
}

TEST(QuantizeProductWeightsTest, BlocksFollowTheSummedAxis) {
  GraphBuilder b;
  b.Placeholder("in", {7, 40});
  b.Floats("w", {12, 40}, Normal(480, 5));
  b.Node("out", "MatMul", {"in", "w"},
         FloatT({{"transpose_b", BoolAttr(true)}}));
  Graph graph = b.Build();
  MustApply(&graph, kQuantize, "in", "out");
  const graph::Node& w = graph.node(graph.Find("w"));
  EXPECT_EQ(graph::GetInt(w.def(), "axis").value(), 1);
}

TEST(QuantizeProductWeightsTest, OnlyWhatProductsAloneReadIsStored) {
  GraphBuilder b = Product(Normal(480, 5));
  b.Node("seen", "Neg", {"w"}, FloatT());
  Graph graph = b.Build();
  EXPECT_EQ(MustApply(&graph, kQuantize, "in", "out,seen").nodes_changed, 0);
  // The two sum over different axes.
  GraphBuilder other = Product(Normal(480, 5));
  other.Placeholder("in2", {7, 12});
  other.Node("out2", "MatMul", {"in2", "w"},
             FloatT({{"transpose_b", BoolAttr(true)}}));
  graph = other.Build();
  EXPECT_EQ(MustApply(&graph, kQuantize, "in,in2", "out,out2").nodes_changed,
            0);
}

TEST(QuantizeProductWeightsTest, TablesAreStoredOnRequest) {
  GraphBuilder b;
  b.Placeholder("in", {7}, tensorflow::DT_INT32);
  b.Floats("w", {10, 64}, Normal(640, 5));
  b.Node("out", "Gather", {"w", "in"},
         {{"Tparams", TypeAttr(tensorflow::DT_FLOAT)},
          {"Tindices", TypeAttr(tensorflow::DT_INT32)}});
  Graph graph = b.Build();
  EXPECT_EQ(MustApply(&graph, kQuantize, "in", "out").nodes_changed, 0);
  EXPECT_EQ(
      MustApply(&graph, "quantize_product_weights(minimum_size=2, tables=true)",
                "in", "out")
          .nodes_changed,
      1);
}

TEST(QuantizeProductWeightsTest, SmallExcludedAndBadConstantsStay) {
  for (const char* transform :
       {"quantize_product_weights",
        "quantize_product_weights(minimum_size=2, exclude_node=w)",
        "quantize_product_weights(minimum_size=2, exclude_node=out)",
        "quantize_product_weights(minimum_size=2, ignore_op=MatMul)"}) {
    Graph graph = Product(Normal(480, 5)).Build();
    EXPECT_EQ(MustApply(&graph, transform, "in", "out").nodes_changed, 0)
        << transform;
  }
  std::vector<float> bad = Normal(480, 5);
  bad[5] = std::numeric_limits<float>::quiet_NaN();
  Graph graph = Product(bad).Build();
  EXPECT_THAT(Skipped(MustApply(&graph, kQuantize, "in", "out")),
              ElementsAre("w: it holds NaN or infinite values"));
  bad[5] = 1e6f;
  Graph large = Product(bad).Build();
  EXPECT_THAT(Skipped(MustApply(&large, kQuantize, "in", "out")),
              ElementsAre(HasSubstr("too large for scales of 16 bits")));
}

TEST(QuantizeProductWeightsTest, RefusesOddBlocks) {
  for (const char* size : {"0", "8", "33", "512"}) {
    Graph graph = Product(Normal(480, 5)).Build();
    const auto report =
        Apply(&graph,
              std::string("quantize_product_weights(block_size=") + size + ")",
              "in", "out");
    EXPECT_THAT(report.status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("give 16, 32, 64, 128 or 256")));
  }
}

TEST(QuantizeProductWeightsTest, IsDescribedByItsBlocks) {
  Graph graph = Product(Normal(480, 5)).Build();
  MustApply(&graph, kQuantize, "in", "out");
  EXPECT_EQ(Describe(CountQuantizedLayers(graph)),
            "4-bit weights, a scale for each block, float values, 1 of 1 "
            "layers");
}

}  // namespace
}  // namespace optfarm::transforms::testing
