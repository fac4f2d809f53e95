// quantize_layers: what lies between 8-bit layers stays in quantized values,
// and layers inside loops compute in 8 bits.

#include <functional>

#include "engine/graph/attr.h"
#include "engine/runtime/core/quantization.h"
#include "tests/engine/transforms/layer_testing.h"
#include "tests/support/loop_graph.h"

namespace optfarm::transforms::testing {
namespace {

using ::testing::Contains;
using ::testing::Not;

// The layer in front, once it is fused.
constexpr char kFirst[] = "first/eightbit";

// What stands between two layers: from "first" to "between".
using Between = std::function<void(GraphBuilder*)>;

// in -> 1x1 convolution with bias, "first".
GraphBuilder First() {
  GraphBuilder b;
  b.Placeholder("in", {1, 4, 6, 2});
  b.Floats("w1", {1, 1, 2, 3}, WaveValues(6));
  b.Conv2D("product", "in", "w1");
  b.Floats("b1", {3}, {0.5f, 1, -0.7f});
  b.Node("first", "BiasAdd", {"product", "b1"}, FloatT());
  return b;
}

// first -> between -> 1x1 convolution "out".
GraphBuilder Sandwich(const Between& between, int64_t channels = 3) {
  GraphBuilder b = First();
  between(&b);
  b.Floats("w2", {1, 1, channels, 2}, WaveValues(2 * channels));
  b.Conv2D("out", "between", "w2");
  return b;
}

Attrs Tidx(Attrs attrs = {}) {
  attrs["Tidx"] = TypeAttr(tensorflow::DT_INT32);
  return FloatT(attrs);
}

Graph Quantized(const GraphBuilder& b, const std::string& output = "out") {
  Graph graph = b.Build();
  const Tensor in = Wave({1, 4, 6, 2});
  MustApply(&graph, kLayers, "in", output);
  Freeze(&graph, in);
  MustApply(&graph, kFuse, "in", output);
  return graph;
}

int CountOf(const Graph& graph, const std::string& op) {
  const std::vector<std::string> ops = Ops(graph);
  return static_cast<int>(std::count(ops.begin(), ops.end(), op));
}

// One conversion to quantized values at the beginning, one to floats at the
// end.
void ExpectOneIsland(const Graph& graph) {
  EXPECT_EQ(CountOf(graph, "QuantizeV2"), 1);
  EXPECT_EQ(CountOf(graph, "Dequantize"), 1);
}

// What quantized values with a range of `layer` stand for, as a node called
// "decoded".
void AddDecoded(graph::NodeId quantized, graph::NodeId layer, Graph* graph) {
  tensorflow::NodeDef def;
  def.set_name("decoded");
  def.set_op("Dequantize");
  graph::SetType(&def, "T", tensorflow::DT_QUINT8);
  graph::SetString(&def, "mode", "MIN_FIRST");
  graph->Add(def, {{quantized, 0}, {layer, 1}, {layer, 2}});
}

// The values of a tensor of quantized values, with its range.
struct Decoded {
  std::vector<float> values;
  runtime::Range range;
  float step() const { return (range.max - range.min) / 255.0f; }
};
Decoded Decode(const Graph& graph, const std::string& node) {
  const Tensor in = Wave({1, 4, 6, 2});
  Graph copy = graph.Clone();
  const graph::NodeId layer = copy.Find(node);
  Decoded decoded;
  if (layer == graph::kNoNode) {
    ADD_FAILURE() << "no node '" << node << "'";
    return decoded;
  }
  AddDecoded(layer, layer, &copy);
  decoded.values = Answer(copy, in, "decoded");
  decoded.range = {Answer(copy, in, node + ":1")[0],
                   Answer(copy, in, node + ":2")[0]};
  return decoded;
}

// What stands between the layers, in float, of what the quantized values of the
// layer before stand for.
std::vector<float> InFloat(const Between& between, const Graph& quantized) {
  GraphBuilder alone;
  alone.Placeholder("first", {1, 4, 6, 3});
  between(&alone);
  return Run(
      alone.Build(), "first",
      Tensor::FromValues<float>({1, 4, 6, 3}, Decode(quantized, kFirst).values),
      "between");
}

struct MovingCase {
  std::string name;
  Between between;
  int64_t channels = 3;
};

const std::vector<MovingCase>& MovingCases() {
  static const auto* const kCases = new std::vector<MovingCase>{
      {"Pad",
       [](GraphBuilder* b) {
         b->Ints("pads", {4, 2}, {0, 0, 1, 2, 0, 1, 0, 0});
         b->Node("between", "Pad", {"first", "pads"}, FloatT());
       }},
      {"PadV2",
       [](GraphBuilder* b) {
         b->Ints("pads", {4, 2}, {0, 0, 1, 0, 0, 0, 0, 0});
         b->Floats("zero", {}, {0});
         b->Node("between", "PadV2", {"first", "pads", "zero"}, FloatT());
       }},
      {"MirrorPad",
       [](GraphBuilder* b) {
         b->Ints("pads", {4, 2}, {0, 0, 1, 1, 2, 1, 0, 0});
         b->Node("between", "MirrorPad", {"first", "pads"},
                 FloatT({{"mode", StringAttr("REFLECT")}}));
       }},
      {"Transpose",
       [](GraphBuilder* b) {
         b->Ints("order", {4}, {0, 2, 1, 3});
         b->Node("between", "Transpose", {"first", "order"},
                 FloatT({{"Tperm", TypeAttr(tensorflow::DT_INT32)}}));
       }},
      {"ResizeNearestNeighbor",
       [](GraphBuilder* b) {
         b->Ints("size", {2}, {8, 9});
         b->Node("between", "ResizeNearestNeighbor", {"first", "size"},
                 FloatT({{"align_corners", BoolAttr(false)}}));
       }},
      {"ResizeBilinear",
       [](GraphBuilder* b) {
         b->Ints("size", {2}, {8, 9});
         b->Node("between", "ResizeBilinear", {"first", "size"},
                 FloatT({{"align_corners", BoolAttr(true)}}));
       }},
      {"Slice",
       [](GraphBuilder* b) {
         b->Ints("begin", {4}, {0, 1, 0, 0});
         b->Ints("size", {4}, {1, 2, 5, 3});
         b->Node("between", "Slice", {"first", "begin", "size"},
                 FloatT({{"Index", TypeAttr(tensorflow::DT_INT32)}}));
       }},
      {"StridedSlice",
       [](GraphBuilder* b) {
         b->Ints("begin", {4}, {0, 1, 0, 0});
         b->Ints("end", {4}, {1, 4, 6, 3});
         b->Ints("strides", {4}, {1, 2, 1, 1});
         b->Node("between", "StridedSlice",
                 {"first", "begin", "end", "strides"},
                 FloatT({{"Index", TypeAttr(tensorflow::DT_INT32)}}));
       }},
      {"SpaceToDepth",
       [](GraphBuilder* b) {
         b->Node("between", "SpaceToDepth", {"first"},
                 FloatT({{"block_size", IntAttr(2)}}));
       },
       12},
      {"TwoInARow",
       [](GraphBuilder* b) {
         b->Ints("order", {4}, {0, 2, 1, 3});
         b->Node("turned", "Transpose", {"first", "order"},
                 FloatT({{"Tperm", TypeAttr(tensorflow::DT_INT32)}}));
         b->Ints("pads", {4, 2}, {0, 0, 1, 1, 1, 1, 0, 0});
         b->Node("between", "Pad", {"turned", "pads"}, FloatT());
       }},
      {"ScaledByOneNumber",
       [](GraphBuilder* b) {
         b->Floats("factor", {1}, {0.25f});
         b->Node("between", "Mul", {"factor", "first"}, FloatT());
       }},
      {"ScaledByChannel",
       [](GraphBuilder* b) {
         b->Floats("factor", {3}, {0.25f, -3, 1});
         b->Floats("offset", {3}, {0.5f, 0, -1});
         b->Node("times", "Mul", {"first", "factor"}, FloatT());
         b->Node("plus", "Add", {"times", "offset"}, FloatT());
         b->Node("between", "Relu", {"plus"}, FloatT());
       }},
      {"ShiftedAfterReshape",
       [](GraphBuilder* b) {
         b->Ints("flat_shape", {2}, {24, 3});
         b->Node("flat", "Reshape", {"first", "flat_shape"}, FloatT());
         b->Floats("offset", {1, 3}, {0.5f, 0, -1});
         b->Node("plus", "AddV2", {"offset", "flat"}, FloatT());
         b->Ints("shape", {4}, {1, 4, 6, 3});
         b->Node("between", "Reshape", {"plus", "shape"}, FloatT());
       }},
      {"MeanOverSpace",
       [](GraphBuilder* b) {
         b->Ints("axes", {2}, {1, 2});
         b->Node("between", "Mean", {"first", "axes"},
                 Tidx({{"keep_dims", BoolAttr(true)}}));
       }},
      {"AveragePoolOfThePicture",
       [](GraphBuilder* b) {
         b->Node("between", "AvgPool", {"first"},
                 FloatT({{"ksize", IntsAttr({1, 4, 6, 1})},
                         {"strides", IntsAttr({1, 1, 1, 1})},
                         {"padding", StringAttr("VALID")}}));
       }},
  };
  return *kCases;
}

class BetweenLayersTest : public ::testing::TestWithParam<size_t> {};

TEST_P(BetweenLayersTest, StaysInCodes) {
  const MovingCase& c = MovingCases()[GetParam()];
  const GraphBuilder b = Sandwich(c.between, c.channels);
  const Graph graph = Quantized(b);
  ExpectOneIsland(graph);
  ExpectClose(b.Build(), graph, Wave({1, 4, 6, 2}), "out", 0.03f);
}

INSTANTIATE_TEST_SUITE_P(All, BetweenLayersTest,
                         ::testing::Range(size_t{0}, MovingCases().size()),
                         [](const auto& tested) {
                           return MovingCases()[tested.param].name;
                         });

TEST(QuantizeBetweenTest, PadsWithExactlyZero) {
  // A 3x3 convolution that pads by itself, and one behind a Pad.
  const auto net = [](bool has_pad) {
    GraphBuilder b = First();
    b.Ints("pads", {4, 2}, {0, 0, 1, 1, 1, 1, 0, 0});
    b.Node("padded", "Pad", {"first", "pads"}, FloatT());
    b.Floats("w2", {3, 3, 3, 2}, WaveValues(54));
    auto& out = b.Conv2D("out", has_pad ? "padded" : "first", "w2");
    (*out.mutable_attr())["padding"] = StringAttr(has_pad ? "VALID" : "SAME");
    return b;
  };
  const Tensor in = Wave({1, 4, 6, 2});
  EXPECT_EQ(Answer(Quantized(net(true)), in, "out"),
            Answer(Quantized(net(false)), in, "out"));
}

TEST(QuantizeBetweenTest, WritesTheCodeOfZeroDownOnceTheRangeIsKnown) {
  const GraphBuilder b = Sandwich(MovingCases()[0].between);
  Graph graph = Quantized(b);
  EXPECT_EQ(Show(graph, "between/eightbit"),
            "PadV2(eightbit/2/bytes, pads, eightbit/2/bytes_1)");
  EXPECT_EQ(Show(graph, "eightbit/2/bytes_1"), "Bitcast(eightbit/2/zero)");
  EXPECT_EQ(Show(graph, "eightbit/2/zero"), "Const()");
}

TEST(QuantizeBetweenTest, MovesCodesWithoutChangingAny) {
  for (const size_t i : {3, 4, 6}) {
    const MovingCase& c = MovingCases()[i];
    Graph graph = Quantized(Sandwich(c.between));
    const std::vector<float> wanted = InFloat(c.between, graph);
    const graph::NodeId quantized = graph.Find("eightbit/2/codes");
    ASSERT_NE(quantized, graph::kNoNode) << c.name;
    AddDecoded(quantized, graph.Find(kFirst), &graph);
    EXPECT_EQ(Answer(graph, Wave({1, 4, 6, 2}), "decoded"), wanted) << c.name;
  }
}

// What follows from the quantized values in front is rounded once (34), (35).
TEST(QuantizeBetweenTest, RoundsMeansAndProductsOnce) {
  for (const size_t i : {11, 13, 14}) {
    const MovingCase& c = MovingCases()[i];
    const Graph graph = Quantized(Sandwich(c.between));
    // With a Relu there is one op for all of it.
    const bool is_fused = graph.Find("eightbit/2/requantize") == graph::kNoNode;
    const Decoded found =
        Decode(graph, is_fused ? "between/eightbit" : "eightbit/2/requantize");
    EXPECT_THAT(found.values,
                AllNear(InFloat(c.between, graph), 0.501f * found.step()))
        << c.name;
  }
}

TEST(QuantizeBetweenTest, ScalesTheRangeAndKeepsTheCodes) {
  Graph graph = Quantized(Sandwich(MovingCases()[10].between));
  EXPECT_EQ(CountOf(graph, "Mul"), 0);
  const Decoded first = Decode(graph, kFirst);
  EXPECT_EQ(FloatsOf(graph, "eightbit/2/scaled"),
            std::vector<float>{0.25f * first.range.min});
  EXPECT_EQ(FloatsOf(graph, "eightbit/2/scaled_1"),
            std::vector<float>{0.25f * first.range.max});
}

TEST(QuantizeBetweenTest, LeavesAMeanAtTheEndInFloat) {
  GraphBuilder b = First();
  b.Ints("axes", {2}, {1, 2});
  b.Node("out", "Mean", {"first", "axes"},
         Tidx({{"keep_dims", BoolAttr(false)}}));
  EXPECT_THAT(Ops(Quantized(b)), Contains("Mean"));
}

TEST(QuantizeBetweenTest, FlattensAMeanThatLosesItsDimensions) {
  GraphBuilder b = First();
  b.Ints("axes", {2}, {-2, 1});
  b.Node("mean", "Mean", {"first", "axes"},
         Tidx({{"keep_dims", BoolAttr(false)}}));
  b.Floats("w2", {3, 2}, WaveValues(6));
  b.Node("out", "MatMul", {"mean", "w2"},
         FloatT({{"transpose_a", BoolAttr(false)},
                 {"transpose_b", BoolAttr(false)}}));
  const Graph graph = Quantized(b);
  ExpectOneIsland(graph);
  ExpectClose(b.Build(), graph, Wave({1, 4, 6, 2}), "out", 0.03f);
}

TEST(QuantizeBetweenTest, PadsWithOtherNumbersInFloat) {
  const GraphBuilder net = Sandwich([](GraphBuilder* b) {
    b->Ints("pads", {4, 2}, {0, 0, 1, 0, 0, 0, 0, 0});
    b->Floats("one", {}, {1});
    b->Node("between", "PadV2", {"first", "pads", "one"}, FloatT());
  });
  EXPECT_EQ(CountOf(Quantized(net), "QuantizeV2"), 2);
}

TEST(QuantizeLoopsTest, ComputesProductsInsideLoopsInCodes) {
  Graph graph = Loop().Build();
  const TransformReport report = MustApply(&graph, kLayers, "in", "out");
  EXPECT_TRUE(report.skipped.empty());
  EXPECT_THAT(Ops(graph), Contains("QuantizedMatMulWithBiasAndRelu"));
  EXPECT_THAT(Ops(graph), Not(Contains("MatMul")));
  ExpectClose(Loop().Build(), graph, Wave({2, 3}), "out", 0.03f);
}

TEST(QuantizeLoopsTest, KeepsFrozenRangesInsideTheLoop) {
  Graph graph = Loop().Build();
  MustApply(&graph, kLayers, "in", "out");
  RangeLog log;
  for (graph::NodeId id : graph.Ids()) {
    if (graph.node(id).op().starts_with("RequantizationRange")) {
      log[graph.node(id).name()] = {{-1, 12}};
    }
  }
  EXPECT_EQ(log.size(), 2u);
  OPTFARM_ASSERT_OK(FreezeRanges(&graph, log, {0, 0}).status());
  MustApply(&graph, kFuse, "in", "out");
  EXPECT_THAT(Ops(graph),
              Contains("QuantizedMatMulWithBiasAndReluAndRequantize"));
  ExpectClose(Loop().Build(), graph, Wave({2, 3}), "out", 0.05f);
}

}  // namespace
}  // namespace optfarm::transforms::testing
