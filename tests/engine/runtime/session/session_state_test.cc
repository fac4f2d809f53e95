// What outlives a run: variables of both kinds and tables, in a container that
// sessions share; and stacks, which do not.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/runtime/core/resource.h"
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
constexpr auto kInt64 = tensorflow::DT_INT64;
constexpr auto kString = tensorflow::DT_STRING;

SessionOptions Sharing(const std::shared_ptr<ResourceContainer>& container) {
  SessionOptions options;
  options.resources = container;
  return options;
}

// v, set to [1, 2] by "init", read by "y" = v * x, grown by "grow".
GraphMaker ReferenceVariable() {
  GraphMaker g;
  g.Placeholder("x", kFloat).Const("initial", Floats({2}, {1, 2}));
  g.Node("v", "VariableV2").Type("dtype", kFloat).Shape("shape", {2});
  g.Node("assign", "Assign", {"v", "initial"}).Type("T", kFloat);
  g.Node("init", "NoOp", {"^assign"});
  g.Math("read", "Identity", {"v"});
  g.Math("y", "Mul", {"read", "x"});
  g.Node("grow", "AssignAdd", {"v", "x"}).Type("T", kFloat);
  return g;
}

GraphMaker ResourceVariable() {
  GraphMaker g;
  g.Placeholder("x", kFloat).Const("initial", Floats({2}, {1, 2}));
  g.Node("v", "VarHandleOp").Type("dtype", kFloat).Shape("shape", {2});
  g.Node("init", "AssignVariableOp", {"v", "initial"}).Type("dtype", kFloat);
  g.Node("read", "ReadVariableOp", {"v"}).Type("dtype", kFloat);
  g.Math("y", "Mul", {"read", "x"});
  g.Node("grow", "AssignAddVariableOp", {"v", "x"}).Type("dtype", kFloat);
  return g;
}

class VariableTest : public ::testing::TestWithParam<GraphMaker (*)()> {};

TEST_P(VariableTest, IsSharedBySessionsOfOneContainer) {
  const GraphMaker g = GetParam()();
  const auto container = std::make_shared<ResourceContainer>();
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto init,
                               g.Session("", "^init", Sharing(container)));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto answer,
                               g.Session("x", "y", Sharing(container)));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto grow,
                               g.Session("x", "^grow", Sharing(container)));
  const Tensor x = Floats({2}, {10, 10});
  EXPECT_THAT(answer->Run({x}), StatusIs(absl::StatusCode::kFailedPrecondition,
                                         HasSubstr("no value yet")));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto nothing, init->Run({}));
  EXPECT_FALSE(nothing[0].has_value());
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto out, answer->Run({x}));
  EXPECT_THAT(ValuesOf<float>(out[0]), ElementsAre(10, 20));
  OPTFARM_ASSERT_OK(grow->Run({x}));
  OPTFARM_ASSERT_OK_AND_ASSIGN(out, answer->Run({x}));
  EXPECT_THAT(ValuesOf<float>(out[0]), ElementsAre(110, 120));
  EXPECT_THAT(ValuesOf<float>(x), ElementsAre(10, 10));
}

TEST_P(VariableTest, IsTheSessionsOwnOtherwise) {
  const GraphMaker g = GetParam()();
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto init, g.Session("", "^init"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto answer, g.Session("x", "y"));
  OPTFARM_ASSERT_OK(init->Run({}));
  EXPECT_THAT(answer->Run({Float(1)}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("no value yet")));
}

INSTANTIATE_TEST_SUITE_P(Kinds, VariableTest,
                         ::testing::Values(&ReferenceVariable,
                                           &ResourceVariable));

// What was read before a change stays as it was.
TEST(VariablesTest, AReadIsNotTouchedByALaterChange) {
  GraphMaker g;
  g.Const("initial", Float(1)).Const("ten", Float(10));
  g.Node("v", "VariableV2").Type("dtype", kFloat).Shape("shape", {});
  g.Node("assign", "Assign", {"v", "initial"}).Type("T", kFloat);
  g.Math("before", "Identity", {"assign"});
  g.Node("grow", "AssignAdd", {"assign", "ten", "^before"}).Type("T", kFloat);
  g.Math("after", "Identity", {"grow"});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto session,
                               g.Session("", "before,after"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto out, session->Run({}));
  EXPECT_THAT(ValuesOf<float>(out[0]), ElementsAre(1));
  EXPECT_THAT(ValuesOf<float>(out[1]), ElementsAre(11));
}

// A moving average: the variable's old value counts from the second run on.
TEST(VariablesTest, AReaderThatDoesNotRunNeedsNoValue) {
  GraphMaker g;
  g.Placeholder("x", kFloat);
  g.Node("v", "VariableV2").Type("dtype", kFloat).Shape("shape", {});
  g.Node("set", "IsVariableInitialized", {"v"}).Type("dtype", kFloat);
  g.Math("switch", "Switch", {"x", "set"});
  g.Math("sum", "Add", {"v", "switch:1"});
  g.Node("merge", "Merge", {"switch", "sum"}).Type("T", kFloat).Int("N", 2);
  g.Node("assign", "Assign", {"v", "merge"}).Type("T", kFloat);
  g.Math("out", "Identity", {"assign"});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto session, g.Session("x", "out"));
  for (const float expected : {3, 6, 9}) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto out, session->Run({Float(3)}));
    EXPECT_THAT(ValuesOf<float>(out[0]), ElementsAre(expected));
  }
}

TEST(VariablesTest, RowsMayBeScattered) {
  GraphMaker g;
  g.Const("initial", Floats({3, 2}, {0, 1, 2, 3, 4, 5}));
  g.Const("rows", Ints({2, 0})).Const("new", Floats({2, 2}, {9, 8, 7, 6}));
  g.Node("v", "Variable").Type("dtype", kFloat).Shape("shape", {3, 2});
  g.Node("assign", "Assign", {"v", "initial"}).Type("T", kFloat);
  g.Node("scatter", "ScatterSub", {"assign", "rows", "new"})
      .Type("T", kFloat)
      .Type("Tindices", tensorflow::DT_INT32);
  g.Math("out", "Identity", {"scatter"});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto session, g.Session("", "out"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto out, session->Run({}));
  EXPECT_THAT(ValuesOf<float>(out[0]), ElementsAre(-7, -5, 2, 3, -5, -3));
}

TEST(VariablesTest, ReferencesGoThroughBranches) {
  GraphMaker g;
  g.Placeholder("p", tensorflow::DT_BOOL).Const("one", Float(1));
  g.Node("v", "Variable").Type("dtype", kFloat).Shape("shape", {});
  g.Node("set", "Assign", {"v", "one"}).Type("T", kFloat);
  g.Node("s", "RefSwitch", {"set", "p"}).Type("T", kFloat);
  g.Node("grown", "AssignAdd", {"s:1", "one"}).Type("T", kFloat);
  g.Node("m", "RefMerge", {"s", "grown"}).Type("T", kFloat).Int("N", 2);
  g.Math("out", "Neg", {"m"});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto session, g.Session("p", "out"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto yes, session->Run({Bool(true)}));
  EXPECT_THAT(ValuesOf<float>(yes[0]), ElementsAre(-2));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto no, session->Run({Bool(false)}));
  EXPECT_THAT(ValuesOf<float>(no[0]), ElementsAre(-1));
}

// Words to numbers, in both versions of the ops.
GraphMaker WordTable(const std::string& version) {
  GraphMaker g;
  g.Placeholder("words", kString).Const("missing", Tensor::Scalar<int64_t>(-1));
  const std::string words[] = {"one", "two"};
  const int64_t numbers[] = {1, 2};
  g.Const("keys", Tensor::FromValues<std::string>({2}, words));
  g.Const("values", Tensor::FromValues<int64_t>({2}, numbers));
  g.Node("table", "HashTable" + version)
      .Type("key_dtype", kString)
      .Type("value_dtype", kInt64);
  g.Node("init", "InitializeTable" + version, {"table", "keys", "values"})
      .Type("Tkey", kString)
      .Type("Tval", kInt64);
  g.Node("find", "LookupTableFind" + version, {"table", "words", "missing"})
      .Type("Tin", kString)
      .Type("Tout", kInt64);
  g.Node("size", "LookupTableSize" + version, {"table"});
  return g;
}

TEST(LookupTableTest, FindsWhatTheInitializerPutIn) {
  for (const char* version : {"", "V2"}) {
    const GraphMaker g = WordTable(version);
    const auto container = std::make_shared<ResourceContainer>();
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto init,
                                 g.Session("", "^init", Sharing(container)));
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        const auto find, g.Session("words", "find,size", Sharing(container)));
    OPTFARM_ASSERT_OK(init->Run({}));
    OPTFARM_ASSERT_OK(init->Run({}));  // Once more changes nothing.
    const std::string words[] = {"two", "three", "one"};
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        const auto out,
        find->Run({Tensor::FromValues<std::string>({3, 1}, words)}));
    EXPECT_EQ(out[0].shape(), (Shape{3, 1}));
    EXPECT_THAT(ValuesOf<int64_t>(out[0]), ElementsAre(2, -1, 1));
    EXPECT_THAT(ValuesOf<int64_t>(out[1]), ElementsAre(2));
  }
}

TEST(LookupTableTest, AModelCannotReadFiles) {
  GraphMaker g;
  g.Const("file", Tensor::Scalar<std::string>("/etc/passwd"));
  g.Node("table", "HashTableV2")
      .Type("key_dtype", kString)
      .Type("value_dtype", kInt64);
  g.Node("init", "InitializeTableFromTextFileV2", {"table", "file"})
      .Int("key_index", -2)
      .Int("value_index", -1);
  EXPECT_THAT(g.Session("", "^init"),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("files")));
}

TEST(StackTest, GivesBackInReverse) {
  GraphMaker g;
  g.Placeholder("a", kFloat).Placeholder("b", kFloat);
  g.Const("max", Int(2));
  g.Node("stack", "StackV2", {"max"}).Type("elem_type", kFloat);
  g.Node("push_a", "StackPushV2", {"stack", "a"}).Type("T", kFloat);
  g.Node("push_b", "StackPushV2", {"stack", "b", "^push_a"}).Type("T", kFloat);
  g.Node("first", "StackPopV2", {"stack", "^push_b"}).Type("elem_type", kFloat);
  g.Node("second", "StackPopV2", {"stack", "^first"}).Type("elem_type", kFloat);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto session,
                               g.Session("a,b", "first,second"));
  for (int run = 0; run < 2; ++run) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto out,
                                 session->Run({Float(1), Float(2)}));
    EXPECT_THAT(ValuesOf<float>(out[0]), ElementsAre(2));
    EXPECT_THAT(ValuesOf<float>(out[1]), ElementsAre(1));
  }
}

}  // namespace
}  // namespace optfarm::runtime
