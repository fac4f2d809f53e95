// fix_reshapes: shapes that follow from what is known become constants.

#include "tests/engine/transforms/transform_testing.h"

namespace optfarm::transforms::testing {
namespace {

// Reshape(x, [Shape(x)[0], 6]) of x with `shape`.
GraphBuilder Flatten(const std::vector<int64_t>& shape, int last = 6) {
  GraphBuilder b;
  b.Placeholder("x", shape);
  const Attrs ints = {{"T", TypeAttr(tensorflow::DT_INT32)},
                      {"Index", TypeAttr(tensorflow::DT_INT32)},
                      {"shrink_axis_mask", IntAttr(1)}};
  b.Node("shape", "Shape", {"x"},
         FloatT({{"out_type", TypeAttr(tensorflow::DT_INT32)}}));
  b.Ints("zero", {1}, {0});
  b.Ints("one", {1}, {1});
  b.Node("batch", "StridedSlice", {"shape", "zero", "one", "one"}, ints);
  b.Ints("last", {}, {last});
  b.Node("target", "Pack", {"batch", "last"},
         {{"T", TypeAttr(tensorflow::DT_INT32)},
          {"N", IntAttr(2)},
          {"axis", IntAttr(0)}});
  b.Node("out", "Reshape", {"x", "target"},
         FloatT({{"Tshape", TypeAttr(tensorflow::DT_INT32)}}));
  return b;
}

TEST(FixReshapesTest, LeavesOneDimensionToTheNumberOfElements) {
  Graph graph = Flatten({-1, 2, 3}).Build();
  const std::vector<float> before =
      transforms::testing::Run(graph, "x", Wave({4, 2, 3}), "out");
  MustApply(&graph, "fix_reshapes strip_unused_nodes", "x", "out");
  EXPECT_EQ(Show(graph, "out"), "Reshape(x, out/fixed)");
  EXPECT_EQ(Names(graph).size(), 3u);
  EXPECT_EQ(transforms::testing::Run(graph, "x", Wave({4, 2, 3}), "out"),
            before);
}

TEST(FixReshapesTest, FlattensAllButTheFirstDimension) {
  GraphBuilder b = Flatten({-1, 2, 3}, -1);
  // Its shape follows from the first one's.
  b.Node("behind", "Shape", {"out"},
         FloatT({{"out_type", TypeAttr(tensorflow::DT_INT32)}}));
  b.Node("same", "Reshape", {"out", "behind"},
         FloatT({{"Tshape", TypeAttr(tensorflow::DT_INT32)}}));
  Graph graph = b.Build();
  const Tensor x = Wave({4, 2, 3});
  const std::vector<float> before =
      transforms::testing::Run(graph, "x", x, "same");
  EXPECT_EQ(MustApply(&graph, "fix_reshapes", "x", "same").nodes_changed, 2);
  EXPECT_EQ(Show(graph, "same"), "Reshape(out, out/fixed)");
  EXPECT_EQ(transforms::testing::Run(graph, "x", x, "same"), before);
}

TEST(FixReshapesTest, LeavesWhatDoesNotFollow) {
  for (const auto& [shape, last] :
       {std::pair(std::vector<int64_t>{-1, -1, 3}, -1),
        std::pair(std::vector<int64_t>{-1, 0}, 0)}) {
    Graph graph = Flatten(shape, last).Build();
    EXPECT_EQ(MustApply(&graph, "fix_reshapes", "x", "out").nodes_changed, 0);
  }
}

TEST(FixReshapesTest, SharesShapes) {
  GraphBuilder b = Flatten({-1, 2, 3});
  b.Node("again", "Reshape", {"x", "target"},
         FloatT({{"Tshape", TypeAttr(tensorflow::DT_INT32)}}));
  Graph graph = b.Build();
  EXPECT_EQ(MustApply(&graph, "fix_reshapes", "x", "out,again").nodes_changed,
            2);
  EXPECT_EQ(Show(graph, "again"), "Reshape(x, out/fixed)");
}

}  // namespace
}  // namespace optfarm::transforms::testing
