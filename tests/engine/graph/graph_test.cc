#include "engine/graph/graph.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace optfarm::graph {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

tensorflow::GraphDef Parse(const std::string& text) {
  tensorflow::GraphDef def;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &def));
  return def;
}

constexpr char kDiamond[] = R"(
  node { name: "a" op: "Split" }
  node { name: "b" op: "Neg" input: "a:1" }
  node { name: "c" op: "Add" input: "a" input: "b" input: "^a" }
  node { name: "d" op: "NoOp" input: "^c" }
  versions { producer: 24 })";

TEST(GraphTest, ADefinitionSurvivesTheRoundTrip) {
  const tensorflow::GraphDef def = Parse(kDiamond);
  OPTFARM_ASSERT_OK_AND_ASSIGN(Graph graph, Graph::FromDef(def));
  EXPECT_EQ(graph.ToDef().SerializeAsString(), def.SerializeAsString());
  EXPECT_EQ(std::move(graph).TakeDef().SerializeAsString(),
            def.SerializeAsString());
}

TEST(GraphTest, UnknownFieldsSurviveTheRoundTrip) {
  tensorflow::GraphDef def = Parse(kDiamond);
  def.mutable_node(0)
      ->GetReflection()
      ->MutableUnknownFields(def.mutable_node(0))
      ->AddVarint(4000, 7);
  OPTFARM_ASSERT_OK_AND_ASSIGN(Graph graph, Graph::FromDef(def));
  EXPECT_EQ(graph.ToDef().SerializeAsString(), def.SerializeAsString());
}

TEST(GraphTest, RefusesDuplicateNames) {
  EXPECT_THAT(
      Graph::FromDef(Parse("node{name:'x' op:'A'} node{name:'x' op:'B'}")),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'x'")));
}

TEST(GraphTest, RefusesADanglingInputAndOffersTheNearestName) {
  EXPECT_THAT(
      Graph::FromDef(Parse("node{name:'conv1' op:'A'} node{name:'y' op:'B' "
                           "input:'conv2'}")),
      StatusIs(
          absl::StatusCode::kInvalidArgument,
          AllOf(HasSubstr("'y'"), HasSubstr("'conv2'"), HasSubstr("'conv1'"))));
}

TEST(GraphTest, RefusesAMalformedPort) {
  EXPECT_THAT(Graph::FromDef(Parse("node{name:'x' op:'A'} node{name:'y' op:'B' "
                                   "input:'x:-3'}")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("x:-3")));
}

TEST(GraphTest, RedirectMovesOnlyUsesOfThatPort) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(Graph graph, Graph::FromDef(Parse(kDiamond)));
  tensorflow::NodeDef def;
  def.set_name("n");
  def.set_op("Const");
  const NodeId n = graph.Add(def, {});
  graph.RedirectUses({graph.Find("a"), 0}, {n, 0});
  EXPECT_EQ(graph.node(graph.Find("c")).inputs()[0], (Endpoint{n, 0}));
  EXPECT_EQ(graph.node(graph.Find("b")).inputs()[0],
            (Endpoint{graph.Find("a"), 1}));
  EXPECT_EQ(graph.UsesOf({graph.Find("a"), 0}).size(), 0u);
}

TEST(GraphTest, RedirectControlUsesKeepsOtherEdges) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(Graph graph, Graph::FromDef(Parse(kDiamond)));
  graph.RedirectControlUses(graph.Find("a"), graph.Find("b"));
  EXPECT_EQ(graph.ToDef().node(2).input(2), "^b");
}

TEST(GraphTest, ATakenNameGetsANumber) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(Graph graph, Graph::FromDef(Parse(kDiamond)));
  tensorflow::NodeDef def;
  def.set_name("a");
  def.set_op("Const");
  EXPECT_EQ(graph.node(graph.Add(def, {})).name(), "a_1");
  EXPECT_EQ(graph.node(graph.Add(def, {})).name(), "a_2");
}

TEST(GraphTest, RemoveAllTakesNodesThatUseEachOther) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(Graph graph, Graph::FromDef(Parse(kDiamond)));
  graph.RemoveAll({graph.Find("b"), graph.Find("c"), graph.Find("d")});
  EXPECT_EQ(graph.node_count(), 1);
  EXPECT_TRUE(graph.node(graph.Find("a")).uses().empty());
}

// Cutting one edge of a node with many must not cost as much as looking at all
// of them: this would take minutes.
TEST(GraphTest, ANodeMayHaveManyUsers) {
  constexpr int kUsers = 200000;
  tensorflow::GraphDef def = Parse(R"(node { name: "a" op: "Const" })");
  tensorflow::NodeDef* last = nullptr;
  for (int i = 0; i < kUsers; ++i) {
    tensorflow::NodeDef* node = def.add_node();
    node->set_name(std::to_string(i));
    node->set_op("Neg");
    node->add_input("a");
  }
  last = def.add_node();
  last->set_name("last");
  last->set_op("NoOp");
  for (int i = 0; i < kUsers; ++i) last->add_input("^" + std::to_string(i));
  OPTFARM_ASSERT_OK_AND_ASSIGN(Graph graph, Graph::FromDef(std::move(def)));
  graph.ClearControlInputs(graph.Find("last"));
  for (int i = 0; i < kUsers; ++i) {
    graph.Remove(graph.Find(std::to_string(i)));
  }
  EXPECT_TRUE(graph.node(graph.Find("a")).uses().empty());
  EXPECT_EQ(graph.node_count(), 2);
}

TEST(GraphTest, CuttingEdgesKeepsTheOthers) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(Graph graph, Graph::FromDef(Parse(kDiamond)));
  const NodeId a = graph.Find("a"), b = graph.Find("b"), c = graph.Find("c");
  // The first of a's three uses goes, then what took its place is cut.
  graph.SetInput(b, 0, {c, 0});
  graph.ClearControlInputs(c);
  ASSERT_EQ(graph.node(a).uses().size(), 1u);
  EXPECT_EQ(graph.node(a).uses()[0].consumer, c);
  graph.SetInput(c, 0, {b, 0});
  EXPECT_TRUE(graph.node(a).uses().empty());
  EXPECT_EQ(graph.node(c).uses().size(), 2u);
  EXPECT_EQ(graph.node(b).uses().size(), 2u);
}

TEST(ExecutionOrderTest, LastSourceOfTheFileComesFirst) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      Graph graph, Graph::FromDef(Parse("node{name:'x' op:'Const'} "
                                        "node{name:'y' op:'Const'} "
                                        "node{name:'z' op:'Add' input:'x' "
                                        "input:'y'}")));
  OPTFARM_ASSERT_OK_AND_ASSIGN(std::vector<NodeId> order,
                               ExecutionOrder(graph));
  EXPECT_EQ(order, (std::vector<NodeId>{1, 0, 2}));
}

TEST(ExecutionOrderTest, ALoopThroughMergeIsNoCycle) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      Graph graph,
      Graph::FromDef(Parse("node{name:'e' op:'Enter'} "
                           "node{name:'m' op:'Merge' input:'e' input:'n'} "
                           "node{name:'n' op:'NextIteration' input:'m'}")));
  OPTFARM_ASSERT_OK(ExecutionOrder(graph));
}

TEST(ExecutionOrderTest, ACycleIsNamed) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      Graph graph, Graph::FromDef(Parse("node{name:'p' op:'Neg' input:'q'} "
                                        "node{name:'q' op:'Neg' input:'p'}")));
  EXPECT_THAT(
      ExecutionOrder(graph),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("2 nodes in a cycle"), HasSubstr("'p'"))));
}

}  // namespace
}  // namespace optfarm::graph
