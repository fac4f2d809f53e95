// A depthwise convolution and the convolution of single pixels behind it give
// the same bits as one step and as two.

#ifdef OPTFARM_FAST_KERNELS
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/status_macros.h"
#include "engine/runtime/fusion/fusions.h"
#include "tests/engine/runtime/graph_maker.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

constexpr DataType kFloat = tensorflow::DT_FLOAT;

struct Layers {
  std::vector<int64_t> image;
  int64_t size = 3;
  int64_t stride = 1;
  int64_t filters = 0;
  std::string padding = "SAME";
  int threads = 1;
};

class SeparableConvolutionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!UsedCpuFeatures().avx2 && !UsedCpuFeatures().neon) {
      GTEST_SKIP() << "this processor has no fast kernels for floats";
    }
  }

  Tensor Random(const std::vector<int64_t>& dims) {
    std::uniform_real_distribution<float> number(-1.0f, 1.0f);
    Tensor made = *Tensor::Allocate(kFloat, *Shape::FromDims(dims));
    for (float& value : made.flat<float>()) value = number(random_);
    return made;
  }

  static void Slide(GraphMaker* g, const Layers& layers, int64_t stride) {
    tensorflow::NodeDef* node =
        g->def()->mutable_node(g->def()->node_size() - 1);
    auto* strides = (*node->mutable_attr())["strides"].mutable_list();
    for (int64_t s : {int64_t{1}, stride, stride, int64_t{1}}) {
      strides->add_i(s);
    }
    graph::SetString(node, "padding", layers.padding);
  }

  // Both with bias and Relu6: "depthwise" and "y".
  GraphMaker Graph(const Layers& layers) {
    const int64_t channels = layers.image[3];
    GraphMaker g;
    g.Placeholder("x", kFloat);
    g.Const("w", Random({layers.size, layers.size, channels, 1}));
    g.Const("b", Random({channels}));
    g.Const("w2", Random({1, 1, channels, layers.filters}));
    g.Const("b2", Random({layers.filters}));
    g.Node("dw", "DepthwiseConv2dNative", {"x", "w"}).Type("T", kFloat);
    Slide(&g, layers, layers.stride);
    g.Node("dwb", "BiasAdd", {"dw", "b"}).Type("T", kFloat);
    g.Node("depthwise", "Relu6", {"dwb"}).Type("T", kFloat);
    g.Node("pw", "Conv2D", {"depthwise", "w2"}).Type("T", kFloat);
    Slide(&g, layers, 1);
    g.Node("pwb", "BiasAdd", {"pw", "b2"}).Type("T", kFloat);
    g.Node("y", "Relu6", {"pwb"}).Type("T", kFloat);
    return g;
  }

  static absl::StatusOr<std::vector<Tensor>> Run(const GraphMaker& g,
                                                 const Tensor& image,
                                                 const std::string& fetches,
                                                 int threads, int steps) {
    SessionOptions options;
    options.threads = threads;
    OPTFARM_ASSIGN_OR_RETURN(const auto session,
                             g.Session("x", fetches, options));
    EXPECT_EQ(session->step_count(), steps);
    OPTFARM_RETURN_IF_ERROR(session->Run({image}).status());
    return session->Run({image});
  }

  std::mt19937 random_{5};
};

TEST_F(SeparableConvolutionTest, GivesTheBitsOfTwoSteps) {
  const Layers all[] = {
      // By strips, of several lines and of one.
      {{1, 60, 40, 33}, 3, 1, 24},
      {{1, 61, 43, 33}, 3, 1, 24, "SAME", 3},
      {{2, 40, 50, 64}, 3, 2, 40, "SAME", 2},
      {{1, 30, 300, 130}, 3, 1, 48, "VALID", 2},
      {{1, 33, 40, 70}, 5, 1, 300, "VALID"},
      // Too small for that, or with too few lines.
      {{1, 9, 7, 20}, 3, 1, 37, "SAME", 2},
      {{1, 8, 300, 64}, 3, 1, 32, "SAME", 3},
      {{1, 1, 1, 5}, 1, 1, 1},
      {{0, 9, 7, 20}, 3, 1, 37},
  };
  for (const Layers& layers : all) {
    const GraphMaker g = Graph(layers);
    const Tensor image = Random(layers.image);
    absl::StatusOr<std::vector<Tensor>> expected;
    {
      const FusionLimit limit("bands");
      expected = Run(g, image, "y", 1, 2);
    }
    OPTFARM_ASSERT_OK(expected.status());
    OPTFARM_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> made,
                                 Run(g, image, "y", layers.threads, 1));
    ASSERT_EQ(made[0].shape(), (*expected)[0].shape());
    EXPECT_EQ(
        std::memcmp(made[0].raw(), (*expected)[0].raw(), made[0].TotalBytes()),
        0)
        << image.shape().ToString();
  }
}

TEST_F(SeparableConvolutionTest, WhatIsFetchedBetweenStays) {
  const Layers layers = {{1, 9, 7, 20}, 3, 1, 37};
  const GraphMaker g = Graph(layers);
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> made,
      Run(g, Random(layers.image), "y,depthwise", 1, 2));
  EXPECT_EQ(made[1].dim(3), 20);
}

TEST_F(SeparableConvolutionTest, AnImageThatDoesNotFitIsRefusedAsByTwoSteps) {
  const GraphMaker g = Graph({{1, 9, 7, 20}, 3, 1, 37});
  const Tensor image = Random({1, 9, 7, 21});
  std::vector<absl::Status> told;
  for (const char* without : {"bands", ""}) {
    const FusionLimit limit(without);
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto session, g.Session("x", "y"));
    told.push_back(session->Run({image}).status());
  }
  EXPECT_EQ(told[0].code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(told[1].code(), told[0].code());
}

}  // namespace
}  // namespace optfarm::runtime
#endif  // OPTFARM_FAST_KERNELS
