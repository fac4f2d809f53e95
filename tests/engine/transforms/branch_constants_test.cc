#include "engine/transforms/quantizing/branch_constants.h"

#include <string>
#include <utility>
#include <vector>

#include "tests/engine/transforms/transform_testing.h"

namespace optfarm::transforms::testing {
namespace {

// A product in the branch of a conditional; its weights come through a Switch
// of `condition`, by output `port`.
Graph Branch(const std::string& condition, const std::string& port) {
  GraphBuilder b;
  b.Placeholder("in", {2, 4});
  b.Node("yes", "Placeholder", {}, {{"dtype", TypeAttr(tensorflow::DT_BOOL)}});
  b.Node("other", "Placeholder", {},
         {{"dtype", TypeAttr(tensorflow::DT_BOOL)}});
  b.Floats("w", {4, 3}, std::vector<float>(12, 1.0f));
  b.Node("read", "Identity", {"w"}, FloatT());
  b.Node("in_branch", "Switch", {"in", "yes"}, FloatT());
  b.Node("flat", "Relu", {"in_branch:1"}, FloatT());
  b.Node("w_branch", "Switch", {"read", condition}, FloatT());
  b.Node("product", "MatMul", {"flat", "w_branch" + port},
         FloatT({{"transpose_a", BoolAttr(false)},
                 {"transpose_b", BoolAttr(false)}}));
  b.Node("out", "Merge", {"product", "in_branch"}, FloatT());
  return b.Build();
}

TEST(BranchConstantsTest, AreReadByWhatTheBranchCutsOffAnyway) {
  Graph graph = Branch("yes", ":1");
  EXPECT_EQ(ReadConstantsDirectly(&graph), 1);
  EXPECT_EQ(Show(graph, "product"), "MatMul(flat, w)");
}

TEST(BranchConstantsTest, OfAnotherConditionOrSideStay) {
  for (const auto& [condition, port] :
       {std::pair("other", ":1"), std::pair("yes", "")}) {
    Graph graph = Branch(condition, port);
    const std::string before = Show(graph, "product");
    EXPECT_EQ(ReadConstantsDirectly(&graph), 0);
    EXPECT_EQ(Show(graph, "product"), before);
  }
}

TEST(BranchConstantsTest, MakeProductsOfBranchesLayers) {
  Graph graph = Branch("yes", ":1");
  MustApply(&graph, "quantize_layers strip_unused_nodes", "in,yes", "out");
  EXPECT_NE(graph.Find("product/eightbit"), graph::kNoNode);
  EXPECT_EQ(graph.Find("w_branch"), graph::kNoNode);
}

}  // namespace
}  // namespace optfarm::transforms::testing
