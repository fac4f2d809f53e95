// factorize_products: two smaller products in place of a large one.

#include <cmath>
#include <limits>

#include "tests/engine/transforms/transform_testing.h"

namespace optfarm::transforms::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kFactorize[] = "factorize_products(tolerance=0, minimum_size=1)";

// Run, by a name that fixtures do not have.
std::vector<float> ProductOf(const Graph& graph, const Tensor& in,
                             const std::string& name) {
  return Run(graph, "in", in, name);
}

std::vector<float> Product(const std::vector<float>& a,
                           const std::vector<float>& b, int64_t rank) {
  const auto inner = static_cast<size_t>(rank);
  const size_t rows = a.size() / inner, columns = b.size() / inner;
  std::vector<float> product(rows * columns);
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < columns; ++j) {
      for (size_t k = 0; k < inner; ++k) {
        product[i * columns + j] += a[i * inner + k] * b[k * columns + j];
      }
    }
  }
  return product;
}

std::vector<float> OfRank(int64_t rows, int64_t columns, int64_t rank) {
  return Product(RandomValues(rows * rank, 1), RandomValues(rank * columns, 2),
                 rank);
}

GraphBuilder MatrixNet(const std::vector<float>& weights, bool is_turned) {
  GraphBuilder b;
  b.Placeholder("in", {2, 12});
  b.Floats(
      "w",
      is_turned ? std::vector<int64_t>{10, 12} : std::vector<int64_t>{12, 10},
      weights);
  b.Node("product", "MatMul", {"in", "w"},
         FloatT({{"transpose_b", BoolAttr(is_turned)}}));
  b.Node("out", "Softplus", {"product"}, FloatT());
  return b;
}

TEST(FactorizeProductsTest, AProductOfLowRankBecomesTwo) {
  for (const bool is_turned : {false, true}) {
    const GraphBuilder b =
        MatrixNet(is_turned ? OfRank(10, 12, 3) : OfRank(12, 10, 3), is_turned);
    Graph graph = b.Build();
    EXPECT_EQ(MustApply(&graph, kFactorize, "in", "out").nodes_changed, 1);
    EXPECT_EQ(Show(graph, "product"), "MatMul(product/first, w)");
    EXPECT_EQ(Show(graph, "product/first"), "MatMul(in, w/first)");
    EXPECT_THAT(DimsOf(graph, "w/first"),
                is_turned ? ElementsAre(3, 12) : ElementsAre(12, 3));
    EXPECT_THAT(DimsOf(graph, "w"),
                is_turned ? ElementsAre(10, 3) : ElementsAre(3, 10));
    EXPECT_THAT(ProductOf(graph, Wave({2, 12}), "product"),
                AllNear(ProductOf(b.Build(), Wave({2, 12}), "product"), 1e-5f));
  }
}

TEST(FactorizeProductsTest, AConvolutionKeepsItsWindowInTheFirst) {
  GraphBuilder b;
  b.Placeholder("in", {1, 7, 6, 2});
  b.Floats("w", {3, 2, 2, 9}, OfRank(12, 9, 2));
  b.Conv2D("conv", "in", "w", 2, 2);
  (*b.mutable_def()->mutable_node()->rbegin()->mutable_attr())["dilations"] =
      IntsAttr({1, 1, 1, 1});
  b.Node("out", "Softplus", {"conv"}, FloatT());
  Graph graph = b.Build();
  EXPECT_EQ(MustApply(&graph, kFactorize, "in", "out").nodes_changed, 1);
  EXPECT_THAT(DimsOf(graph, "w/first"), ElementsAre(3, 2, 2, 2));
  EXPECT_THAT(DimsOf(graph, "w"), ElementsAre(1, 1, 2, 9));
  EXPECT_THAT(ProductOf(graph, Wave({1, 7, 6, 2}), "conv"),
              AllNear(ProductOf(b.Build(), Wave({1, 7, 6, 2}), "conv"), 1e-5f));
}

TEST(FactorizeProductsTest, LeavesGroupsAndUnknownChannelsAlone) {
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{1, 3, 2, 12}, std::vector<int64_t>{1, 3, 2, 24},
        std::vector<int64_t>{1, 3, 2, -1}}) {
    GraphBuilder b;
    b.Placeholder("in", shape);
    b.Floats("w", {1, 1, 12, 10}, OfRank(12, 10, 2));
    b.Conv2D("conv", "in", "w");
    b.Node("out", "Softplus", {"conv"}, FloatT());
    Graph graph = b.Build();
    const TransformReport report = MustApply(&graph, kFactorize, "in", "out");
    if (shape.back() == 12) {
      EXPECT_EQ(report.nodes_changed, 1);
      continue;
    }
    EXPECT_EQ(report.nodes_changed, 0);
    EXPECT_THAT(Skipped(report),
                ElementsAre("w: node 'conv' has groups, another layout or an "
                            "unknown number of channels"));
  }
}

// |a - b| over |a|.
double Distance(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(a[i] - b[i], 2);
    size += std::pow(a[i], 2);
  }
  return std::sqrt(difference / size);
}

TEST(FactorizeProductsTest, TheRankIsTheLeastWithinTheTolerance) {
  // Singular values 1, 1/2, 1/4, ... of random directions, nearly.
  std::vector<float> weights(40 * 30);
  for (int k = 0; k < 12; ++k) {
    const std::vector<float> one =
        Product(RandomValues(40, 10 + k), RandomValues(30, 30 + k), 1);
    for (size_t i = 0; i < one.size(); ++i) {
      weights[i] += std::ldexp(one[i], -k);
    }
  }
  GraphBuilder b;
  b.Placeholder("in", {1, 40});
  b.Floats("w", {40, 30}, weights);
  b.Node("product", "MatMul", {"in", "w"}, FloatT());
  b.Node("out", "Softplus", {"product"}, FloatT());
  int64_t rank_before = 100;
  for (const double tolerance : {0.01, 0.05, 0.2, 0.5}) {
    Graph graph = b.Build();
    MustApply(&graph,
              absl::StrCat("factorize_products(minimum_size=1, tolerance=",
                           tolerance, ")"),
              "in", "out");
    const int64_t rank = DimsOf(graph, "w")[0];
    EXPECT_LT(rank, rank_before);
    rank_before = rank;
    const double distance = Distance(
        weights,
        Product(FloatsOf(graph, "w/first"), FloatsOf(graph, "w"), rank));
    EXPECT_LE(distance, tolerance + 1e-6);
    // One less would be about half as near.
    EXPECT_GT(distance, tolerance / 4);
  }
}

TEST(FactorizeProductsTest, LeavesAloneWhatSavesTooLittle) {
  // Rank 4 of 12 x 10: 88 weights instead of 120.
  Graph graph = MatrixNet(OfRank(12, 10, 4), false).Build();
  const TransformReport report =
      MustApply(&graph,
                "factorize_products(tolerance=0, minimum_size=1, "
                "minimum_saving=0.3)",
                "in", "out");
  EXPECT_EQ(report.nodes_changed, 0);
  EXPECT_THAT(Skipped(report),
              ElementsAre("w: rank 3 of 10, which saves enough, is not within "
                          "the tolerance"));
  EXPECT_EQ(MustApply(&graph, kFactorize, "in", "out").nodes_changed, 1);
}

TEST(FactorizeProductsTest, ProductsThatShareWeightsShareTheFactors) {
  GraphBuilder b = MatrixNet(OfRank(12, 10, 2), false);
  b.Placeholder("more", {2, 12});
  b.Node("other", "MatMul", {"more", "w"}, FloatT());
  Graph graph = b.Build();
  EXPECT_EQ(MustApply(&graph, kFactorize, "in,more", "out,other").nodes_changed,
            1);
  EXPECT_EQ(Show(graph, "other"), "MatMul(other/first, w)");
  EXPECT_EQ(Show(graph, "other/first"), "MatMul(more, w/first)");
  // Who reads them otherwise needs them whole.
  b.Node("sum", "Softplus", {"w"}, FloatT());
  graph = b.Build();
  EXPECT_THAT(
      Skipped(MustApply(&graph, kFactorize, "in,more", "out,other,sum")),
      ElementsAre("w: node 'sum' reads it otherwise than as weights"));
}

TEST(FactorizeProductsTest, LeavesAloneWhatItIsTold) {
  for (const char* transform :
       {"factorize_products(minimum_size=121)",
        "factorize_products(minimum_size=1, exclude_node=w)",
        "factorize_products(minimum_size=1, exclude_node=product)"}) {
    Graph graph = MatrixNet(OfRank(12, 10, 2), false).Build();
    EXPECT_EQ(MustApply(&graph, transform, "in", "out").nodes_changed, 0)
        << transform;
  }
}

TEST(FactorizeProductsTest, LeavesAloneWhatIsNoNumber) {
  std::vector<float> weights = OfRank(12, 10, 2);
  weights[5] = std::numeric_limits<float>::infinity();
  Graph graph = MatrixNet(weights, false).Build();
  EXPECT_EQ(MustApply(&graph, kFactorize, "in", "out").nodes_changed, 0);
}

TEST(FactorizeProductsTest, RefusesSharesOutOfRange) {
  for (const char* parameter : {"tolerance", "minimum_saving"}) {
    for (const char* value : {"-0.5", "1"}) {
      Graph graph = MatrixNet(OfRank(12, 10, 2), false).Build();
      EXPECT_THAT(
          Apply(&graph,
                absl::StrCat("factorize_products(", parameter, "=", value, ")"),
                "in", "out")
              .status(),
          StatusIs(absl::StatusCode::kInvalidArgument,
                   HasSubstr(absl::StrCat("'", parameter, "' is ", value))));
    }
  }
}

}  // namespace
}  // namespace optfarm::transforms::testing
