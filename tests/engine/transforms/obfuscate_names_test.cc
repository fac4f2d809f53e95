#include "tests/engine/transforms/transform_testing.h"

namespace optfarm::transforms::testing {
namespace {

using ::testing::ElementsAre;

tensorflow::AttrValue Colocation(const std::string& text) {
  tensorflow::AttrValue value;
  value.mutable_list()->add_s(text);
  return value;
}

TEST(ObfuscateNamesTest, KeepsInputsAndOutputs) {
  GraphBuilder b;
  b.Placeholder("in", {2});
  b.Node("layer/relu", "Relu", {"in"}, FloatT());
  b.Node("layer/split", "IdentityN", {"layer/relu", "in"},
         {{"T", [] {
             tensorflow::AttrValue types;
             types.mutable_list()->add_type(tensorflow::DT_FLOAT);
             types.mutable_list()->add_type(tensorflow::DT_FLOAT);
             return types;
           }()}});
  b.Node("out", "Add", {"layer/split:1", "layer/split", "^layer/relu"},
         FloatT());
  Graph graph = b.Build();
  const TransformReport report =
      MustApply(&graph, "obfuscate_names", "in:0", "out:0");
  EXPECT_THAT(Names(graph), ElementsAre("in", "0", "1", "out"));
  EXPECT_EQ(Show(graph, "out"), "Add(1:1, 1, ^0)");
  EXPECT_THAT(report.renamed, ElementsAre(RenamedNode{"layer/relu", "0"},
                                          RenamedNode{"layer/split", "1"}));
  EXPECT_TRUE(report.has_hidden_names);
}

TEST(ObfuscateNamesTest, CountsInBase62AndSkipsNamesInUse) {
  GraphBuilder b;
  b.Placeholder("1", {2});
  // Old names that are new names of others.
  for (int i = 0; i < 64; ++i) {
    b.Node(i == 0 ? "0_" : std::to_string(2 * i + 1), "Relu", {"1"}, FloatT());
  }
  b.Node("a", "Relu", {"127"}, FloatT());
  Graph graph = b.Build();
  MustApply(&graph, "obfuscate_names", "1", "a");
  const std::vector<std::string> names = Names(graph);
  ASSERT_EQ(names.size(), 66u);
  EXPECT_EQ(names[0], "1");
  EXPECT_EQ(names[1], "0");
  EXPECT_EQ(names[2], "2");
  EXPECT_EQ(names[9], "9");
  // "a" is the output.
  EXPECT_EQ(names[10], "b");
  EXPECT_EQ(names[35], "A");
  EXPECT_EQ(names[60], "Z");
  EXPECT_EQ(names[61], "10");
  EXPECT_EQ(names[64], "13");
  EXPECT_EQ(Show(graph, "a"), "Relu(13)");
}

TEST(ObfuscateNamesTest, RewritesColocations) {
  GraphBuilder b;
  b.Placeholder("in", {2});
  b.Node("relu", "Relu", {"in"}, FloatT());
  b.Node("out", "Relu", {"relu"},
         FloatT({{"_class", Colocation("loc:@relu")}}));
  b.Node("other", "Relu", {"relu"},
         FloatT({{"_class", Colocation("loc:@gone")}}));
  b.Node("odd", "Relu", {"relu"}, FloatT({{"_class", IntAttr(1)}}));
  Graph graph = b.Build();
  MustApply(&graph, "obfuscate_names", "in", "out");
  const auto colocation = [&](const std::string& node) {
    return graph.node(graph.Find(node)).FindAttr("_class")->list().s(0);
  };
  EXPECT_EQ(colocation("out"), "loc:@0");
  EXPECT_EQ(colocation("1"), "loc:@gone");
  EXPECT_EQ(graph.node(graph.Find("2")).FindAttr("_class")->i(), 1);
}

}  // namespace
}  // namespace optfarm::transforms::testing
