#include "tests/engine/transforms/transform_testing.h"

namespace optfarm::transforms::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

void AddParameters(GraphBuilder* b, int64_t channels) {
  std::vector<float> mean, variance, beta, gamma;
  for (int64_t i = 0; i < channels; ++i) {
    const float step = static_cast<float>(i);
    mean.push_back(0.5f + step);
    variance.push_back(0.25f + step);
    beta.push_back(1.0f - step);
    gamma.push_back(2.0f + step);
  }
  b->Floats("mean", {channels}, mean);
  b->Floats("variance", {channels}, variance);
  b->Floats("beta", {channels}, beta);
  b->Floats("gamma", {channels}, gamma);
}

void AddFusedNorm(GraphBuilder* b, const std::string& name,
                  const std::string& input,
                  const std::string& op = "FusedBatchNorm") {
  Attrs attrs =
      FloatT({{"epsilon", FloatAttr(0.01f)}, {"is_training", BoolAttr(false)}});
  if (op != "FusedBatchNorm") attrs["U"] = TypeAttr(tensorflow::DT_FLOAT);
  b->Node(name, op, {input, "gamma", "beta", "mean", "variance"}, attrs);
}

TransformReport FoldAndCompare(const GraphBuilder& b, Graph* graph,
                               const runtime::Shape& shape) {
  *graph = b.Build();
  const Tensor in = Wave(shape);
  const std::vector<float> before = Run(*graph, "in", in, "norm");
  const TransformReport report =
      MustApply(graph, "fold_old_batch_norms", "in", "norm");
  EXPECT_THAT(Run(*graph, "in", in, "norm"), AllNear(before, 1e-3f));
  return report;
}

GraphBuilder ConvolutionAndNorm(const std::string& op) {
  GraphBuilder b;
  b.Placeholder("in", {1, 3, 3, 2});
  b.Floats("w", {1, 1, 2, 2}, {1, 2, 3, 4});
  b.Conv2D("conv", "in", "w");
  AddParameters(&b, 2);
  AddFusedNorm(&b, "norm", "conv", op);
  return b;
}

TEST(FoldOldBatchNormsTest, FoldsFusedBatchNorms) {
  for (const char* op :
       {"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"}) {
    Graph graph;
    const TransformReport report =
        FoldAndCompare(ConvolutionAndNorm(op), &graph, {1, 3, 3, 2});
    EXPECT_EQ(report.nodes_changed, 1) << op;
    EXPECT_THAT(SortedNames(graph),
                ElementsAre("conv", "conv_bn_offset", "in", "norm", "w"));
    EXPECT_EQ(Show(graph, "norm"), "BiasAdd(conv, conv_bn_offset)");
  }
}

TEST(FoldOldBatchNormsTest, FoldsGlobalNormalization) {
  for (const bool scale : {false, true}) {
    GraphBuilder b;
    b.Placeholder("in", {1, 3, 3, 2});
    b.Floats("w", {1, 1, 2, 1}, {1, 2});
    b.Node("conv", "DepthwiseConv2dNative", {"in", "w"},
           FloatT({{"strides", IntsAttr({1, 1, 1, 1})},
                   {"padding", StringAttr("SAME")}}));
    AddParameters(&b, 2);
    b.Node("norm", "BatchNormWithGlobalNormalization",
           {"conv", "mean", "variance", "beta", "gamma"},
           FloatT({{"variance_epsilon", FloatAttr(0.01f)},
                   {"scale_after_normalization", BoolAttr(scale)}}));
    Graph graph = b.Build();
    EXPECT_EQ(
        MustApply(&graph, "fold_old_batch_norms", "in", "norm").nodes_changed,
        1);
    // w * 1/sqrt(variance + eps) [* gamma]
    const float first = 1.0f / std::sqrt(0.26f) * (scale ? 2.0f : 1.0f);
    EXPECT_NEAR(FloatsOf(graph, "w")[0], first, 1e-5f);
    EXPECT_NEAR(FloatsOf(graph, "conv_bn_offset")[0], 1.0f - 0.5f * first,
                1e-5f);
  }
}

TEST(FoldOldBatchNormsTest, FoldsThroughBatchToSpace) {
  GraphBuilder b;
  b.Placeholder("in", {4, 2, 2, 1});
  b.Floats("w", {1, 1, 1, 2}, {1, 2});
  b.Conv2D("conv", "in", "w");
  b.Ints("block", {2}, {2, 2});
  b.Ints("crops", {2, 2}, {0, 0, 0, 0});
  b.Node("space", "BatchToSpaceND", {"conv", "block", "crops"},
         FloatT({{"Tblock_shape", TypeAttr(tensorflow::DT_INT32)},
                 {"Tcrops", TypeAttr(tensorflow::DT_INT32)}}));
  AddParameters(&b, 2);
  AddFusedNorm(&b, "norm", "space");
  Graph graph = b.Build();
  MustApply(&graph, "fold_old_batch_norms", "in", "norm");
  EXPECT_EQ(Show(graph, "norm"), "BatchToSpaceND(conv/biasadd, block, crops)");
  EXPECT_EQ(Show(graph, "conv/biasadd"), "BiasAdd(conv, conv_bn_offset)");
}

TEST(FoldOldBatchNormsTest, FoldsThroughConcatenation) {
  for (const int axis : {3, -1, 0}) {
    GraphBuilder b;
    b.Placeholder("in", {1, 3, 3, 1});
    for (const std::string i : {"0", "1"}) {
      b.Floats("w" + i, {1, 1, 1, 2}, {1, 2});
      b.Conv2D("conv" + i, "in", "w" + i);
    }
    b.Ints("axis", {}, {axis});
    b.Node(
        "concat", "ConcatV2", {"conv0", "conv1", "axis"},
        FloatT({{"N", IntAttr(2)}, {"Tidx", TypeAttr(tensorflow::DT_INT32)}}));
    AddParameters(&b, axis == 0 ? 2 : 4);
    AddFusedNorm(&b, "norm", "concat");
    Graph graph;
    EXPECT_EQ(FoldAndCompare(b, &graph, {1, 3, 3, 1}).nodes_changed, 1);
    EXPECT_EQ(Show(graph, "norm"),
              "ConcatV2(concat_bn_in0, concat_bn_in1, axis)");
    EXPECT_EQ(FloatsOf(graph, "conv1_bn_offset").size(), 2u);
  }
}

TEST(FoldOldBatchNormsTest, EndsWhenParametersAreShared) {
  GraphBuilder b = ConvolutionAndNorm("FusedBatchNorm");
  b.Floats("w2", {1, 1, 2, 2}, {1, 2, 3, 4});
  b.Conv2D("conv2", "in", "w2");
  AddFusedNorm(&b, "norm2", "conv2");
  b.Node("uses_mean", "Relu", {"mean"}, FloatT());
  Graph graph = b.Build();
  const TransformReport report =
      MustApply(&graph, "fold_old_batch_norms", "in", "norm,norm2,uses_mean");
  EXPECT_EQ(report.nodes_changed, 2);
  EXPECT_NE(graph.Find("mean"), graph::kNoNode);
  EXPECT_EQ(graph.Find("gamma"), graph::kNoNode);
}

TEST(FoldOldBatchNormsTest, LeavesWhatSomethingElseSees) {
  GraphBuilder b = ConvolutionAndNorm("FusedBatchNorm");
  b.Node("other", "Relu", {"conv"}, FloatT());
  Graph graph = b.Build();
  EXPECT_THAT(
      Skipped(MustApply(&graph, "fold_old_batch_norms", "in", "norm,other")),
      ElementsAre(HasSubstr("norm: 'conv' is also used by 'other'")));
}

TEST(FoldOldBatchNormsTest, LeavesNormsThatTrainOrGiveStatistics) {
  GraphBuilder b = ConvolutionAndNorm("FusedBatchNorm");
  Graph graph = b.Build();
  (*graph.mutable_node(graph.Find("norm"))
        ->mutable_def()
        ->mutable_attr())["is_training"] = BoolAttr(true);
  EXPECT_THAT(Skipped(MustApply(&graph, "fold_old_batch_norms", "in", "norm")),
              ElementsAre(HasSubstr("is_training=true")));
  b.Node("statistics", "Relu", {"norm:1"}, FloatT());
  graph = b.Build();
  EXPECT_THAT(Skipped(MustApply(&graph, "fold_old_batch_norms", "in",
                                "norm,statistics")),
              ElementsAre(HasSubstr("its output 1 is used")));
}

TEST(FoldOldBatchNormsTest, LeavesParametersThatDoNotFit) {
  GraphBuilder b;
  b.Placeholder("in", {1, 3, 3, 2});
  b.Floats("w", {1, 1, 2, 2}, {1, 2, 3, 4});
  b.Conv2D("conv", "in", "w");
  AddParameters(&b, 3);
  AddFusedNorm(&b, "norm", "conv");
  Graph graph = b.Build();
  PipelineOptions options;
  options.verify = false;
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const PipelineReport report,
      Apply(&graph, "fold_old_batch_norms", "in", "norm", options));
  EXPECT_THAT(Skipped(report.steps[0].report),
              ElementsAre(HasSubstr("3 factors for 2 output channels")));
}

}  // namespace
}  // namespace optfarm::transforms::testing
