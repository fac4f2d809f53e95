#include "engine/optimize/rounding/adaptive_rounding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "base/files.h"
#include "engine/formats/samples/npy.h"
#include "engine/graph/graph.h"
#include "engine/optimize/samples/dataset.h"
#include "engine/runtime/session/session.h"
#include "engine/transforms/machinery/pipeline.h"
#include "engine/transforms/nodes/constant_nodes.h"
#include "tests/support/graph_builder.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::optimize {
namespace {

using graph::Graph;
using graph::TensorName;
using ::optfarm::testing::FloatT;
using ::optfarm::testing::FreshFolder;
using ::optfarm::testing::GraphBuilder;
using runtime::Tensor;
using ::testing::IsEmpty;
using transforms::ConstantShifts;

constexpr int64_t kSamples = 60, kSize = 6, kChannels = 4;

std::vector<float> Weights(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> weights(count);
  for (float& weight : weights) weight = normal(random);
  return weights;
}

// A convolution, a depthwise one and a matrix, whose ranges are trained, so
// that none has to be observed.
Graph Network() {
  GraphBuilder b;
  b.Placeholder("in", {1, kSize, kSize, kChannels});
  b.Floats("low", {}, {0});
  b.Floats("high", {}, {8});
  b.Node("coded", "FakeQuantWithMinMaxVars", {"in", "low", "high"});
  b.Floats("w", {3, 3, kChannels, 5}, Weights(9 * kChannels * 5, 1));
  b.Conv2D("conv", "coded", "w");
  b.Floats("bias", {5}, {1, 2, 3, 4, 5});
  b.Node("biased", "BiasAdd", {"conv", "bias"}, FloatT());
  return b.Build();
}

const std::vector<TensorName>& Inputs() {
  static const std::vector<TensorName> inputs = {{"in", 0}};
  return inputs;
}

Graph Quantized(const Graph& floats, const ConstantShifts& shifts = {}) {
  Graph graph = floats.Clone();
  const transforms::TransformStep steps[] = {{"quantize_layers", {}},
                                             {"dequantize_wide", {}},
                                             {"fuse_requantization", {}},
                                             {"strip_unused_nodes", {}}};
  const TensorName outputs[] = {{"biased", 0}};
  EXPECT_TRUE(transforms::RunTransforms(&graph, steps, Inputs(), outputs).ok());
  EXPECT_TRUE(transforms::ShiftConstants(shifts, &graph).ok());
  return graph;
}

// Pictures whose channels and neighbours have much in common.
Tensor Pictures(unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> bright(0, 4);
  std::vector<float> values;
  for (int64_t i = 0; i < kSamples; ++i) {
    const float common = bright(random);
    for (int64_t k = 0; k < kSize * kSize * kChannels; ++k) {
      values.push_back(common + bright(random));
    }
  }
  return Tensor::FromValues<float>({kSamples, 1, kSize, kSize, kChannels},
                                   values);
}

absl::StatusOr<ConstantShifts> Find(const Graph& floats, int threads) {
  const std::string path = JoinPath(FreshFolder(), "x.npy");
  EXPECT_TRUE(formats::SaveNpy(Pictures(3).ToProto(), path).ok());
  LocalData local;
  local.AddInput("in", path);
  ModelTensor input;
  input.name = {"in", 0};
  input.dtype = tensorflow::DT_FLOAT;
  input.shape = std::vector<int64_t>{1, kSize, kSize, kChannels};
  auto dataset = Dataset::Open(local, {}, {input});
  EXPECT_TRUE(dataset.ok()) << dataset.status();
  SampleReader reader(*dataset);
  std::vector<int64_t> samples(kSamples);
  std::iota(samples.begin(), samples.end(), 0);
  return FindRounding(floats, Quantized(floats),
                      {Inputs(), samples, threads, &reader});
}

// Noise power over signal power on other pictures, means taken off.
double Noise(const Graph& floats, const Graph& quantized) {
  const TensorName outputs[] = {{"biased", 0}};
  const auto before = runtime::Session::Create(floats, Inputs(), outputs);
  const auto after = runtime::Session::Create(quantized, Inputs(), outputs);
  EXPECT_TRUE(before.ok() && after.ok()) << after.status();
  const Tensor pictures = Pictures(4);
  const size_t size = kSize * kSize * kChannels;
  double noise = 0, signal = 0;
  for (size_t i = 0; i < kSamples; ++i) {
    const absl::Span<const float> all = pictures.flat<float>();
    const Tensor picture = Tensor::FromValues<float>(
        {1, kSize, kSize, kChannels}, all.subspan(i * size, size));
    const auto a = (*before)->Run({picture});
    const auto b = (*after)->Run({picture});
    EXPECT_TRUE(a.ok() && b.ok());
    for (int64_t k = 0; k < (*a)[0].num_elements(); ++k) {
      const double expected = (*a)[0].data<float>()[k];
      const double error = (*b)[0].data<float>()[k] - expected;
      noise += error * error;
      signal += expected * expected;
    }
  }
  return noise / signal;
}

TEST(AdaptiveRoundingTest, MakesLessNoiseOnSamplesItDidNotSee) {
  const Graph floats = Network();
  OPTFARM_ASSERT_OK_AND_ASSIGN(const ConstantShifts shifts, Find(floats, 1));
  EXPECT_EQ(shifts.size(), 2u);
  EXPECT_LT(Noise(floats, Quantized(floats, shifts)),
            0.7 * Noise(floats, Quantized(floats)));
}

TEST(AdaptiveRoundingTest, ThreadsDoNotChangeAnything) {
  const Graph floats = Network();
  EXPECT_EQ(Find(floats, 1).value(), Find(floats, 4).value());
}

TEST(AdaptiveRoundingTest, LeavesLayersAloneWhoseWeightsAreNotTheFloatOnes) {
  const Graph floats = Network();
  Graph others = Network();
  others.Rename(others.Find("biased"), "renamed");
  OPTFARM_ASSERT_OK_AND_ASSIGN(const ConstantShifts shifts, Find(floats, 1));
  EXPECT_FALSE(shifts.empty());
  Dataset dataset = *Dataset::MakeRandom({}, 0, 0);
  SampleReader reader(dataset);
  EXPECT_THAT(
      FindRounding(others, Quantized(floats), {Inputs(), {}, 1, &reader})
          .value(),
      IsEmpty());
}

}  // namespace
}  // namespace optfarm::optimize
