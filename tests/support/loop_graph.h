// A while loop around a layer, as recurrent nets have them.

#ifndef OPTFARM_TESTS_SUPPORT_LOOP_GRAPH_H_
#define OPTFARM_TESTS_SUPPORT_LOOP_GRAPH_H_

#include "tests/support/graph_builder.h"

namespace optfarm::testing {

// "out" is what comes of x <- Relu(x w + bias), three times, of "in", [2,3].
inline GraphBuilder Loop() {
  GraphBuilder b;
  const auto of = [&](tensorflow::DataType type, bool is_constant = false) {
    return Attrs{{"T", TypeAttr(type)},
                 {"frame_name", StringAttr("while")},
                 {"is_constant", BoolAttr(is_constant)}};
  };
  const Attrs ints = {{"T", TypeAttr(tensorflow::DT_INT32)}};
  b.Placeholder("in", {2, 3});
  b.Ints("none", {}, {0});
  b.Ints("most", {}, {3});
  b.Ints("one", {}, {1});
  b.Floats("w", {3, 3}, {1, -0.5f, 0.25f, 0, 2, -1, 0.5f, 0.75f, 1});
  b.Floats("bias", {3}, {0.5f, -0.25f, 0.1f});
  b.Node("i0", "Enter", {"none"}, of(tensorflow::DT_INT32));
  b.Node("x0", "Enter", {"in"}, of(tensorflow::DT_FLOAT));
  b.Node("limit", "Enter", {"most"}, of(tensorflow::DT_INT32, true));
  b.Node("by", "Enter", {"one"}, of(tensorflow::DT_INT32, true));
  b.Node("weights", "Enter", {"w"}, of(tensorflow::DT_FLOAT, true));
  b.Node("biases", "Enter", {"bias"}, of(tensorflow::DT_FLOAT, true));
  b.Node("i", "Merge", {"i0", "i3"},
         {{"T", TypeAttr(tensorflow::DT_INT32)}, {"N", IntAttr(2)}});
  b.Node("x", "Merge", {"x0", "x3"}, FloatT({{"N", IntAttr(2)}}));
  b.Node("less", "Less", {"i", "limit"}, ints);
  b.Node("goes_on", "LoopCond", {"less"});
  b.Node("i1", "Switch", {"i", "goes_on"}, ints);
  b.Node("x1", "Switch", {"x", "goes_on"}, FloatT());
  b.Node("i2", "Add", {"i1:1", "by"}, ints);
  b.Node("product", "MatMul", {"x1:1", "weights"},
         FloatT({{"transpose_a", BoolAttr(false)},
                 {"transpose_b", BoolAttr(false)}}));
  b.Node("sum", "BiasAdd", {"product", "biases"}, FloatT());
  b.Node("relu", "Relu", {"sum"}, FloatT());
  b.Node("i3", "NextIteration", {"i2"}, ints);
  b.Node("x3", "NextIteration", {"relu"}, FloatT());
  b.Node("out", "Exit", {"x1"}, FloatT());
  return b;
}

}  // namespace optfarm::testing

#endif  // OPTFARM_TESTS_SUPPORT_LOOP_GRAPH_H_
