// strip_unused and optimize_for_inference, step by step.

#include "engine/transforms/cleanup/inference_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/graph_builder.h"
#include "tests/support/status_matchers.h"

namespace optfarm::transforms {
namespace {

using ::optfarm::testing::GraphBuilder;
using ::optfarm::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

std::vector<std::string> Names(const graph::Graph& graph) {
  std::vector<std::string> names;
  for (const graph::NodeId id : graph.Ids()) {
    names.push_back(graph.node(id).name());
  }
  return names;
}

std::vector<std::string> Inputs(const graph::Graph& graph,
                                const std::string& name) {
  const tensorflow::GraphDef def = graph.ToDef();
  for (const tensorflow::NodeDef& node : def.node()) {
    if (node.name() == name) return {node.input().begin(), node.input().end()};
  }
  return {"no such node"};
}

graph::Graph Decoding() {
  GraphBuilder b;
  b.Node("file", "ReadFile", {});
  b.Node("picture", "DecodeJpeg", {"file"},
         {{"_output_shapes", testing::IntAttr(7)},
          {"shape", testing::IntAttr(8)},
          {"channels", testing::IntAttr(3)}});
  b.Node("wait", "NoOp", {});
  b.Node("y", "Relu", {"picture", "^wait"});
  b.Node("other", "Relu", {"picture"});
  return b.Build();
}

TEST(StripUnusedTest, InputsBecomePlaceholdersAndTheRestGoes) {
  graph::Graph graph = Decoding();
  OPTFARM_ASSERT_OK(
      StripUnused({{"picture"}, {"y"}, {tensorflow::DT_UINT8}}, &graph));
  EXPECT_THAT(Names(graph), ElementsAre("picture", "wait", "y"));
  const tensorflow::NodeDef& input = graph.node(graph.Find("picture")).def();
  EXPECT_EQ(input.op(), "Placeholder");
  EXPECT_EQ(input.attr().at("dtype").type(), tensorflow::DT_UINT8);
  EXPECT_EQ(input.attr().at("_output_shapes").i(), 7);
  EXPECT_EQ(input.attr().at("shape").i(), 8);
  EXPECT_FALSE(input.attr().contains("channels"));
  EXPECT_THAT(Inputs(graph, "y"), ElementsAre("picture", "^wait"));
}

TEST(StripUnusedTest, TypesAreOneForAllOrOneEach) {
  GraphBuilder b;
  b.Placeholder("p", {1});
  b.Placeholder("q", {1});
  b.Node("y", "Pack", {"p", "q"});
  graph::Graph graph = b.Build();
  OPTFARM_ASSERT_OK(StripUnused(
      {{"q", "p"}, {"y"}, {tensorflow::DT_INT32, tensorflow::DT_UINT8}},
      &graph));
  const auto type = [&](const std::string& name) {
    return graph.node(graph.Find(name)).FindAttr("dtype")->type();
  };
  EXPECT_EQ(type("q"), tensorflow::DT_INT32);
  EXPECT_EQ(type("p"), tensorflow::DT_UINT8);
  EXPECT_THAT(
      StripUnused({{"p"}, {"y"}, {tensorflow::DT_INT32, tensorflow::DT_UINT8}},
                  &graph),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("2 types are given for 1 inputs")));
}

TEST(StripUnusedTest, WrongNamesChangeNothing) {
  graph::Graph graph = Decoding();
  EXPECT_THAT(StripUnused({{"picture:0"}, {"y"}}, &graph),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("'picture:0' names a tensor")));
  EXPECT_THAT(StripUnused({{"pictures"}, {"y"}}, &graph),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("'picture'")));
  EXPECT_THAT(StripUnused({{"picture"}, {"z"}}, &graph),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("z")));
  EXPECT_THAT(
      StripUnused({{"picture"}, {}}, &graph),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("output")));
  EXPECT_EQ(graph.node_count(), 5);
  EXPECT_EQ(graph.node(graph.Find("picture")).op(), "DecodeJpeg");
}

TEST(RemoveTrainingNodesTest, SplicesChecksAndIdentities) {
  GraphBuilder b;
  b.Placeholder("x", {1});
  b.Node("checked", "CheckNumerics", {"x"});
  b.Node("copy", "Identity", {"checked"});
  b.Node("copy2", "Identity", {"copy"});
  b.Node("y", "Relu", {"copy2", "^checked"});
  b.Node("out", "Identity", {"y"});
  graph::Graph graph = b.Build();
  const std::vector<std::string> keep = {"out"};
  RemoveTrainingNodes(keep, &graph);
  EXPECT_THAT(Names(graph), ElementsAre("x", "y", "out"));
  EXPECT_THAT(Inputs(graph, "y"), ElementsAre("x"));
}

TEST(RemoveTrainingNodesTest, IdentitiesInControlEdgesStay) {
  GraphBuilder b;
  b.Placeholder("x", {1});
  b.Node("waits", "Identity", {"x", "^x"});
  b.Node("awaited", "Identity", {"x"});
  b.Node("y", "AddN", {"waits", "awaited"});
  b.Node("z", "Relu", {"y", "^awaited"});
  graph::Graph graph = b.Build();
  RemoveTrainingNodes({}, &graph);
  EXPECT_THAT(Names(graph),
              UnorderedElementsAre("x", "waits", "awaited", "y", "z"));
}

TEST(RemoveTrainingNodesTest, MalformedNodesAreLeftAlone) {
  GraphBuilder b;
  b.Node("none", "Identity", {});
  b.Node("self", "Identity", {"self"});
  b.Node("port", "CheckNumerics", {"none"});
  b.Node("y", "Relu", {"port:1"});
  graph::Graph graph = b.Build();
  RemoveTrainingNodes({}, &graph);
  EXPECT_EQ(graph.node_count(), 4);
}

}  // namespace
}  // namespace optfarm::transforms
