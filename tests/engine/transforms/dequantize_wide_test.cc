#include "engine/graph/verify.h"
#include "tests/engine/transforms/transform_testing.h"

namespace optfarm::transforms::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kQuantize[] =
    "quantize_weights(minimum_size=1) quantize_nodes strip_unused_nodes";

// Whole numbers over a range of 255 from `low` on: 8-bit values hold them
// exactly.
std::vector<float> WholeNumbers(int64_t count, float low) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(low + static_cast<float>((i * 85) % 256));
  }
  values.back() = low + 255.0f;
  return values;
}

Tensor Input() {
  return Tensor::FromValues<float>({2, 8}, WholeNumbers(16, 0.0f));
}

// in [2,8] -> MatMul -> Tanh, which stays in float.
Graph Product() {
  GraphBuilder b;
  b.Placeholder("in", {2, 8});
  b.Floats("w", {8, 6}, WholeNumbers(8 * 6, -127.0f));
  b.Node("product", "MatMul", {"in", "w"},
         FloatT({{"transpose_a", BoolAttr(false)},
                 {"transpose_b", BoolAttr(false)}}));
  b.Node("out", "Tanh", {"product"}, FloatT());
  return b.Build();
}

double LargestError(const std::vector<float>& got,
                    const std::vector<float>& wanted) {
  EXPECT_EQ(got.size(), wanted.size());
  double worst = 0.0;
  for (size_t i = 0; i < got.size(); ++i) {
    worst = std::max(worst, std::abs(double{got[i]} - wanted[i]));
  }
  return worst;
}

TEST(DequantizeWideTest, ReadsThe32BitResult) {
  Graph graph = Product();
  MustApply(&graph, kQuantize, "in", "out");
  ASSERT_EQ(Show(graph, "product"),
            "Dequantize(product/eightbit/requantize, "
            "product/eightbit/requantize:1, product/eightbit/requantize:2)");
  EXPECT_EQ(MustApply(&graph, "dequantize_wide", "in", "out").nodes_changed, 1);
  EXPECT_EQ(Show(graph, "product"),
            "Dequantize(product/eightbit, product/eightbit:1, "
            "product/eightbit:2)");
  EXPECT_EQ(graph.node(graph.Find("product")).FindAttr("T")->type(),
            tensorflow::DT_QINT32);
}

TEST(DequantizeWideTest, LeavesAValidGraph) {
  Graph graph = Product();
  MustApply(&graph, kQuantize, "in", "out");
  MustApply(&graph, "dequantize_wide strip_unused_nodes", "in", "out");
  EXPECT_THAT(graph::Verify(graph), IsOk());
  EXPECT_EQ(graph.Find("product/eightbit/requantize"), graph::kNoNode);
  EXPECT_EQ(graph.Find("product/eightbit/requant_range"), graph::kNoNode);
}

TEST(DequantizeWideTest, ComesNearerToFloat) {
  Graph graph = Product();
  const auto product = [&graph] {
    return testing::Run(graph, "in", Input(), "product");
  };
  const std::vector<float> wanted = product();
  MustApply(&graph, kQuantize, "in", "out");
  const double narrow = LargestError(product(), wanted);
  MustApply(&graph, "dequantize_wide", "in", "out");
  const double wide = LargestError(product(), wanted);
  EXPECT_GT(narrow, 10.0);
  // Products of whole numbers are whole numbers.
  EXPECT_LT(wide, 0.5);
}

TEST(DequantizeWideTest, LeavesARangeThatComesFromElsewhere) {
  Graph graph = Product();
  MustApply(&graph, kQuantize, "in", "out");
  const graph::NodeId requantize = graph.Find("product/eightbit/requantize");
  ASSERT_NE(requantize, graph::kNoNode);
  const graph::NodeId range =
      graph.Add(MakeScalarConst("elsewhere", -1.0f), {});
  graph.SetInput(requantize, 1, {range, 0});
  const TransformReport report =
      MustApply(&graph, "dequantize_wide", "in", "out");
  EXPECT_EQ(report.nodes_changed, 0);
  EXPECT_THAT(Skipped(report), ElementsAre(HasSubstr("product: the range")));
}

TEST(DequantizeWideTest, LeavesCodesThatWereNever32Bits) {
  GraphBuilder b;
  b.Floats("w", {4}, {1, 2, 3, 4});
  b.Node("out", "Relu", {"w"}, FloatT());
  Graph graph = b.Build();
  MustApply(&graph, "quantize_weights(minimum_size=1)", "", "out");
  ASSERT_THAT(Show(graph, "w"), HasSubstr("Dequantize("));
  EXPECT_EQ(MustApply(&graph, "dequantize_wide", "", "out").nodes_changed, 0);
}

}  // namespace
}  // namespace optfarm::transforms::testing
