#include "engine/optimize/layers/stepwise_runs.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/transforms/folding/shift_constants.h"
#include "tests/support/graph_builder.h"
#include "tests/support/status_matchers.h"

namespace optfarm::optimize {
namespace {

using graph::Endpoint;
using graph::Graph;
using ::optfarm::testing::FloatT;
using ::optfarm::testing::GraphBuilder;
using runtime::Tensor;

constexpr int64_t kMuch = 1 << 20;

// Three additions in a row; the last one also reads what the first made.
Graph Chain() {
  GraphBuilder b;
  b.Placeholder("in", {2});
  for (int i = 1; i <= 3; ++i) {
    const std::string n = std::to_string(i);
    b.Floats("b" + n, {2}, {1, 2});
    b.Node("square" + n, "Square",
           {i == 1 ? "in" : "add" + std::to_string(i - 1)}, FloatT());
    b.Node("add" + n, "Add", {"square" + n, "b" + n}, FloatT());
  }
  b.Node("sum", "Add", {"add3", "add1"}, FloatT());
  return b.Build();
}

// What each step gives for each sample while the constant behind it changes
// after every step.
std::vector<std::vector<float>> Walk(int64_t memory_limit, int threads) {
  Graph graph = Chain();
  const std::vector<graph::TensorName> inputs = {{"in", 0}};
  std::vector<std::vector<Tensor>> samples;
  for (int i = 0; i < 5; ++i) {
    samples.push_back({Tensor::FromValues<float>(
        {2}, {0.25f * static_cast<float>(i), -0.5f})});
  }
  const auto end = [&](const std::string& name) {
    return Endpoint{graph.Find(name), 0};
  };
  std::vector<RunStep> steps = {{end("square1"), graph.Find("b1")},
                                {end("square2"), graph.Find("b2")},
                                {end("square3"), graph.Find("b3")},
                                {end("sum")}};
  const size_t count = steps.size();
  runtime::ThreadPool pool(threads);
  StepwiseRuns runs(graph, inputs, samples, std::move(steps), memory_limit,
                    &pool);
  std::vector<std::vector<float>> all;
  for (size_t step = 0; step < count; ++step) {
    std::vector<std::vector<float>> found(samples.size());
    const absl::Status status =
        runs.RunNext([&](size_t sample, const Tensor& value) {
          const absl::Span<const float> values = value.flat<float>();
          found[sample].assign(values.begin(), values.end());
        });
    EXPECT_TRUE(status.ok()) << status;
    all.insert(all.end(), found.begin(), found.end());
    if (step == 3) break;
    const std::string bias = "b" + std::to_string(step + 1);
    EXPECT_TRUE(
        transforms::ShiftConstants({{bias, {0.125f, -0.25f}}}, &graph).ok());
  }
  return all;
}

TEST(StepwiseRunsTest, GivesWhatRunsFromTheStartGive) {
  const std::vector<std::vector<float>> from_the_start = Walk(0, 1);
  ASSERT_EQ(from_the_start.size(), 20u);
  EXPECT_EQ(Walk(kMuch, 1), from_the_start);
}

TEST(StepwiseRunsTest, DoesNotDependOnTheNumberOfThreads) {
  EXPECT_EQ(Walk(kMuch, 4), Walk(kMuch, 1));
}

TEST(StepwiseRunsTest, KeepsWhatFitsIntoLittleMemory) {
  // Two tensors of five samples.
  EXPECT_EQ(Walk(2 * 5 * 8, 2), Walk(0, 1));
}

TEST(StepwiseRunsTest, ReportsTheFirstError) {
  const Graph graph = Chain();
  const std::vector<std::vector<Tensor>> samples = {
      {Tensor::FromValues<float>({2}, {1, 2})},
      {Tensor::FromValues<float>({3}, {1, 2, 3})}};
  runtime::ThreadPool pool(2);
  StepwiseRuns runs(graph, {{graph::TensorName{"in", 0}}}, samples,
                    {{{graph.Find("sum"), 0}}}, kMuch, &pool);
  EXPECT_FALSE(runs.RunNext([](size_t, const Tensor&) {}).ok());
}

}  // namespace
}  // namespace optfarm::optimize
