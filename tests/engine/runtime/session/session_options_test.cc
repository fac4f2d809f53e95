// What a caller decides: whose threads, whose weights, how much memory, and
// which optimizations. None of it changes an answer.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "engine/runtime/core/loaded_model.h"
#include "engine/runtime/core/memory_budget.h"
#include "engine/runtime/session/session.h"
#include "tests/engine/runtime/graph_maker.h"
#include "tests/engine/runtime/run_op.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

constexpr auto kFloat = tensorflow::DT_FLOAT;
constexpr auto kExhausted = absl::StatusCode::kResourceExhausted;

// Three layers of products, activations and a shortcut, [?,8] to [?,8].
GraphMaker Network() {
  GraphMaker g;
  g.Placeholder("x", kFloat).Const("scale", Float(0.5f));
  std::string last = "x";
  for (int i = 0; i < 3; ++i) {
    const std::string n = std::to_string(i);
    g.Const("w" + n, Scattered({8, 8}, 7 + i));
    g.Math("scaled" + n, "Mul", {"w" + n, "scale"});
    g.Node("product" + n, "MatMul", {last, "scaled" + n}).Type("T", kFloat);
    g.Math("active" + n, "Tanh", {"product" + n});
    g.Math("sum" + n, "Add", {"active" + n, last});
    last = "sum" + n;
  }
  g.Math("y", "Identity", {last});
  return g;
}

std::vector<float> AnswerOf(const Session& session, int rows) {
  const auto out = session.Run({Scattered({rows, 8}, 3)});
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() ? ValuesOf<float>((*out)[0]) : std::vector<float>();
}

TEST(SessionOptionsTest, EveryOptimizationMayBeOff) {
  const GraphMaker g = Network();
  // Which steps are fused depends on what is constant, and fused steps round
  // differently: bits are those of the reference kernels.
  SessionOptions reference;
  reference.fast_kernels = false;
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto usual,
                               g.Session("x", "y", reference));
  for (int off = 0; off < 8; ++off) {
    SessionOptions options = reference;
    options.fold_constants = (off & 1) == 0;
    options.reuse_buffers = (off & 2) == 0;
    options.plan_memory = (off & 4) == 0;
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto session,
                                 g.Session("x", "y", options));
    for (const int rows : {2, 2, 2, 5, 1, 2}) {
      EXPECT_EQ(AnswerOf(*session, rows), AnswerOf(*usual, rows)) << off;
    }
  }
}

TEST(SessionOptionsTest, ManySessionsMayUseOnePoolOfTheCaller) {
  const GraphMaker g = Network();
  ThreadPool pool(3);
  OPTFARM_ASSERT_OK(pool.SetAffinity({0}));
  SessionOptions options;
  options.pool = &pool;
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto a, g.Session("x", "y", options));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto b, g.Session("x", "sum1", options));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto usual, g.Session("x", "y"));
  EXPECT_FALSE(AnswerOf(*b, 4).empty());
  EXPECT_EQ(AnswerOf(*a, 4), AnswerOf(*usual, 4));
}

TEST(SessionOptionsTest, EightThreadsRunOneModel) {
  ThreadPool pool(3);
  SessionOptions options;
  options.pool = &pool;
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto session,
                               Network().Session("x", "y", options));
  const std::vector<float> wanted[] = {AnswerOf(*session, 1),
                                       AnswerOf(*session, 64)};
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        const int rows = (t + i) % 2 == 0 ? 1 : 64;
        if (AnswerOf(*session, rows) == wanted[rows == 1 ? 0 : 1]) ++right;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 160);
}

TEST(ThreadPoolTest, AProcessorThatIsNotThereIsRefused) {
  ThreadPool pool(2);
  EXPECT_THAT(pool.SetAffinity({-1}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("no processor -1")));
}

TEST(LoadedModelTest, SessionsShareItsWeights) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(graph::Graph graph, Network().Graph());
  const auto model = LoadedModel::Create(std::move(graph));
  EXPECT_EQ(model->value_bytes(), 3 * 8 * 8 * 4 + 4);
  const auto make = [&](const std::string& fetch) {
    return Session::Create(model, *graph::ParseTensorNames("x"),
                           *graph::ParseTensorNames(fetch));
  };
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto a, make("y"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto b, make("y"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto weights, make("w0"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto again, make("w0"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto usual, Network().Session("x", "y"));
  EXPECT_EQ(AnswerOf(*a, 2), AnswerOf(*usual, 2));
  EXPECT_EQ(AnswerOf(*b, 2), AnswerOf(*usual, 2));
  const Tensor x = Scattered({1, 8}, 1);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto w, weights->Run({x}));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto v, again->Run({x}));
  EXPECT_EQ(w[0].raw(), v[0].raw());
}

TEST(LoadedModelTest, ABadConstantIsTheErrorOfWhoNeedsIt) {
  GraphMaker g = Network();
  g.Node("bad", "Const").Type("dtype", kFloat);
  OPTFARM_ASSERT_OK_AND_ASSIGN(graph::Graph graph, g.Graph());
  const auto model = LoadedModel::Create(std::move(graph));
  const auto make = [&](const std::string& fetch) {
    return Session::Create(model, *graph::ParseTensorNames("x"),
                           *graph::ParseTensorNames(fetch));
  };
  OPTFARM_ASSERT_OK(make("y"));
  EXPECT_FALSE(make("bad").ok());
}

TEST(MemoryPlanTest, ASteadyRunAllocatesNoTensorButItsOutputs) {
  SessionOptions options;
  options.reuse_buffers = false;
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto session,
                               Network().Session("x", "y", options));
  const Tensor x = Scattered({2, 8}, 3);
  for (int i = 0; i < 2; ++i) OPTFARM_ASSERT_OK(session->Run({x}));
  const auto budget = std::make_shared<MemoryBudget>(MemoryBudget::kUnlimited);
  const BudgetScope scope(budget);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto out, session->Run({x}));
  EXPECT_EQ(budget->peak(), out[0].TotalBytes());
}

// x of n elements, added to itself; then the sum of all.
GraphMaker Large() {
  GraphMaker g;
  g.Placeholder("n", tensorflow::DT_INT32).Const("one", Float(1));
  g.Node("x", "Fill", {"n", "one"}).Type("T", kFloat);
  g.Math("y", "Add", {"x", "x"});
  g.Const("axis", Int(0));
  g.Node("sum", "Sum", {"y", "axis"}).Type("T", kFloat);
  return g;
}

TEST(MemoryLimitTest, ARunBeyondItFailsAndTheNextMayPass) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto session, Large().Session("n", "sum"));
  RunOptions options;
  options.memory_limit = 1 << 20;
  EXPECT_THAT(session->Run({Ints({1 << 20})}, options),
              StatusIs(kExhausted, HasSubstr("limit of 1048576 bytes")));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto out,
                               session->Run({Ints({1 << 10})}, options));
  EXPECT_EQ(ValuesOf<float>(out[0])[0], 2048.0f);
}

TEST(MemoryLimitTest, ATraceTellsTheMostThatWasTaken) {
  SessionOptions plain;
  plain.reuse_buffers = false;
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto session,
                               Large().Session("n", "sum", plain));
  RunTrace trace;
  OPTFARM_ASSERT_OK(session->Run({Ints({1 << 10})}, &trace));
  // x and y, 4 KB each, and at most a few scalars.
  EXPECT_GE(trace.peak_bytes, 2 * 4096);
  EXPECT_LE(trace.peak_bytes, 2 * 4096 + 4096 / 2);
}

TEST(MemoryLimitTest, LoadingBeyondItFails) {
  SessionOptions options;
  options.memory_limit = 100;
  EXPECT_THAT(Network().Session("x", "y", options),
              StatusIs(kExhausted, HasSubstr("limit of 100 bytes")));
}

// Two words that unfold into four gigabytes are not unfolded at load.
TEST(MemoryLimitTest, FoldingDoesNotUnfoldABomb) {
  GraphMaker g;
  g.Const("n", Ints({1 << 30})).Const("one", Float(1));
  g.Node("x", "Fill", {"n", "one"}).Type("T", kFloat);
  g.Placeholder("p", kFloat).Math("y", "Add", {"x", "p"});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto session, g.Session("p", "y"));
  EXPECT_LT(session->constant_bytes(), 1 << 10);
  RunOptions options;
  options.memory_limit = 1 << 20;
  EXPECT_THAT(session->Run({Float(1)}, options),
              StatusIs(kExhausted, HasSubstr("'x'")));
}

TEST(SessionOptionsTest, EightThreadsMayRunOneModel) {
  const GraphMaker g = Network();
  ThreadPool pool(2);
  SessionOptions options;
  options.pool = &pool;
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto session,
                               g.Session("x", "y", options));
  const std::vector<float> expected[] = {AnswerOf(*session, 1),
                                         AnswerOf(*session, 6)};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 25; ++i) {
        const int which = (t + i / 8) % 2;
        ASSERT_EQ(AnswerOf(*session, which == 0 ? 1 : 6), expected[which]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace optfarm::runtime
