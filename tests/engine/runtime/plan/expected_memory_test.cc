// Memory that is planned before the first run, and runs that allocate nothing.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>
#include <optional>

#include "engine/runtime/core/memory_budget.h"
#include "engine/runtime/plan/executor.h"
#include "engine/runtime/plan/planner.h"
#include "tests/engine/runtime/graph_maker.h"
#include "tests/engine/runtime/run_op.h"
#include "tests/support/status_matchers.h"

namespace {

// Calls of operator new on this thread.
thread_local int64_t news = 0;

}  // namespace

// Not inlined: the compiler would take malloc and operator delete for a pair
// that does not match.
__attribute__((noinline)) void* operator new(size_t size) {
  ++news;
  void* memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
// The library's own throws where the above does, and std::stable_sort uses it.
__attribute__((noinline)) void* operator new(size_t size,
                                             const std::nothrow_t&) noexcept {
  ++news;
  return std::malloc(size);
}
__attribute__((noinline)) void operator delete(void* memory) noexcept {
  std::free(memory);
}
__attribute__((noinline)) void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}

namespace optfarm::runtime {
namespace {

constexpr auto kFloat = tensorflow::DT_FLOAT;

// A small network of pictures, with the batch as it is given.
GraphMaker Network(int64_t batch) {
  GraphMaker g;
  g.Node("x", "Placeholder")
      .Type("dtype", kFloat)
      .Shape("shape", {batch, 16, 16, 3});
  std::string last = "x";
  int64_t channels = 3;
  for (int i = 0; i < 3; ++i) {
    const std::string n = std::to_string(i);
    g.Const("w" + n, Scattered({3, 3, channels, 8}, 5 + i));
    channels = 8;
    g.Const("b" + n, Scattered({8}, 9 + i));
    g.Node("conv" + n, "Conv2D", {last, "w" + n})
        .Type("T", kFloat)
        .Text("padding", "SAME")
        .Ints("strides", {1, 1, 1, 1});
    g.Math("add" + n, "BiasAdd", {"conv" + n, "b" + n});
    g.Math("active" + n, "Relu", {"add" + n});
    last = "active" + n;
  }
  g.Node("pool", "MaxPool", {last})
      .Type("T", kFloat)
      .Text("padding", "VALID")
      .Ints("ksize", {1, 2, 2, 1})
      .Ints("strides", {1, 2, 2, 1});
  g.Const("flat", Ints({-1, 8 * 8 * 8}));
  g.Node("rows", "Reshape", {"pool", "flat"})
      .Type("T", kFloat)
      .Type("Tshape", tensorflow::DT_INT32);
  g.Const("weights", Scattered({8 * 8 * 8, 10}, 3));
  g.Node("scores", "MatMul", {"rows", "weights"}).Type("T", kFloat);
  g.Math("y", "Softmax", {"scores"});
  return g;
}

// The plan of a graph with feed x and fetch y, and its memory.
struct Planned {
  explicit Planned(const GraphMaker& maker) {
    graph::Graph graph = *maker.Graph();
    SessionOptions options;
    const auto feeds = *graph::ParseTensorNames("x");
    const auto fetches = *graph::ParseTensorNames("y");
    const PlanRequest request = {feeds, fetches, options};
    plan = *MakePlan(graph, request);
    for (Step& step : plan.steps) step.node = nullptr;
    PlanLifetimes(true, &plan);
    PlanMemory(graph, request, &plan);
    state.emplace(plan);
  }

  // Runs once. Returns the bytes that the run's tensors took at a time.
  int64_t Run(const Tensor& x) {
    const auto budget =
        std::make_shared<MemoryBudget>(MemoryBudget::kUnlimited);
    const BudgetScope scope(budget);
    state->slots[plan.feed_slots[0]] = x;
    state->memory.Begin(absl::MakeConstSpan(&x, 1));
    const KernelEnvironment environment = {&pool, nullptr, nullptr};
    EXPECT_TRUE(Execute(plan, environment, {}, &*state).ok());
    const Tensor nothing;
    for (int slot : plan.transient) state->slots[slot] = nothing;
    state->memory.End(true);
    return budget->peak();
  }

  ThreadPool pool{1};
  ExecutionPlan plan;
  std::optional<RunState> state;
};

TEST(ExpectedMemoryTest, TheFirstRunOfAStaticGraphHasItsPlaces) {
  Planned planned(Network(2));
  EXPECT_GT(planned.plan.expected.bytes, 0);
  const Tensor x = Scattered({2, 16, 16, 3}, 1);
  const int64_t first = planned.Run(x);
  EXPECT_GE(planned.state->memory.placed(), 4);
  // The result, which is the caller's, may have memory of its own.
  EXPECT_LE(planned.state->memory.alone(), 1);
  const int64_t second = planned.Run(x);
  EXPECT_LE(first, second + second / 20);
  EXPECT_LE(planned.state->memory.alone(), 1);
}

TEST(ExpectedMemoryTest, ABatchThatIsNotKnownIsTakenForOne) {
  Planned planned(Network(-1));
  planned.Run(Scattered({1, 16, 16, 3}, 1));
  EXPECT_GE(planned.state->memory.placed(), 4);
  planned.Run(Scattered({3, 16, 16, 3}, 1));
  EXPECT_EQ(planned.state->memory.placed(), 0);
  planned.Run(Scattered({3, 16, 16, 3}, 1));
  EXPECT_GE(planned.state->memory.placed(), 4);
}

TEST(ExpectedMemoryTest, NothingIsForeseenOfUnknownShapes) {
  GraphMaker g;
  g.Placeholder("x", kFloat).Math("z", "Tanh", {"x"}).Math("y", "Neg", {"z"});
  Planned planned(g);
  EXPECT_TRUE(planned.plan.expected.blocks.empty());
}

// A wrong guess of what kernels hand on costs memory, never an answer.
TEST(ExpectedMemoryTest, AnswersDoNotDependOnPlaces) {
  SessionOptions without;
  without.plan_memory = false;
  for (int64_t batch : {1, 4}) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto planned,
                                 Network(batch).Session("x", "y"));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto plain,
                                 Network(batch).Session("x", "y", without));
    for (int seed = 1; seed < 4; ++seed) {
      const Tensor x = Scattered({batch, 16, 16, 3}, seed);
      OPTFARM_ASSERT_OK_AND_ASSIGN(const auto a, planned->Run({x}));
      OPTFARM_ASSERT_OK_AND_ASSIGN(const auto b, plain->Run({x}));
      EXPECT_EQ(ValuesOf<float>(a[0]), ValuesOf<float>(b[0]));
    }
  }
}

// What remains are the result, its owner and the list that it comes in, and the
// sizes that Reshape reads.
TEST(SteadyStateTest, ARunOfAStaticGraphAllocatesNothingButItsResults) {
  for (bool fast : {false, true}) {
    SessionOptions options;
    options.fast_kernels = fast;
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto session,
                                 Network(2).Session("x", "y", options));
    const Tensor x = Scattered({2, 16, 16, 3}, 1);
    for (int i = 0; i < 3; ++i) OPTFARM_ASSERT_OK(session->Run({x}));
    const std::vector<Tensor> inputs = {x};
    const int64_t before = news;
    const auto results = session->Run(inputs);
    const int64_t after = news;
    OPTFARM_ASSERT_OK(results);
    EXPECT_LE(after - before, 6) << (fast ? "fast" : "reference");
  }
}

}  // namespace
}  // namespace optfarm::runtime
