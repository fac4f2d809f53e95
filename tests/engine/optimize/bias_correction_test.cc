#include "engine/optimize/rounding/bias_correction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/runtime/session/session.h"
#include "engine/transforms/folding/shift_constants.h"
#include "engine/transforms/nodes/constant_nodes.h"
#include "tests/support/graph_builder.h"
#include "tests/support/status_matchers.h"

namespace optfarm::optimize {
namespace {

using graph::Graph;
using graph::TensorName;
using ::optfarm::testing::FloatT;
using ::optfarm::testing::GraphBuilder;
using runtime::Tensor;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::UnorderedElementsAre;
using transforms::ConstantShifts;

constexpr int64_t kChannels = 3;

// Numbers between -1 and 1 that depend on `seed`.
std::vector<float> Numbers(int64_t count, int64_t seed) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t step = (i * 37 + seed * 53 + 11) % 101;
    values.push_back(static_cast<float>(step - 50) / 50.0f);
  }
  return values;
}

// Two convolutions with biases; all weights are off by up to `error`.
Graph Network(float error) {
  std::vector<float> first = Numbers(3 * 3 * 2 * kChannels, 1);
  std::vector<float> second = Numbers(kChannels * kChannels, 2);
  const std::vector<float> noise = Numbers(54, 3);
  for (size_t i = 0; i < first.size(); ++i) first[i] += error * noise[i];
  for (size_t i = 0; i < second.size(); ++i) second[i] += error * noise[i];
  GraphBuilder b;
  b.Placeholder("in", {1, 4, 4, 2});
  b.Floats("w1", {3, 3, 2, kChannels}, first);
  b.Floats("b1", {kChannels}, {0.5f, -0.25f, 0.125f});
  b.Conv2D("conv1", "in", "w1");
  b.Node("add1", "Add", {"conv1", "b1"}, FloatT());
  b.Node("relu", "Relu", {"add1"}, FloatT());
  b.Floats("w2", {1, 1, kChannels, kChannels}, second);
  b.Floats("b2", {kChannels}, {1, 2, 3});
  b.Conv2D("conv2", "relu", "w2");
  b.Node("add2", "BiasAdd", {"conv2", "b2"}, FloatT());
  return b.Build();
}

std::vector<std::vector<Tensor>> Samples(int count) {
  std::vector<std::vector<Tensor>> samples;
  for (int i = 0; i < count; ++i) {
    samples.push_back(
        {Tensor::FromValues<float>({1, 4, 4, 2}, Numbers(32, 10 + 7 * i))});
  }
  return samples;
}

const std::vector<TensorName>& Inputs() {
  static const std::vector<TensorName> inputs = {{"in", 0}};
  return inputs;
}

// Mean of each channel of `output` over samples and positions.
std::vector<double> ChannelMeans(
    const Graph& graph, const std::string& output,
    const std::vector<std::vector<Tensor>>& samples) {
  std::vector<double> sums(kChannels, 0.0);
  int64_t positions = 0;
  const auto session =
      runtime::Session::Create(graph, Inputs(), {TensorName{output, 0}});
  EXPECT_TRUE(session.ok()) << session.status();
  if (!session.ok()) return sums;
  for (const std::vector<Tensor>& sample : samples) {
    const auto outputs = (*session)->Run(sample);
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    if (!outputs.ok()) return sums;
    const absl::Span<const float> values = (*outputs)[0].flat<float>();
    for (size_t i = 0; i < values.size(); ++i) {
      sums[i % kChannels] += values[i];
    }
    positions += static_cast<int64_t>(values.size()) / kChannels;
  }
  for (double& sum : sums) sum /= static_cast<double>(positions);
  return sums;
}

// The bytes of a constant.
std::string Content(const Graph& graph, const std::string& name) {
  const auto value = transforms::FloatConstValue(graph.node(graph.Find(name)));
  EXPECT_TRUE(value.ok()) << value.status();
  return value.ok() ? value->ToProto().tensor_content() : "";
}

double Distance(const std::vector<double>& a, const std::vector<double>& b) {
  double worst = 0.0;
  for (size_t i = 0; i < a.size(); ++i) {
    worst = std::max(worst, std::abs(a[i] - b[i]));
  }
  return worst;
}

TEST(BiasCorrectionTest, GivesEachChannelTheOriginalsMean) {
  const Graph original = Network(0.0f);
  Graph optimized = Network(0.2f);
  const auto samples = Samples(4);
  for (const char* layer : {"add1", "add2"}) {
    ASSERT_GT(Distance(ChannelMeans(optimized, layer, samples),
                       ChannelMeans(original, layer, samples)),
              0.005)
        << layer;
  }
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const ConstantShifts shifts,
      CorrectBiases(original, Inputs(), samples, 1, &optimized));
  EXPECT_THAT(shifts, UnorderedElementsAre(Key("b1"), Key("b2")));
  for (const char* layer : {"add1", "add2"}) {
    EXPECT_LT(Distance(ChannelMeans(optimized, layer, samples),
                       ChannelMeans(original, layer, samples)),
              1e-5)
        << layer;
  }
}

TEST(BiasCorrectionTest, IsRepeatedByItsShifts) {
  Graph corrected = Network(0.2f);
  Graph repeated = corrected.Clone();
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const ConstantShifts shifts,
      CorrectBiases(Network(0.0f), Inputs(), Samples(3), 1, &corrected));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const ConstantShifts read,
      transforms::ParseConstantShifts(transforms::PrintConstantShifts(shifts)));
  OPTFARM_ASSERT_OK(transforms::ShiftConstants(read, &repeated));
  for (const char* bias : {"b1", "b2"}) {
    EXPECT_EQ(Content(repeated, bias), Content(corrected, bias));
  }
}

TEST(BiasCorrectionTest, DoesNothingWithoutSamples) {
  Graph optimized = Network(0.2f);
  const std::string before = optimized.ToDef().DebugString();
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const ConstantShifts shifts,
      CorrectBiases(Network(0.0f), Inputs(), {}, 1, &optimized));
  EXPECT_THAT(shifts, IsEmpty());
  EXPECT_EQ(optimized.ToDef().DebugString(), before);
}

TEST(BiasCorrectionTest, LeavesBiasesThatOthersRead) {
  const Graph original = Network(0.0f);
  Graph optimized = Network(0.2f);
  tensorflow::NodeDef reader;
  reader.set_name("reader");
  reader.set_op("Relu");
  (*reader.mutable_attr())["T"].set_type(tensorflow::DT_FLOAT);
  optimized.Add(reader, {{optimized.Find("b1"), 0}});
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const ConstantShifts shifts,
      CorrectBiases(original, Inputs(), Samples(2), 1, &optimized));
  EXPECT_THAT(shifts, ElementsAre(Key("b2")));
}

TEST(BiasCorrectionTest, LeavesAdditionsTheOriginalDoesNotHave) {
  Graph optimized = Network(0.2f);
  optimized.Rename(optimized.Find("add1"), "another");
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const ConstantShifts shifts,
      CorrectBiases(Network(0.0f), Inputs(), Samples(2), 1, &optimized));
  EXPECT_THAT(shifts, ElementsAre(Key("b2")));
}

TEST(BiasCorrectionTest, IsTheSameWithAnyNumberOfThreads) {
  Graph alone = Network(0.2f), together = Network(0.2f);
  const auto samples = Samples(7);
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const ConstantShifts one,
      CorrectBiases(Network(0.0f), Inputs(), samples, 1, &alone));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const ConstantShifts four,
      CorrectBiases(Network(0.0f), Inputs(), samples, 4, &together));
  EXPECT_EQ(four, one);
}

TEST(BiasCorrectionTest, SpreadsNoNaN) {
  Graph optimized = Network(0.2f);
  auto samples = Samples(2);
  samples[1][0].flat<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const ConstantShifts shifts,
      CorrectBiases(Network(0.0f), Inputs(), samples, 1, &optimized));
  EXPECT_THAT(shifts, IsEmpty());
}

}  // namespace
}  // namespace optfarm::optimize
