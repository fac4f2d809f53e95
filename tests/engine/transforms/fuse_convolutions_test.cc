// The three fusions and the name that runs all of them. The reference is the
// graph before: the outputs have to be the same.

#include "tests/engine/transforms/transform_testing.h"

namespace optfarm::transforms::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

void Paddings(GraphBuilder* b, const std::vector<int32_t>& values) {
  b->Ints("paddings", {4, 2}, values);
}

void Resize(GraphBuilder* b, bool align_corners = false) {
  b->Ints("size", {2}, {6, 8});
  b->Node("resize", "ResizeBilinear", {"in", "size"},
          FloatT({{"align_corners", BoolAttr(align_corners)}}));
}

void Pad(GraphBuilder* b, const std::string& input,
         const std::string& mode = "REFLECT") {
  Paddings(b, {0, 0, 1, 2, 2, 1, 0, 0});
  b->Node("pad", "MirrorPad", {input, "paddings"},
          FloatT({{"mode", StringAttr(mode)},
                  {"Tpaddings", TypeAttr(tensorflow::DT_INT32)}}));
}

void Convolve(GraphBuilder* b, const std::string& input) {
  b->Floats("filter", {2, 2, 2, 3}, WaveValues(24));
  b->Conv2D("conv", input, "filter", 2, 2);
}

GraphBuilder Start() {
  GraphBuilder b;
  b.Placeholder("in", {1, 4, 5, 2});
  return b;
}

TransformReport FuseAndCompare(const GraphBuilder& b,
                               const std::string& transforms, Graph* graph,
                               const std::string& output = "conv") {
  *graph = b.Build();
  const Tensor in = Wave({1, 4, 5, 2});
  const std::vector<float> before = Run(*graph, "in", in, output);
  const TransformReport report = MustApply(graph, transforms, "in", output);
  EXPECT_THAT(Run(*graph, "in", in, output), AllNear(before, 1e-6f));
  return report;
}

TEST(FuseConvolutionsTest, FusesResizingAndPadding) {
  for (const bool align_corners : {false, true}) {
    GraphBuilder b = Start();
    Resize(&b, align_corners);
    Pad(&b, "resize", "SYMMETRIC");
    Convolve(&b, "pad");
    Graph graph;
    const TransformReport report =
        FuseAndCompare(b, "fuse_resize_pad_and_conv", &graph);
    EXPECT_EQ(report.nodes_changed, 1);
    EXPECT_THAT(Names(graph),
                ElementsAre("in", "size", "paddings", "filter", "conv"));
    EXPECT_EQ(Show(graph, "conv"),
              "FusedResizeAndPadConv2D(in, size, paddings, filter)");
    const graph::Node& conv = graph.node(graph.Find("conv"));
    EXPECT_EQ(conv.FindAttr("resize_align_corners")->b(), align_corners);
    EXPECT_EQ(conv.FindAttr("mode")->s(), "SYMMETRIC");
    EXPECT_EQ(conv.FindAttr("padding")->s(), "SAME");
  }
}

TEST(FuseConvolutionsTest, FusesResizingAlone) {
  GraphBuilder b = Start();
  Resize(&b);
  Convolve(&b, "resize");
  Graph graph;
  EXPECT_EQ(FuseAndCompare(b, "fuse_resize_and_conv", &graph).nodes_changed, 1);
  EXPECT_EQ(Show(graph, "conv"),
            "FusedResizeAndPadConv2D(in, size, conv_dummy_paddings, filter)");
}

TEST(FuseConvolutionsTest, FusesPaddingAlone) {
  GraphBuilder b = Start();
  Pad(&b, "in");
  Convolve(&b, "pad");
  Graph graph;
  EXPECT_EQ(FuseAndCompare(b, "fuse_pad_and_conv", &graph).nodes_changed, 1);
  EXPECT_EQ(Show(graph, "conv"), "FusedPadConv2D(in, paddings, filter)");
}

TEST(FuseConvolutionsTest, TheCommonNameFusesTheLongestFirst) {
  GraphBuilder b = Start();
  Resize(&b);
  Pad(&b, "resize");
  Convolve(&b, "pad");
  Graph graph;
  const TransformReport report = FuseAndCompare(b, "fuse_convolutions", &graph);
  EXPECT_EQ(report.nodes_changed, 1);
  EXPECT_EQ(graph.node(graph.Find("conv")).op(), "FusedResizeAndPadConv2D");
  EXPECT_THAT(report.skipped, IsEmpty());
}

TEST(FuseConvolutionsTest, TwoConvolutionsMayShareAnInput) {
  GraphBuilder b = Start();
  Pad(&b, "in");
  b.Node("pad2", "MirrorPad", {"in", "paddings"},
         FloatT({{"mode", StringAttr("REFLECT")}}));
  Convolve(&b, "pad");
  b.Conv2D("conv2", "pad2", "filter", 2, 2);
  b.Node("out", "Add", {"conv", "conv2"}, FloatT());
  Graph graph;
  EXPECT_EQ(FuseAndCompare(b, "fuse_pad_and_conv", &graph, "out").nodes_changed,
            2);
  EXPECT_EQ(Show(graph, "conv2"), "FusedPadConv2D(in, paddings, filter)");
}

TEST(FuseConvolutionsTest, LeavesWhatOthersRead) {
  GraphBuilder b = Start();
  Pad(&b, "in");
  Convolve(&b, "pad");
  b.Node("other", "Relu", {"pad"}, FloatT());
  Graph graph = b.Build();
  const TransformReport report =
      MustApply(&graph, "fuse_pad_and_conv", "in", "conv");
  EXPECT_EQ(report.nodes_changed, 0);
  EXPECT_THAT(Skipped(report),
              ElementsAre("conv: 'pad' is also used by 'other'"));
  EXPECT_EQ(Show(graph, "conv"), "Conv2D(pad, filter)");
}

TEST(FuseConvolutionsTest, CarriesControlInputs) {
  GraphBuilder b = Start();
  b.Node("start", "NoOp", {});
  Resize(&b);
  b.mutable_def()->mutable_node()->rbegin()->add_input("^start");
  Convolve(&b, "resize");
  Graph graph;
  FuseAndCompare(b, "fuse_convolutions", &graph);
  EXPECT_EQ(
      Show(graph, "conv"),
      "FusedResizeAndPadConv2D(in, size, conv_dummy_paddings, filter, ^start)");
}

TEST(FuseConvolutionsTest, SaysWhyAConvolutionStays) {
  const auto skipped = [](void (*change)(GraphBuilder*)) {
    GraphBuilder b = Start();
    Resize(&b);
    Pad(&b, "resize");
    Convolve(&b, "pad");
    change(&b);
    Graph graph = b.Build();
    PipelineOptions options;
    options.verify = false;
    const auto report =
        Apply(&graph, "fuse_resize_pad_and_conv", "in", "conv", options);
    EXPECT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(graph.node(graph.Find("conv")).op(), "Conv2D");
    return Skipped(report->steps[0].report);
  };
  EXPECT_THAT(skipped([](GraphBuilder* b) {
                auto* conv = &*b->mutable_def()->mutable_node()->rbegin();
                (*conv->mutable_attr())["data_format"] = StringAttr("NCHW");
              }),
              ElementsAre(HasSubstr("data_format is NCHW")));
  EXPECT_THAT(skipped([](GraphBuilder* b) {
                auto* conv = &*b->mutable_def()->mutable_node()->rbegin();
                (*conv->mutable_attr())["dilations"] = IntsAttr({1, 2, 2, 1});
              }),
              ElementsAre(HasSubstr("dilated")));
  EXPECT_THAT(skipped([](GraphBuilder* b) {
                b->mutable_def()->mutable_node(2)->mutable_attr()->insert(
                    {"half_pixel_centers", BoolAttr(true)});
              }),
              ElementsAre(HasSubstr("half_pixel_centers")));
  EXPECT_THAT(
      skipped([](GraphBuilder* b) {
        auto* value =
            (*b->mutable_def()->mutable_node(3)->mutable_attr())["value"]
                .mutable_tensor();
        value->set_int_val(0, 1);
      }),
      ElementsAre(HasSubstr("batch or the channels")));
  EXPECT_THAT(skipped([](GraphBuilder* b) {
                b->mutable_def()->mutable_node(3)->set_op("Placeholder");
              }),
              ElementsAre(HasSubstr("not constant; fold_constants")));
}

}  // namespace
}  // namespace optfarm::transforms::testing
