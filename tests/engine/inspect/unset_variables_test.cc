// Which variables have no value in the graph.

#include "engine/inspect/unset_variables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/graph_builder.h"

namespace optfarm::inspect {
namespace {

using ::optfarm::testing::FloatT;
using ::optfarm::testing::GraphBuilder;
using ::optfarm::testing::TypeAttr;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> Find(GraphBuilder& b, const std::string& output) {
  const graph::Graph graph = b.Build();
  return FindUnsetVariables(graph, {graph.Find(output)});
}

TEST(UnsetVariablesTest, AreThoseThatOutputsReadAndNothingAssigns) {
  GraphBuilder b;
  b.Placeholder("x", {1});
  b.Node("w", "VariableV2", {}, {{"dtype", TypeAttr(tensorflow::DT_FLOAT)}});
  b.Node("other", "VariableV2", {},
         {{"dtype", TypeAttr(tensorflow::DT_FLOAT)}});
  b.Node("handle", "VarHandleOp", {},
         {{"dtype", TypeAttr(tensorflow::DT_FLOAT)}});
  b.Node("value", "ReadVariableOp", {"handle"},
         {{"dtype", TypeAttr(tensorflow::DT_FLOAT)}});
  b.Node("sum", "Add", {"x", "w"}, FloatT());
  b.Node("y", "Add", {"sum", "value"}, FloatT());
  EXPECT_THAT(Find(b, "y"), ElementsAre("w", "handle"));
  EXPECT_THAT(Find(b, "x"), IsEmpty());
}

TEST(UnsetVariablesTest, StateThatARunSetsIsNone) {
  GraphBuilder b;
  b.Placeholder("x", {1});
  b.Node("handle", "VarHandleOp", {},
         {{"dtype", TypeAttr(tensorflow::DT_FLOAT)}});
  b.Node("set", "AssignVariableOp", {"handle", "x"},
         {{"dtype", TypeAttr(tensorflow::DT_FLOAT)}});
  b.Node("value", "ReadVariableOp", {"handle", "^set"},
         {{"dtype", TypeAttr(tensorflow::DT_FLOAT)}});
  EXPECT_THAT(Find(b, "value"), IsEmpty());
}

}  // namespace
}  // namespace optfarm::inspect
