// Loops: frames, what goes around and what stays, nesting, dead values, and
// what bounds a loop that does not end.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <set>
#include <string>

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
constexpr auto kInt32 = tensorflow::DT_INT32;

// The loop `frame` with a counter `name`: 0, 1, ... while below `limit`.
void AddCounter(GraphMaker* g, const std::string& name,
                const std::string& frame, const std::string& limit) {
  g->Const(name + "/zero", Int(0));
  g->Enter(name + "/limit", limit, frame, kInt32, /*is_constant=*/true);
  g->Math(name + "/less", "Less", {name + "/merge", name + "/limit"}, kInt32);
  g->Node(name + "/cond", "LoopCond", {name + "/less"});
  g->Const(name + "/one", Int(1), {"^" + name + "/switch"});
  g->Math(name + "/add", "Add", {name + "/switch:1", name + "/one"}, kInt32);
  g->LoopVariable(name, name + "/zero", frame, name + "/cond", name + "/add",
                  kInt32);
}

// x doubled n times.
GraphMaker Doubling() {
  GraphMaker g;
  g.Placeholder("n", kInt32).Placeholder("x", kFloat);
  AddCounter(&g, "i", "loop", "n");
  g.Math("double", "Add", {"v/switch:1", "v/switch:1"});
  g.LoopVariable("v", "x", "loop", "i/cond", "double");
  return g;
}

TEST(LoopTest, RunsUntilTheConditionFails) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto session,
                               Doubling().Session("n,x", "v/exit,i/exit"));
  for (const int n : {3, 0, 1, 10, 3}) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto out,
                                 session->Run({Int(n), Float(1.5f)}));
    EXPECT_THAT(ValuesOf<float>(out[0]),
                ElementsAre(1.5f * static_cast<float>(1 << n)));
    EXPECT_THAT(ValuesOf<int32_t>(out[1]), ElementsAre(n));
  }
}

TEST(LoopTest, RunsWithoutFoldingToo) {
  SessionOptions options;
  options.fold_constants = false;
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto session,
                               Doubling().Session("n,x", "v/exit", options));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto out,
                               session->Run({Int(4), Float(1)}));
  EXPECT_THAT(ValuesOf<float>(out[0]), ElementsAre(16));
}

TEST(LoopTest, AConstantWithTheOtherSignIsNoStepOfTheLoop) {
  // x * -2 * -2 ..., n times; the constant belongs to the loop's body.
  GraphMaker g;
  g.Placeholder("n", kInt32).Placeholder("x", kFloat);
  AddCounter(&g, "i", "loop", "n");
  g.Const("two", Float(2), {"^i/switch"}).Math("minus_two", "Neg", {"two"});
  g.Math("product", "Mul", {"v/switch:1", "minus_two"});
  g.Math("sign", "Neg", {"v/switch:1"});
  g.Math("back", "Neg", {"sign"}).Math("next", "Add", {"product", "zero"});
  g.Math("zero", "Sub", {"back", "v/switch:1"});
  g.LoopVariable("v", "x", "loop", "i/cond", "next");
  SessionOptions options;
  options.fast_kernels = false;
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto session,
                               g.Session("n,x", "v/exit,minus_two", options));
  for (const int n : {1, 3, 2}) {
    RunTrace trace;
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto out,
                                 session->Run({Int(n), Float(1.5f)}, &trace));
    EXPECT_THAT(ValuesOf<float>(out[0]),
                ElementsAre(1.5f * std::pow(-2.0f, static_cast<float>(n))));
    EXPECT_THAT(ValuesOf<float>(out[1]), ElementsAre(-2.0f));
    std::set<std::string> negations;
    for (const NodeTiming& node : trace.nodes) {
      if (node.op == "Neg") negations.insert(node.name);
    }
    EXPECT_THAT(negations, ElementsAre("back", "sign"));
  }
}

TEST(LoopTest, FeedsAreNotChangedInPlace) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto session,
                               Doubling().Session("n,x", "v/exit"));
  const Tensor x = Floats({2}, {1, 2});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto out, session->Run({Int(2), x}));
  EXPECT_THAT(ValuesOf<float>(out[0]), ElementsAre(4, 8));
  EXPECT_THAT(ValuesOf<float>(x), ElementsAre(1, 2));
}

// (a, b) becomes (b, a + b): each next value is made of the other variable.
TEST(LoopTest, VariablesMayChangePlaces) {
  GraphMaker g;
  g.Placeholder("n", kInt32).Const("a0", Float(0)).Const("b0", Float(1));
  AddCounter(&g, "i", "loop", "n");
  g.Math("sum", "Add", {"a/switch:1", "b/switch:1"});
  g.LoopVariable("a", "a0", "loop", "i/cond", "b/switch:1");
  g.LoopVariable("b", "b0", "loop", "i/cond", "sum");
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto session,
                               g.Session("n", "a/exit,b/exit"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto out, session->Run({Int(10)}));
  EXPECT_THAT(ValuesOf<float>(out[0]), ElementsAre(55));
  EXPECT_THAT(ValuesOf<float>(out[1]), ElementsAre(89));
}

// The sum of i * j over i < n, j < m, two loops deep.
GraphMaker Nested() {
  GraphMaker g;
  g.Placeholder("n", kInt32).Placeholder("m", kInt32).Const("s0", Int(0));
  AddCounter(&g, "i", "outer", "n");
  g.Enter("m_in_outer", "m", "outer", kInt32, true);
  AddCounter(&g, "j", "inner", "m_in_outer");
  // The counter's own zero is outside of all loops; the inner loop begins anew
  // in each outer iteration.
  for (auto& node : *g.def()->mutable_node()) {
    if (node.name() == "j/zero") node.add_input("^i/switch");
  }
  g.Enter("i_in_inner", "i/switch:1", "inner", kInt32, true);
  g.Math("product", "Mul", {"i_in_inner", "j/switch:1"}, kInt32);
  g.Math("more", "Add", {"t/switch:1", "product"}, kInt32);
  g.LoopVariable("t", "s/switch:1", "inner", "j/cond", "more", kInt32);
  g.LoopVariable("s", "s0", "outer", "i/cond", "t/exit", kInt32);
  return g;
}

TEST(LoopTest, LoopsMayStandWithinLoops) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto session,
                               Nested().Session("n,m", "s/exit"));
  const auto sum = [](int n, int m) {
    return n * (n - 1) / 2 * m * (m - 1) / 2;
  };
  for (const auto& [n, m] : {std::pair(4, 5), {3, 0}, {0, 7}, {1, 9}, {6, 2}}) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto out,
                                 session->Run({Int(n), Int(m)}));
    EXPECT_THAT(ValuesOf<int32_t>(out[0]), ElementsAre(sum(n, m)));
  }
}

// Even numbers are added, odd ones subtracted.
TEST(LoopTest, ABranchWithinALoopIsTakenAnewEachTime) {
  GraphMaker g;
  g.Placeholder("n", kInt32).Const("s0", Int(0));
  AddCounter(&g, "i", "loop", "n");
  g.Const("two", Int(2), {"^i/switch"});
  g.Const("zero", Int(0), {"^i/switch"});
  g.Math("rest", "FloorMod", {"i/switch:1", "two"}, kInt32);
  g.Math("is_even", "Equal", {"rest", "zero"}, kInt32);
  g.Node("pick", "Switch", {"i/switch:1", "is_even"}).Type("T", kInt32);
  g.Node("old", "Switch", {"s/switch:1", "is_even"}).Type("T", kInt32);
  g.Math("less", "Sub", {"old", "pick"}, kInt32);
  g.Math("more", "Add", {"old:1", "pick:1"}, kInt32);
  g.Node("new", "Merge", {"less", "more"}).Type("T", kInt32).Int("N", 2);
  g.LoopVariable("s", "s0", "loop", "i/cond", "new", kInt32);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto session, g.Session("n", "s/exit"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto out, session->Run({Int(6)}));
  EXPECT_THAT(ValuesOf<int32_t>(out[0]), ElementsAre(0 - 1 + 2 - 3 + 4 - 5));
}

// p ? x doubled n times : x
TEST(LoopTest, ALoopInABranchNotTakenDoesNotRun) {
  GraphMaker g;
  g.Placeholder("n", kInt32).Placeholder("x", kFloat);
  g.Placeholder("p", tensorflow::DT_BOOL);
  g.Node("branch", "Switch", {"x", "p"}).Type("T", kFloat);
  g.Node("limit", "Switch", {"n", "p"}).Type("T", kInt32);
  AddCounter(&g, "i", "loop", "limit:1");
  for (auto& node : *g.def()->mutable_node()) {
    if (node.name() == "i/zero") node.add_input("^pivot");
  }
  g.Node("pivot", "Identity", {"branch:1"}).Type("T", kFloat);
  g.Math("double", "Add", {"v/switch:1", "v/switch:1"});
  g.LoopVariable("v", "branch:1", "loop", "i/cond", "double");
  g.Node("out", "Merge", {"branch", "v/exit"}).Type("T", kFloat).Int("N", 2);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto session,
                               g.Session("n,x,p", "out,out:1"));
  for (const bool p : {true, false, true}) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto out,
                                 session->Run({Int(3), Float(1), Bool(p)}));
    EXPECT_THAT(ValuesOf<float>(out[0]), ElementsAre(p ? 8 : 1));
    EXPECT_THAT(ValuesOf<int32_t>(out[1]), ElementsAre(p ? 1 : 0));
  }
}

// A graph that was imported twice has every frame name twice.
TEST(LoopTest, LoopsOfOneFrameNameMayFollowEachOther) {
  GraphMaker g;
  g.Placeholder("n", kInt32).Placeholder("x", kFloat);
  AddCounter(&g, "i", "loop", "n");
  g.Math("double", "Add", {"v/switch:1", "v/switch:1"});
  g.LoopVariable("v", "x", "loop", "i/cond", "double");
  AddCounter(&g, "j", "loop", "n");
  g.Math("square", "Mul", {"w/switch:1", "w/switch:1"});
  g.LoopVariable("w", "v/exit", "loop", "j/cond", "square");
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto session, g.Session("n,x", "w/exit"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto out,
                               session->Run({Int(2), Float(1)}));
  EXPECT_THAT(ValuesOf<float>(out[0]), ElementsAre(256));
}

TEST(LoopTest, ATensorWithinIsFetchedAsOfTheLastIterationThatMadeIt) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto session, Doubling().Session("n,x", "double,v/merge,i/limit"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto out,
                               session->Run({Int(3), Float(1)}));
  EXPECT_THAT(ValuesOf<float>(out[0]), ElementsAre(8));
  EXPECT_THAT(ValuesOf<float>(out[1]), ElementsAre(8));
  EXPECT_THAT(ValuesOf<int32_t>(out[2]), ElementsAre(3));
  EXPECT_THAT(session->Run({Int(0), Float(1)}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("'double' has no value")));
}

TEST(LoopTest, AnErrorWithinNamesTheNodeAndLeavesTheSessionUsable) {
  GraphMaker g = Doubling();
  g.Node("check", "CheckNumerics", {"v/exit"})
      .Type("T", kFloat)
      .Text("message", "v");
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto session, g.Session("n,x", "check"));
  EXPECT_THAT(session->Run({Int(200), Float(1)}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("node 'check' (op CheckNumerics)")));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto out,
                               session->Run({Int(2), Float(1)}));
  EXPECT_THAT(ValuesOf<float>(out[0]), ElementsAre(4));
}

// v = v + 1 for ever.
GraphMaker Endless() {
  GraphMaker g;
  g.Const("zero", Float(0)).Const("one", Float(1)).Const("yes", Bool(true));
  g.Enter("always", "yes", "loop", tensorflow::DT_BOOL, true);
  g.Enter("step", "one", "loop", kFloat, true);
  g.Node("cond", "LoopCond", {"always"});
  g.Math("more", "Add", {"v/switch:1", "step"});
  g.LoopVariable("v", "zero", "loop", "cond", "more");
  return g;
}

TEST(LoopTest, ATimeLimitEndsALoop) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto session,
                               Endless().Session("", "v/exit"));
  RunOptions options;
  options.timeout = absl::Milliseconds(1);
  EXPECT_THAT(session->Run({}, options),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("1ms")));
}

TEST(LoopTest, TheCallerMayCancelALoop) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto session,
                               Endless().Session("", "v/exit"));
  const std::atomic<bool> cancelled = true;
  RunOptions options;
  options.cancelled = &cancelled;
  EXPECT_THAT(session->Run({}, options),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("caller")));
}

TEST(LoopTest, WhatIsNotALoopIsRefusedAtLoad) {
  const auto refused = [](const GraphMaker& g, const std::string& text) {
    EXPECT_THAT(g.Session("", "out"),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text)));
  };
  GraphMaker outside;
  outside.Const("c", Float(1));
  outside.Node("out", "Exit", {"c"}).Type("T", kFloat);
  refused(outside, "stands outside of loops");

  GraphMaker two;
  two.Const("c", Float(1)).Enter("a", "c", "f").Enter("b", "c", "g");
  two.Math("out", "Add", {"a", "b"});
  refused(two, "not within one another");

  GraphMaker self;
  self.Const("c", Float(1)).Enter("a", "c", "f");
  self.Node("x", "Exit", {"a"}).Type("T", kFloat);
  self.Enter("b", "x", "f").Math("out", "Add", {"a", "b"});
  refused(self, "waits for its own result");

  GraphMaker deep;
  deep.Const("e0", Float(1));
  for (int i = 0; i < 100; ++i) {
    deep.Enter("e" + std::to_string(i + 1), "e" + std::to_string(i), "f");
  }
  deep.Node("out", "Identity", {"e100"}).Type("T", kFloat);
  refused(deep, "nested deeper");
}

// The elements x, 2x, 4x, ... as rows, through each version's ops.
TEST(LoopTest, ATensorArrayCollectsWhatIterationsMake) {
  GraphMaker g;
  g.Placeholder("n", kInt32).Placeholder("x", kFloat);
  AddCounter(&g, "i", "loop", "n");
  g.Node("array", "TensorArrayV3", {"n"}).Type("dtype", kFloat);
  g.Enter("handle", "array", "loop", tensorflow::DT_RESOURCE, true);
  g.Math("double", "Add", {"v/switch:1", "v/switch:1"});
  g.Node("write", "TensorArrayWriteV3",
         {"handle", "i/switch:1", "v/switch:1", "flow/switch:1"})
      .Type("T", kFloat);
  g.LoopVariable("flow", "array:1", "loop", "i/cond", "write");
  g.LoopVariable("v", "x", "loop", "i/cond", "double");
  g.Const("start", Int(0)).Const("delta", Int(1));
  g.Node("size", "TensorArraySizeV3", {"array", "flow/exit"});
  g.Node("range", "Range", {"start", "size", "delta"}).Type("Tidx", kInt32);
  g.Node("all", "TensorArrayGatherV3", {"array", "range", "flow/exit"})
      .Type("dtype", kFloat)
      .Shape("element_shape", {2});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto session, g.Session("n,x", "all"));
  for (int run = 0; run < 2; ++run) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto out,
                                 session->Run({Int(3), Floats({2}, {1, 10})}));
    EXPECT_EQ(out[0].shape(), (Shape{3, 2}));
    EXPECT_THAT(ValuesOf<float>(out[0]), ElementsAre(1, 10, 2, 20, 4, 40));
  }
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto none,
                               session->Run({Int(0), Floats({2}, {1, 10})}));
  EXPECT_EQ(none[0].shape(), (Shape{0, 2}));
}

}  // namespace
}  // namespace optfarm::runtime
