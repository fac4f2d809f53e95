// Calls: functions of the graph's library, PartitionedCall, If and While.

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "engine/runtime/session/session.h"
#include "tests/engine/runtime/graph_maker.h"
#include "tests/engine/runtime/run_op.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kFloat = tensorflow::DT_FLOAT;
constexpr auto kBool = tensorflow::DT_BOOL;

void AddFunction(const std::string& text, GraphMaker* g) {
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      text, g->def()->mutable_library()->add_function()));
}

std::string T(const std::string& value) {
  return " attr { key: 'T' value { " + value + " } } ";
}

// Square(x: T) -> y and SquarePlusOne(x: float) -> y, which calls it.
void AddSquares(GraphMaker* g) {
  AddFunction(
      "signature { name: 'Square2' input_arg { name: 'x' type_attr: 'T' }"
      "  output_arg { name: 'y' type_attr: 'T' }"
      "  attr { name: 'T' type: 'type' } }"
      "node_def { name: 'mul' op: 'Mul' input: 'x' input: 'x'" +
          T("placeholder: 'T'") + "} ret { key: 'y' value: 'mul:z:0' }",
      g);
  AddFunction(
      "signature { name: 'SquarePlusOne' input_arg { name: 'x' type: DT_FLOAT }"
      "  output_arg { name: 'y' type: DT_FLOAT } }"
      "node_def { name: 'sq' op: 'Square2' input: 'x'" +
          T("type: DT_FLOAT") +
          "} node_def { name: 'one' op: 'Const'"
          "  attr { key: 'dtype' value { type: DT_FLOAT } }"
          "  attr { key: 'value' value { tensor { dtype: DT_FLOAT"
          "    tensor_shape {} float_val: 1 } } } }"
          "node_def { name: 'add' op: 'Add' input: 'sq:y:0'"
          "  input: 'one:output:0'" +
          T("type: DT_FLOAT") + "} ret { key: 'y' value: 'add:z:0' }",
      g);
}

TEST(FunctionTest, IsCalledByItsNameAndByPartitionedCall) {
  GraphMaker g;
  AddSquares(&g);
  g.Placeholder("x", kFloat);
  g.Node("direct", "SquarePlusOne", {"x"});
  g.Node("call", "PartitionedCall", {"direct"})
      .Types("Tin", {kFloat})
      .Types("Tout", {kFloat})
      .Function("f", "SquarePlusOne");
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto session,
                               g.Session("x", "call,direct"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto out, session->Run({Float(3)}));
  EXPECT_THAT(ValuesOf<float>(out[0]), ElementsAre(101));
  EXPECT_THAT(ValuesOf<float>(out[1]), ElementsAre(10));
}

TEST(FunctionTest, ACallThatIsFedIsNotLookedAt) {
  GraphMaker g;
  g.Placeholder("x", kFloat);
  g.Node("call", "PartitionedCall", {"x"})
      .Types("Tin", {kFloat})
      .Types("Tout", {kFloat})
      .Function("f", "NotThere");
  g.Math("y", "Neg", {"call"});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto session, g.Session("call", "y"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto out, session->Run({Float(3)}));
  EXPECT_THAT(ValuesOf<float>(out[0]), ElementsAre(-3));
  EXPECT_THAT(g.Session("x", "y"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("function 'NotThere' is not in the graph")));
}

TEST(FunctionTest, OneThatCallsItselfIsRefused) {
  GraphMaker g;
  AddFunction(
      "signature { name: 'F' input_arg { name: 'x' type: DT_FLOAT }"
      "  output_arg { name: 'y' type: DT_FLOAT } }"
      "node_def { name: 'a' op: 'F' input: 'x' }"
      "node_def { name: 'b' op: 'F' input: 'a:y:0' }"
      "ret { key: 'y' value: 'b:y:0' }",
      &g);
  g.Placeholder("x", kFloat).Node("y", "F", {"x"});
  EXPECT_THAT(g.Session("x", "y"), StatusIs(absl::StatusCode::kInvalidArgument,
                                            HasSubstr("may not call itself")));
}

TEST(FunctionTest, IfRunsOneBranch) {
  GraphMaker g;
  AddSquares(&g);
  // Would fail if it ran.
  AddFunction(
      "signature { name: 'Fail' input_arg { name: 'x' type: DT_FLOAT }"
      "  output_arg { name: 'y' type: DT_FLOAT } }"
      "node_def { name: 'p' op: 'Placeholder'"
      "  attr { key: 'dtype' value { type: DT_FLOAT } } }"
      "ret { key: 'y' value: 'p:output:0' }",
      &g);
  g.Placeholder("p", kBool).Placeholder("x", kFloat);
  g.Node("y", "If", {"p", "x"})
      .Type("Tcond", kBool)
      .Types("Tin", {kFloat})
      .Types("Tout", {kFloat})
      .Function("then_branch", "SquarePlusOne")
      .Function("else_branch", "Fail");
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto session, g.Session("p,x", "y"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto out,
                               session->Run({Bool(true), Float(2)}));
  EXPECT_THAT(ValuesOf<float>(out[0]), ElementsAre(5));
  EXPECT_THAT(
      session->Run({Bool(false), Float(2)}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("must be fed")));
}

// x + number.
void AddPlus(const std::string& number, GraphMaker* g) {
  AddFunction("signature { name: 'Plus" + number +
                  "' input_arg { name: 'x' type: DT_FLOAT }"
                  "  output_arg { name: 'y' type: DT_FLOAT } }"
                  "node_def { name: 'c' op: 'Const'"
                  "  attr { key: 'dtype' value { type: DT_FLOAT } }"
                  "  attr { key: 'value' value { tensor { dtype: DT_FLOAT"
                  "    tensor_shape {} float_val: " +
                  number +
                  " } } } }"
                  "node_def { name: 'add' op: 'Add' input: 'x'"
                  "  input: 'c:output:0'" +
                  T("type: DT_FLOAT") + "} ret { key: 'y' value: 'add:z:0' }",
              g);
}

TEST(FunctionTest, CaseRunsTheBranchOfItsNumber) {
  for (const char* op : {"Case", "StatelessCase"}) {
    GraphMaker g;
    g.Placeholder("i", tensorflow::DT_INT32).Placeholder("x", kFloat);
    g.Node("y", op, {"i", "x"}).Types("Tin", {kFloat}).Types("Tout", {kFloat});
    auto* branches =
        (*g.def()->mutable_node(2)->mutable_attr())["branches"].mutable_list();
    for (const char* number : {"10", "20", "30"}) {
      AddPlus(number, &g);
      branches->add_func()->set_name(std::string("Plus") + number);
    }
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto session, g.Session("i,x", "y"));
    // A number that is none of them is the last's.
    const std::pair<int32_t, float> cases[] = {{0, 11}, {1, 21},  {2, 31},
                                               {3, 31}, {-1, 31}, {0, 11}};
    for (const auto& [number, wanted] : cases) {
      OPTFARM_ASSERT_OK_AND_ASSIGN(const auto out,
                                   session->Run({Int(number), Float(1)}));
      EXPECT_THAT(ValuesOf<float>(out[0]), ElementsAre(wanted));
    }
  }
}

TEST(FunctionTest, ACaseWithoutBranchesIsRefused) {
  GraphMaker g;
  g.Placeholder("i", tensorflow::DT_INT32);
  g.Node("y", "Case", {"i"}).Types("Tin", {}).Types("Tout", {kFloat});
  EXPECT_THAT(g.Session("i", "y"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("node 'y' (op Case): attribute 'branches'")));
}

TEST(FunctionTest, WhileRunsItsBodyAgainAndAgain) {
  GraphMaker g;
  AddSquares(&g);
  AddFunction(
      "signature { name: 'Small' input_arg { name: 'x' type: DT_FLOAT }"
      "  output_arg { name: 'r' type: DT_BOOL } }"
      "node_def { name: 'limit' op: 'Const'"
      "  attr { key: 'dtype' value { type: DT_FLOAT } }"
      "  attr { key: 'value' value { tensor { dtype: DT_FLOAT"
      "    tensor_shape {} float_val: 100 } } } }"
      "node_def { name: 'less' op: 'Less' input: 'x' input: 'limit:output:0'" +
          T("type: DT_FLOAT") + "} ret { key: 'r' value: 'less:z:0' }",
      &g);
  g.Placeholder("x", kFloat);
  g.Node("y", "While", {"x"})
      .Types("T", {kFloat})
      .Function("cond", "Small")
      .Function("body", "SquarePlusOne");
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto session, g.Session("x", "y"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto out, session->Run({Float(1)}));
  // 1, 2, 5, 26, 677
  EXPECT_THAT(ValuesOf<float>(out[0]), ElementsAre(677));
  OPTFARM_ASSERT_OK_AND_ASSIGN(out, session->Run({Float(200)}));
  EXPECT_THAT(ValuesOf<float>(out[0]), ElementsAre(200));
}

// A call without results changes the table of its caller before it is done.
TEST(FunctionTest, WhatABodyDoesIsDoneWhenTheCallIs) {
  GraphMaker g;
  AddFunction(
      "signature { name: 'Grow' input_arg { name: 'v' type: DT_RESOURCE }"
      "  input_arg { name: 'x' type: DT_FLOAT } }"
      "node_def { name: 'add' op: 'AssignAddVariableOp' input: 'v' input: 'x'"
      "  attr { key: 'dtype' value { type: DT_FLOAT } } }",
      &g);
  g.Placeholder("x", kFloat);
  g.Node("v", "VarHandleOp").Type("dtype", kFloat).Shape("shape", {});
  g.Node("set", "AssignVariableOp", {"v", "x"}).Type("dtype", kFloat);
  g.Node("call", "StatefulPartitionedCall", {"v", "x", "^set"})
      .Types("Tin", {tensorflow::DT_RESOURCE, kFloat})
      .Types("Tout", {})
      .Function("f", "Grow");
  g.Node("read", "ReadVariableOp", {"v", "^call"}).Type("dtype", kFloat);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto session, g.Session("x", "read"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto out, session->Run({Float(4)}));
  EXPECT_THAT(ValuesOf<float>(out[0]), ElementsAre(8));
}

}  // namespace
}  // namespace optfarm::runtime
