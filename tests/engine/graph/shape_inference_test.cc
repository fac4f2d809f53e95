// Shapes of small graphs, and of the shared models against the shapes that
// TensorFlow itself recorded in them.

#include "engine/graph/shape_inference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/graph/op_defs.h"
#include "tests/engine/graph/model_files.h"
#include "tests/engine/graph/text_graph.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::graph {
namespace {

using ::optfarm::testing::StatusIs;
using testing::FloatOf;
using testing::Floats;
using ::testing::HasSubstr;
using testing::Int32;
using testing::Int32s;
using ::testing::IsEmpty;
using testing::kFloat;
using ::testing::SizeIs;
using testing::TextGraph;

std::string ShapeOf(const Graph& graph, const ShapeMap& shapes,
                    absl::string_view name, int port = 0) {
  return shapes.Of({graph.Find(name), port}).ToString();
}

// The shape of tensor `name` in the graph of the text, fed nothing.
std::string Infer(absl::string_view text, absl::string_view name = "y",
                  int port = 0) {
  const Graph graph = TextGraph(text);
  const auto shapes = InferShapes(graph);
  EXPECT_TRUE(shapes.ok()) << shapes.status();
  if (!shapes.ok()) return "";
  for (const ShapeProblem& problem : shapes->problems()) {
    return problem.text;
  }
  return ShapeOf(graph, *shapes, name, port);
}

TEST(ShapeInference, Convolutions) {
  const std::string net =
      absl::StrCat("x = Placeholder() ", FloatOf({-1, 224, 224, 3}), "\n",
                   "w = Const() ", Floats({3, 3, 3, 8}), "\n");
  EXPECT_EQ(Infer(absl::StrCat(
                net,
                "y = Conv2D(x, w) T { type: DT_FLOAT } strides { list { "
                "i: [1, 2, 2, 1] } } padding { s: 'SAME' }")),
            "[?,112,112,8]");
  EXPECT_EQ(Infer(absl::StrCat(
                net,
                "y = Conv2D(x, w) T { type: DT_FLOAT } strides { list { "
                "i: [1, 2, 2, 1] } } padding { s: 'VALID' }")),
            "[?,111,111,8]");
  EXPECT_EQ(
      Infer(absl::StrCat(net,
                         "y = DepthwiseConv2dNative(x, w) T { type: DT_FLOAT "
                         "} strides { list { i: [1, 1, 1, 1] } } padding { s: "
                         "'SAME' }")),
      "[?,224,224,24]");
  EXPECT_THAT(
      Infer(absl::StrCat("x = Placeholder() ", FloatOf({1, 8, 8, 4}), "\n",
                         "w = Const() ", Floats({3, 3, 3, 8}), "\n",
                         "y = Conv2D(x, w) T { type: DT_FLOAT } strides { "
                         "list { i: [1, 1, 1, 1] } } padding { s: 'SAME' }")),
      HasSubstr("4 channels"));
}

TEST(ShapeInference, FusedConvolutions) {
  const std::string net =
      absl::StrCat("x = Placeholder() ", FloatOf({1, 10, 10, 3}), "\n",
                   "w = Const() ", Floats({3, 3, 3, 8}), "\n", "b = Const() ",
                   Floats({8}), "\n", "size = Const() ", Int32s({20, 30}), "\n",
                   "pads = Const() ", Int32s({0, 0, 1, 2, 3, 4, 0, 0}), "\n",
                   "p = Reshape(pads, s) T { type: DT_INT32 }\n",
                   "s = Const() ", Int32s({4, 2}), "\n");
  const std::string valid =
      " T { type: DT_FLOAT } strides { list { i: [1, 1, 1, 1] } } padding { "
      "s: 'VALID' } ";
  const std::string mode = "mode { s: 'REFLECT' }";
  EXPECT_EQ(
      Infer(absl::StrCat(net, "y = FusedPadConv2D(x, p, w)", valid, mode)),
      "[1,11,15,8]");
  EXPECT_EQ(
      Infer(absl::StrCat(net, "y = FusedResizeAndPadConv2D(x, size, p, w)",
                         valid, mode)),
      "[1,21,35,8]");
  EXPECT_EQ(Infer(absl::StrCat(net, "y = _FusedConv2D(x, w, b)", valid,
                               "num_args { i: 1 } fused_ops { list { s: "
                               "['BiasAdd'] } }")),
            "[1,8,8,8]");
  EXPECT_EQ(Infer(absl::StrCat(net, "y = _FusedDepthwiseConv2dNative(x, w)",
                               valid, "num_args { i: 0 }")),
            "[1,8,8,24]");
}

TEST(ShapeInference, PoolingInBothLayouts) {
  EXPECT_EQ(Infer(absl::StrCat(
                "x = Placeholder() ", FloatOf({1, 7, 7, 16}),
                "\ny = AvgPool(x)", kFloat,
                "ksize { list { i: [1, 7, 7, 1] } } strides { list { i: [1, "
                "2, 2, 1] } } padding { s: 'VALID' }")),
            "[1,1,1,16]");
  EXPECT_EQ(Infer(absl::StrCat(
                "x = Placeholder() ", FloatOf({1, 16, 7, 7}),
                "\ny = MaxPool(x)", kFloat,
                "ksize { list { i: [1, 1, 3, 3] } } strides { list { i: [1, "
                "1, 2, 2] } } padding { s: 'SAME' } data_format { s: 'NCHW' "
                "}")),
            "[1,16,4,4]");
}

TEST(ShapeInference, ReshapeFindsTheMissingDimension) {
  const std::string x =
      absl::StrCat("x = Placeholder() ", FloatOf({-1, 4, 6}), "\n");
  EXPECT_EQ(Infer(absl::StrCat(x, "s = Const() ", Int32s({-1, 24}),
                               "\ny = Reshape(x, s)", kFloat)),
            "[?,24]");
  const std::string fixed =
      absl::StrCat("x = Placeholder() ", FloatOf({2, 4, 6}), "\n");
  EXPECT_EQ(Infer(absl::StrCat(fixed, "s = Const() ", Int32s({-1, 8}),
                               "\ny = Reshape(x, s)", kFloat)),
            "[6,8]");
  EXPECT_THAT(Infer(absl::StrCat(fixed, "s = Const() ", Int32s({5, 5}),
                                 "\ny = Reshape(x, s)", kFloat)),
              HasSubstr("48 elements"));
}

// flatten(): [shape(x)[0], prod(shape(x)[1:])].
TEST(ShapeInference, FollowsShapesComputedInTheGraph) {
  const std::string flatten = absl::StrCat(
      "shape = Shape(x)", kFloat, "\n", "zero = Const() ", Int32s({0}), "\n",
      "one = Const() ", Int32s({1}), "\n", "three = Const() ", Int32s({3}),
      "\n",
      "batch = StridedSlice(shape, zero, one, one) T { type: DT_INT32 } Index "
      "{ type: DT_INT32 } shrink_axis_mask { i: 1 }\n",
      "rest = StridedSlice(shape, one, three, one) T { type: DT_INT32 } Index "
      "{ type: DT_INT32 }\n",
      "axis = Const() ", Int32(0), "\n",
      "size = Prod(rest, axis) T { type: DT_INT32 }\n",
      "target = Pack(batch, size) N { i: 2 } T { type: DT_INT32 }\n",
      "y = Reshape(x, target)", kFloat);
  EXPECT_EQ(Infer(absl::StrCat("x = Placeholder() ", FloatOf({-1, 4, 6}), "\n",
                               flatten)),
            "[?,24]");
  EXPECT_EQ(Infer(absl::StrCat("x = Placeholder() ", FloatOf({3, 4, 6}), "\n",
                               flatten)),
            "[3,24]");
}

TEST(ShapeInference, IntegerArithmeticOnShapes) {
  const Graph graph = TextGraph(absl::StrCat(
      "x = Placeholder() ", FloatOf({-1, 5, 7}), "\n", "s = Shape(x)", kFloat,
      "\n", "two = Const() ", Int32(2), "\n",
      "m = Mul(s, two) T { type: DT_INT32 }\n",
      "d = FloorDiv(s, two) T { type: DT_INT32 }\n", "axis = Const() ",
      Int32(0), "\n",
      "c = ConcatV2(m, d, axis) N { i: 2 } T { type: DT_INT32 }\n"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const ShapeMap shapes, InferShapes(graph));
  const PartialValue* value = shapes.ValueOf({graph.Find("c"), 0});
  ASSERT_NE(value, nullptr);
  using E = std::optional<int64_t>;
  EXPECT_THAT(value->elements,
              ::testing::ElementsAre(E(), E(10), E(14), E(), E(2), E(3)));
}

TEST(ShapeInference, ElementsBeyondTheTypeAreUnknown) {
  const Graph graph =
      TextGraph(absl::StrCat("a = Const() ", Int32(2000000000),
                             "\nm = Mul(a, a) T { type: DT_INT32 }\n"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const ShapeMap shapes, InferShapes(graph));
  const PartialValue* value = shapes.ValueOf({graph.Find("m"), 0});
  ASSERT_NE(value, nullptr);
  EXPECT_FALSE(value->is_known());
}

TEST(ShapeInference, JoiningAndCutting) {
  const std::string two = absl::StrCat(
      "a = Placeholder() ", FloatOf({-1, 2, 3}), "\n", "b = Placeholder() ",
      FloatOf({4, -1, 3}), "\n", "axis = Const() ", Int32(1), "\n");
  EXPECT_EQ(
      Infer(absl::StrCat(two, "y = ConcatV2(a, b, axis) N { i: 2 }", kFloat)),
      "[4,?,3]");
  EXPECT_EQ(Infer(absl::StrCat(two, "y = Pack(a, b) N { i: 2 } axis { i: -1 }",
                               kFloat)),
            "[4,2,3,2]");
  EXPECT_EQ(Infer(absl::StrCat("x = Placeholder() ", FloatOf({4, 6}), "\n",
                               "axis = Const() ", Int32(-1), "\n",
                               "y = Split(axis, x) num_split { i: 3 }", kFloat),
                  "y", 2),
            "[4,2]");
  EXPECT_EQ(Infer(absl::StrCat("x = Placeholder() ", FloatOf({1, -1, 3}), "\n",
                               "y = Squeeze(x) squeeze_dims { list { i: 0 } }",
                               kFloat)),
            "[?,3]");
  EXPECT_EQ(Infer(absl::StrCat("x = Placeholder() ", FloatOf({2, 3}), "\n",
                               "p = Const() ", Int32s({1, 0}), "\n",
                               "y = Transpose(x, p)", kFloat)),
            "[3,2]");
}

TEST(ShapeInference, Products) {
  const std::string two =
      absl::StrCat("a = Placeholder() ", FloatOf({-1, 3}), "\n",
                   "b = Placeholder() ", FloatOf({3, 5}), "\n");
  EXPECT_EQ(Infer(absl::StrCat(two, "y = MatMul(a, b)", kFloat)), "[?,5]");
  EXPECT_THAT(Infer(absl::StrCat(
                  two, "y = MatMul(a, b) transpose_b { b: true }", kFloat)),
              HasSubstr("node 'y' (MatMul): matrices [?,3] and [3,5]"));
}

TEST(ShapeInference, OldPlaceholdersOfRank0AreUnknown) {
  const std::string text =
      absl::StrCat("x = Placeholder() ", FloatOf({}), "\n");
  for (const auto& [producer, shape] : std::vector<std::pair<int, std::string>>{
           {0, "<unknown>"}, {21, "<unknown>"}, {22, "[]"}}) {
    const Graph graph = TextGraph(text, producer);
    OPTFARM_ASSERT_OK_AND_ASSIGN(const ShapeMap shapes, InferShapes(graph));
    EXPECT_EQ(ShapeOf(graph, shapes, "x"), shape) << producer;
  }
}

TEST(ShapeInference, FeedsReplaceShapeAndValue) {
  const Graph graph = TextGraph(
      absl::StrCat("x = Placeholder() ", FloatOf({-1, 4}), "\n", "s = Const() ",
                   Int32s({-1, 2}), "\n", "y = Reshape(x, s)", kFloat));
  ShapeOptions options;
  options.feeds[{graph.Find("x"), 0}] = PartialShape({3, 4});
  OPTFARM_ASSERT_OK_AND_ASSIGN(ShapeMap shapes, InferShapes(graph, options));
  EXPECT_EQ(ShapeOf(graph, shapes, "y"), "[6,2]");
  options.feeds[{graph.Find("s"), 0}] = PartialShape({2});
  OPTFARM_ASSERT_OK_AND_ASSIGN(shapes, InferShapes(graph, options));
  EXPECT_EQ(ShapeOf(graph, shapes, "y"), "[?,?]");
}

TEST(ShapeInference, UnknownOpsGiveUnknownShapes) {
  EXPECT_EQ(Infer(absl::StrCat("x = Placeholder() ", FloatOf({2}), "\n",
                               "u = FromTheFuture(x)\ny = Relu(u:3)", kFloat)),
            "<unknown>");
}

TEST(ShapeInference, LoopsEndAndStayConservative) {
  const Graph graph = TextGraph(absl::StrCat(
      "x = Placeholder() ", FloatOf({2, 3}), "\n",
      "enter = Enter(x) frame_name { s: 'loop' }", kFloat, "\n",
      "merge = Merge(enter, next) N { i: 2 }", kFloat, "\n",
      "go = Placeholder() dtype { type: DT_BOOL } shape { shape { } }\n",
      "cond = LoopCond(go)\n", "switch = Switch(merge, cond)", kFloat, "\n",
      "body = Relu(switch:1)", kFloat, "\n", "next = NextIteration(body)",
      kFloat, "\n", "exit = Exit(switch)", kFloat, "\n"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const ShapeMap shapes, InferShapes(graph));
  EXPECT_THAT(shapes.problems(), IsEmpty());
  EXPECT_EQ(ShapeOf(graph, shapes, "exit"), "<unknown>");
}

TEST(ShapeInference, MergeOfBranchesKeepsWhatBothHave) {
  EXPECT_EQ(Infer(absl::StrCat("a = Placeholder() ", FloatOf({2, 3}), "\n",
                               "b = Placeholder() ", FloatOf({4, 3}), "\n",
                               "y = Merge(a, b) N { i: 2 }", kFloat)),
            "[?,3]");
}

TEST(ShapeInference, MirroredElementsAreThere) {
  const auto padded = [](const std::string& mode, int rows) {
    return Infer(absl::StrCat(
        "x = Placeholder() ", FloatOf({rows, -1}), "\n",
        "p = Const() dtype { type: DT_INT32 } value { tensor { dtype: DT_INT32 "
        "tensor_shape { dim { size: 2 } dim { size: 2 } } "
        "int_val: [0, 3, 2, 0] } }\n",
        "y = MirrorPad(x, p) T { type: DT_FLOAT } Tpaddings { type: DT_INT32 } "
        "mode { s: '",
        mode, "' }"));
  };
  EXPECT_EQ(padded("REFLECT", 4), "[7,?]");
  EXPECT_EQ(padded("SYMMETRIC", 3), "[6,?]");
  EXPECT_THAT(padded("REFLECT", 3), HasSubstr("cannot be mirrored by 3"));
}

TEST(ShapeInference, StatesOfRecurrentLayersHaveTheSequencesBatch) {
  const auto layer = [](const std::string& state) {
    return Infer(absl::StrCat(
        "x = Placeholder() ", FloatOf({5, -1, 3}), "\n", "w = Const() ",
        Floats({1, 4, 3}), "\n", "r = Const() ", Floats({1, 4, 4}), "\n",
        "none = Const() ", Floats({0}), "\n",
        "n = Const() dtype { type: DT_INT32 } value { tensor { "
        "dtype: DT_INT32 tensor_shape { dim { size: 0 } } } }\n",
        "h = Placeholder() ", state, "\n",
        "y = RnnSequence(x, w, r, none, n, h) T { type: DT_FLOAT "
        "} hidden_size { i: 4 }"));
  };
  EXPECT_EQ(layer(FloatOf({1, 2, 4})), "[5,1,?,4]");
  EXPECT_EQ(layer(FloatOf({0})), "[5,1,?,4]");
  EXPECT_THAT(layer(FloatOf({2, 2, 4})), HasSubstr("2"));
  EXPECT_THAT(layer(FloatOf({1, 4})), HasSubstr("4"));
}

TEST(ShapeInference, WrongGraphsGiveProblemsNotCrashes) {
  const char* cases[] = {
      "y = Reshape(y2)",
      "x = Const() dtype { type: DT_INT32 } value { tensor { dtype: DT_INT32 "
      "tensor_shape { dim { size: -5 } } } }",
      "y = Const() dtype { type: DT_INT32 }",
      "y = Split() num_split { i: 1000000000000 }",
      "x = Placeholder() dtype { type: DT_FLOAT } shape { shape { dim { size: "
      "-9 } } }",
  };
  for (const char* text : cases) {
    const auto graph = testing::ParseTextGraph(text);
    if (!graph.ok()) continue;
    OPTFARM_ASSERT_OK_AND_ASSIGN(const ShapeMap shapes, InferShapes(*graph));
    EXPECT_THAT(shapes.problems(), SizeIs(1)) << text;
  }
  EXPECT_THAT(
      InferShapes(TextGraph("a = Relu(b)\nb = Relu(a)")),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'a' -> 'b'")));
}

// No shape contradicts one that TensorFlow wrote into the model, and hardly
// any says less (loops, and gradients of broadcasts).
TEST(ShapeInference, AgreesWithTheShapesRecordedInModels) {
  OPTFARM_REQUIRE_TEST_DATA();
  int same = 0;
  int less = 0;
  for (const std::string& path : graph::testing::ModelFiles()) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const std::vector<tensorflow::GraphDef> defs,
                                 graph::testing::ReadGraphs(path));
    for (const tensorflow::GraphDef& def : defs) {
      OPTFARM_ASSERT_OK_AND_ASSIGN(const Graph graph, Graph::FromDef(def));
      OPTFARM_ASSERT_OK_AND_ASSIGN(const ShapeMap shapes, InferShapes(graph));
      EXPECT_THAT(shapes.problems(), IsEmpty()) << path;
      for (NodeId id : graph.Ids()) {
        const auto* recorded = graph.node(id).FindAttr("_output_shapes");
        if (recorded == nullptr) continue;
        for (int port = 0; port < recorded->list().shape_size(); ++port) {
          const PartialShape ours = shapes.Of({id, port});
          const PartialShape theirs =
              *PartialShape::FromProto(recorded->list().shape(port));
          const auto both = MergeShapes(ours, theirs);
          ASSERT_TRUE(both.ok())
              << path << ": " << graph.node(id).name() << ": " << both.status();
          (*both == ours ? same : less) += 1;
        }
      }
    }
  }
  EXPECT_GT(same, 4000);
  EXPECT_LT(less, 100);
}

}  // namespace
}  // namespace optfarm::graph
