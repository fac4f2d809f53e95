// remove_transposes: graphs as readers of formats with channels first make
// them, before and after, compared bit for bit.

#include <cstring>
#include <map>
#include <random>

#include "absl/strings/str_cat.h"
#include "engine/graph/model_interface.h"
#include "engine/transforms/layout/lay_out_model.h"
#include "engine/transforms/layout/minimum_cut.h"
#include "engine/transforms/layout/permutation.h"
#include "tests/engine/transforms/random_graphs.h"
#include "tests/engine/transforms/transform_testing.h"

namespace optfarm::transforms::testing {
namespace {

using Dims = std::vector<int64_t>;

const std::vector<int32_t> kToLast = {0, 2, 3, 1};
const std::vector<int32_t> kToFirst = {0, 3, 1, 2};

// Nodes of a model with channels first.
class ChannelsFirst {
 public:
  explicit ChannelsFirst(uint32_t seed) : dice(seed) {}

  std::string Name(const std::string& op) {
    return absl::StrCat(op, "_", count_++);
  }
  std::string Floats(const Dims& dims) {
    int64_t count = 1;
    for (int64_t dim : dims) count *= dim;
    std::vector<float> values;
    for (int64_t i = 0; i < count; ++i) values.push_back(dice.Number());
    const std::string name = Name("const");
    b.Floats(name, dims, values);
    return name;
  }
  std::string Ints(const Dims& dims, const std::vector<int32_t>& values) {
    const std::string name = Name("ints");
    b.Ints(name, dims, values);
    return name;
  }
  std::string List(const std::vector<int32_t>& values) {
    return Ints({static_cast<int64_t>(values.size())}, values);
  }
  Value Node(const std::string& op, const std::vector<std::string>& inputs,
             const Dims& shape, Attrs attrs = {}) {
    const std::string name = Name(op);
    b.Node(name, op, inputs, FloatT(std::move(attrs)));
    return {name, shape};
  }
  Value Transpose(const Value& x, const std::vector<int32_t>& order) {
    Dims shape;
    for (int32_t axis : order) shape.push_back(x.shape[axis]);
    return Node("Transpose", {x.name, List(order)}, shape,
                {{"Tperm", TypeAttr(tensorflow::DT_INT32)}});
  }
  Value Conv(const Value& x, int64_t channels) {
    const Value last = Transpose(x, kToLast);
    Value y = Node(
        "Conv2D", {last.name, Floats({3, 3, last.shape[3], channels})},
        {1, last.shape[1], last.shape[2], channels},
        {{"strides", IntsAttr({1, 1, 1, 1})}, {"padding", StringAttr("SAME")}});
    if (dice.OneIn(2)) {
      y = Node("BiasAdd", {y.name, Floats({channels})}, y.shape);
    }
    return Transpose(y, kToFirst);
  }
  Value Reduced(const std::string& op, const Value& x, bool keeps) {
    const Dims shape = keeps ? Dims{1, x.shape[1], 1, 1} : Dims{1, x.shape[1]};
    return Node(op, {x.name, List({2, 3})}, shape,
                {{"keep_dims", BoolAttr(keeps)}});
  }

  // A random op on a picture with channels first.
  Value Anything(const Value& x, const std::vector<Value>& others);

  GraphBuilder b;
  Dice dice;

 private:
  Value WithConstant(const Value& x);
  Value Cut(const Value& x);
  Value Padded(const Value& x);
  Value Squeezed(const Value& x);

  int count_ = 0;
};

Value ChannelsFirst::WithConstant(const Value& x) {
  const std::vector<Dims> shapes = {
      {},           {x.shape[1], 1, 1}, {1, x.shape[1], 1, 1},
      {x.shape[3]}, {x.shape[2], 1},    {1, 1, 1},
      x.shape};
  const std::string c = Floats(dice.Of(shapes));
  const std::string op = dice.Of<std::string>({"Add", "Mul", "Maximum", "Sub"});
  return dice.OneIn(2) ? Node(op, {x.name, c}, x.shape)
                       : Node(op, {c, x.name}, x.shape);
}

Value ChannelsFirst::Cut(const Value& x) {
  Dims shape = x.shape;
  if (dice.OneIn(2)) {
    std::vector<int32_t> begin(4, 0);
    std::vector<int32_t> size(x.shape.begin(), x.shape.end());
    const int axis = 1 + dice.Roll(3);
    if (shape[axis] > 2) {
      begin[axis] = 1;
      size[axis] = static_cast<int32_t>(shape[axis] -= 2);
    }
    return Node("Slice", {x.name, List(begin), List(size)}, shape,
                {{"Index", TypeAttr(tensorflow::DT_INT32)}});
  }
  // x[:, :, ::2] or x[:, 1:]
  const Attrs index = {{"Index", TypeAttr(tensorflow::DT_INT32)}};
  if (dice.OneIn(2) || shape[1] < 2) {
    shape[2] = (shape[2] + 1) / 2;
    Attrs attrs = index;
    attrs["begin_mask"] = IntAttr(7);
    attrs["end_mask"] = IntAttr(7);
    return Node("StridedSlice",
                {x.name, List({0, 0, 0}), List({0, 0, 0}), List({1, 1, 2})},
                shape, attrs);
  }
  --shape[1];
  Attrs attrs = index;
  attrs["begin_mask"] = IntAttr(1);
  attrs["end_mask"] = IntAttr(3);
  return Node("StridedSlice",
              {x.name, List({0, 1}), List({0, 0}), List({1, 1})}, shape, attrs);
}

Value ChannelsFirst::Padded(const Value& x) {
  const std::string paddings = Ints({4, 2}, {0, 0, 0, 1, 1, 0, 2, 1});
  const Dims shape = {1, x.shape[1] + 1, x.shape[2] + 1, x.shape[3] + 3};
  return Node("Pad", {x.name, paddings}, shape,
              {{"Tpaddings", TypeAttr(tensorflow::DT_INT32)}});
}

// A factor for each channel, by way of a vector.
Value ChannelsFirst::Squeezed(const Value& x) {
  const Value pooled = Reduced("Max", x, dice.OneIn(2));
  const int64_t channels = x.shape[1];
  Value row = pooled.rank() == 2 ? pooled
                                 : Node("Squeeze", {pooled.name}, {1, channels},
                                        {{"squeeze_dims", IntsAttr({2, 3})}});
  row = Node("MatMul", {row.name, Floats({channels, channels})}, row.shape);
  const auto c = static_cast<int32_t>(channels);
  const Value factors =
      dice.OneIn(2)
          ? Node("Reshape", {row.name, List({1, c, 1, 1})}, {1, channels, 1, 1})
          : Node("Reshape", {row.name, List({c, 1, 1})}, {channels, 1, 1});
  return Node("Mul", {x.name, factors.name}, x.shape);
}

Value ChannelsFirst::Anything(const Value& x,
                              const std::vector<Value>& others) {
  const Attrs split = {{"num_split", IntAttr(2)}};
  switch (dice.Roll(14)) {
    case 0:
    case 1:
    case 2:
      return Conv(x, 1 + dice.Roll(5));
    case 3:
      return Node(dice.Of<std::string>({"Relu", "Tanh", "Neg", "Identity"}),
                  {x.name}, x.shape);
    case 4:
      return WithConstant(x);
    case 5: {
      std::vector<Value> alike;
      for (const Value& y : others) {
        if (y.shape == x.shape) alike.push_back(y);
      }
      return Node(dice.Of<std::string>({"Add", "Mul"}),
                  {x.name, alike.empty() ? x.name : dice.Of(alike).name},
                  x.shape);
    }
    case 6: {
      std::vector<Value> fitting = {x};
      for (const Value& y : others) {
        if (y.shape[2] == x.shape[2] && y.shape[3] == x.shape[3]) {
          fitting.push_back(y);
        }
      }
      const Value y = dice.Of(fitting);
      Dims shape = x.shape;
      shape[1] += y.shape[1];
      return Node(
          "ConcatV2", {x.name, y.name, Ints({}, {dice.OneIn(2) ? 1 : -3})},
          shape, {{"N", IntAttr(2)}, {"Tidx", TypeAttr(tensorflow::DT_INT32)}});
    }
    case 7: {
      if (x.shape[1] % 2 != 0) return Node("Abs", {x.name}, x.shape);
      Value half = Node("Split", {Ints({}, {1}), x.name}, x.shape, split);
      half.shape[1] /= 2;
      half.name += dice.OneIn(2) ? ":1" : "";
      return half;
    }
    case 8:
      return Cut(x);
    case 9:
      return Padded(x);
    case 10: {
      // Over the channels, as a reader writes it.
      const Value last = Transpose(x, {0, 3, 2, 1});
      const std::string bias = Floats({last.shape[3]});
      return Transpose(Node("BiasAdd", {last.name, bias}, last.shape),
                       {0, 3, 2, 1});
    }
    case 11:
      return Squeezed(x);
    case 12: {
      const Value pooled = Reduced("Max", x, true);
      return Node("Sub", {x.name, pooled.name}, x.shape);
    }
    default: {
      const std::string name = Name("reverse");
      b.Node(name, "ReverseV2", {x.name, List({1, 3})},
             FloatT({{"Tidx", TypeAttr(tensorflow::DT_INT32)}}));
      return {name, x.shape};
    }
  }
}

// Its answers from the reference kernels, node by node, as bytes.
std::vector<std::string> Bytes(const Graph& graph, const std::string& outputs,
                               const Tensor& in) {
  runtime::SessionOptions options;
  options.fast_kernels = false;
  const auto session = runtime::Session::Create(
      graph, graph::ParseTensorNames("in").value(),
      graph::ParseTensorNames(outputs).value(), options);
  EXPECT_TRUE(session.ok()) << session.status();
  if (!session.ok()) return {};
  const auto answers = (*session)->Run({in});
  EXPECT_TRUE(answers.ok()) << answers.status();
  if (!answers.ok()) return {};
  std::vector<std::string> bytes;
  for (const Tensor& answer : *answers) {
    bytes.push_back(absl::StrCat(
        answer.shape().ToString(),
        absl::string_view(static_cast<const char*>(answer.raw()),
                          static_cast<size_t>(answer.TotalBytes()))));
  }
  return bytes;
}

int CountOf(const Graph& graph, const std::string& op) {
  int count = 0;
  for (graph::NodeId id : graph.Ids()) count += graph.node(id).op() == op;
  return count;
}

std::string Text(const Graph& graph) {
  std::string text;
  for (const std::string& name : Names(graph)) {
    absl::StrAppend(&text, "  ", name, " = ", Show(graph, name), "\n");
  }
  return text;
}

TEST(RemoveTransposesTest, RandomModelsGiveTheSameBits) {
  int before = 0;
  int after = 0;
  for (uint32_t seed = 0; seed < 400; ++seed) {
    ChannelsFirst maker(seed);
    const bool is_dynamic = maker.dice.OneIn(3);
    maker.b.Placeholder("in", {is_dynamic ? -1 : 1, 4, 6, 5});
    std::vector<Value> made = {{"in", {1, 4, 6, 5}}};
    const int steps = 2 + maker.dice.Roll(12);
    for (int i = 0; i < steps; ++i) {
      const Value x = maker.dice.OneIn(3) ? maker.dice.Of(made) : made.back();
      made.push_back(maker.Anything(x, made));
    }
    std::string outputs = made.back().name;
    if (maker.dice.OneIn(3)) {
      absl::StrAppend(&outputs, ",", made[1].name);
    }
    Graph graph = maker.b.Build();
    const Tensor in = Wave({1, 4, 6, 5});
    MustApply(&graph, "strip_unused_nodes", "in", outputs);
    const std::vector<std::string> expected = Bytes(graph, outputs, in);
    const std::string text = Text(graph);
    before += CountOf(graph, "Transpose");
    MustApply(&graph, "remove_transposes", "in", outputs);
    after += CountOf(graph, "Transpose");
    // Around inputs and outputs.
    EXPECT_LE(CountOf(graph, "Transpose"), 4) << text;
    ASSERT_EQ(Bytes(graph, outputs, in), expected) << "seed " << seed << "\n"
                                                   << text << "became\n"
                                                   << Text(graph);
  }
  EXPECT_LT(after * 3, before * 2);
}

// Anything may be behind anything, in any order of axes.
TEST(RemoveTransposesTest, RandomOrdersGiveTheSameBits) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    ChannelsFirst maker(seed);
    maker.b.Placeholder("in", {1, 4, 6, 5});
    std::vector<Value> made = {{"in", {1, 4, 6, 5}}};
    std::vector<int32_t> order = {0, 1, 2, 3};
    for (int i = 0; i < 12; ++i) {
      const Value x = made.back();
      std::shuffle(order.begin(), order.end(), std::mt19937(seed * 31 + i));
      switch (maker.dice.Roll(6)) {
        case 0:
        case 1:
          made.push_back(maker.Transpose(x, order));
          break;
        case 2: {
          // Axes merged and split again elsewhere.
          const Value flat = maker.Node(
              "Reshape",
              {x.name,
               maker.List({static_cast<int32_t>(x.shape[0]),
                           static_cast<int32_t>(x.shape[1] * x.shape[2]), -1})},
              {x.shape[0], x.shape[1] * x.shape[2], x.shape[3]});
          const Value turned = maker.Transpose(flat, {2, 0, 1});
          made.push_back(maker.Node(
              "Reshape",
              {turned.name, maker.List({static_cast<int32_t>(x.shape[3]),
                                        static_cast<int32_t>(x.shape[0]),
                                        static_cast<int32_t>(x.shape[1]), -1})},
              {x.shape[3], x.shape[0], x.shape[1], x.shape[2]}));
          break;
        }
        case 3:
          made.push_back(maker.Node(
              "Mul", {x.name, maker.Floats({x.shape[2], x.shape[3]})},
              x.shape));
          break;
        case 4: {
          const std::string axis = maker.Ints({}, {maker.dice.Roll(4)});
          made.push_back(maker.Node("Cumsum", {x.name, axis}, x.shape));
          break;
        }
        default:
          made.push_back(maker.Node("Softmax", {x.name}, x.shape));
      }
    }
    const std::string outputs = made.back().name;
    Graph graph = maker.b.Build();
    const Tensor in = Wave({1, 4, 6, 5});
    const std::vector<std::string> expected = Bytes(graph, outputs, in);
    const std::string text = Text(graph);
    const int before = CountOf(graph, "Transpose");
    MustApply(&graph, "remove_transposes", "in", outputs);
    EXPECT_LE(CountOf(graph, "Transpose"), before);
    ASSERT_EQ(Bytes(graph, outputs, in), expected) << "seed " << seed << "\n"
                                                   << text << "became\n"
                                                   << Text(graph);
  }
}

TEST(RemoveTransposesTest, LeavesOneAtEachEndOfATrunk) {
  ChannelsFirst maker(1);
  maker.b.Placeholder("in", {-1, 3, 8, 8});
  Value x = maker.Conv({"in", {1, 3, 8, 8}}, 4);
  for (int i = 0; i < 3; ++i) {
    const Value y = maker.Conv(maker.Node("Relu", {x.name}, x.shape), 4);
    x = maker.Node("Add", {x.name, y.name}, x.shape);
    x = maker.Node("Mul", {x.name, maker.Floats({4, 1, 1})}, x.shape);
  }
  maker.b.Node("out", "Identity", {x.name}, FloatT());
  Graph graph = maker.b.Build();
  MustApply(&graph, "remove_transposes", "in", "out");
  EXPECT_EQ(CountOf(graph, "Transpose"), 2) << Text(graph);
  // Vectors, as biases are in graphs with channels last.
  for (graph::NodeId id : graph.Ids()) {
    if (graph.node(id).op() != "Mul") continue;
    const graph::Node& factor = graph.node(graph.node(id).inputs()[1].node);
    ASSERT_EQ(factor.op(), "Const");
    EXPECT_EQ(ConstValue(factor)->shape().ToString(), "[4]");
  }
}

TEST(RemoveTransposesTest, PoolingToAVectorNeedsNone) {
  ChannelsFirst maker(2);
  maker.b.Placeholder("in", {1, 8, 8, 3});
  const Value x = maker.Node(
      "Conv2D", {"in", maker.Floats({3, 3, 3, 4})}, {1, 8, 8, 4},
      {{"strides", IntsAttr({1, 1, 1, 1})}, {"padding", StringAttr("SAME")}});
  const Value first = maker.Transpose(x, kToFirst);
  const Value pooled = maker.Reduced("Mean", first, true);
  maker.b.Node("out", "Reshape", {pooled.name, maker.List({-1, 4})}, FloatT());
  Graph graph = maker.b.Build();
  const std::vector<float> before =
      transforms::testing::Run(graph, "in", Wave({1, 8, 8, 3}), "out");
  MustApply(&graph, "remove_transposes", "in", "out");
  EXPECT_EQ(CountOf(graph, "Transpose"), 0) << Text(graph);
  // Sums of floats in another order.
  EXPECT_THAT(transforms::testing::Run(graph, "in", Wave({1, 8, 8, 3}), "out"),
              AllNear(before, 1e-5));
}

TEST(RemoveTransposesTest, SoftmaxOverChannelsJoinsTheTrunk) {
  ChannelsFirst maker(2);
  maker.b.Placeholder("in", {1, 3, 6, 5});
  const Value x = maker.Conv({"in", {1, 3, 6, 5}}, 4);
  const Value last = maker.Transpose(x, {0, 3, 2, 1});
  const Value y = maker.Node("Softmax", {last.name}, last.shape);
  const Value z = maker.Conv(maker.Transpose(y, {0, 3, 2, 1}), 2);
  maker.b.Node("out", "Identity", {z.name}, FloatT());
  Graph graph = maker.b.Build();
  const std::vector<float> before =
      transforms::testing::Run(graph, "in", Wave({1, 3, 6, 5}), "out");
  MustApply(&graph, "remove_transposes", "in", "out");
  EXPECT_EQ(CountOf(graph, "Transpose"), 2) << Text(graph);
  // Which function the last elements go through depends on where they lie.
  EXPECT_THAT(transforms::testing::Run(graph, "in", Wave({1, 3, 6, 5}), "out"),
              AllNear(before, 1e-6));
}

// As a range that is found at run time: the scalars have no order to take.
TEST(RemoveTransposesTest, ScalarsOfATrunkComeToAnEnd) {
  ChannelsFirst maker(7);
  maker.b.Placeholder("in", {1, 3, 6, 5});
  const Value x = maker.Conv({"in", {1, 3, 6, 5}}, 4);
  const Value y = maker.Node("Relu", {x.name}, x.shape);
  const Value most = maker.Node("Max", {y.name, maker.List({0, 1, 2, 3})}, {});
  const Value scale = maker.Node("Abs", {most.name}, {});
  const Value twice = maker.Node("Add", {scale.name, most.name}, {});
  const Value z = maker.Node("Mul", {y.name, twice.name}, y.shape);
  maker.b.Node("out", "Identity", {maker.Conv(z, 2).name}, FloatT());
  Graph graph = maker.b.Build();
  const Tensor in = Wave({1, 3, 6, 5});
  const auto expected = Bytes(graph, "out", in);
  MustApply(&graph, "remove_transposes", "in", "out");
  EXPECT_EQ(CountOf(graph, "Transpose"), 2) << Text(graph);
  EXPECT_EQ(Bytes(graph, "out", in), expected);
}

// Between the layer and its quantization they would keep integers apart, and
// move four times as much.
TEST(RemoveTransposesTest, TurnsQuantizedValuesRatherThanNumbers) {
  ChannelsFirst maker(8);
  maker.b.Placeholder("in", {1, 3, 60, 50});
  const Value x = maker.Conv({"in", {1, 3, 60, 50}}, 4);
  maker.b.Floats("scale", {}, {0.125f});
  *maker.b.mutable_def()->add_node() = MakeConst(
      "zero", Tensor::FromValues<int8_t>(runtime::Shape({}), {int8_t{3}}));
  Attrs types = {{"Q", TypeAttr(tensorflow::DT_INT8)}};
  maker.b.Node("numbers", "DequantizeLinear", {"values", "scale", "zero"},
               types);
  maker.b.Node("values", "QuantizeLinear", {x.name, "scale", "zero"},
               FloatT(types));
  Graph graph = maker.b.Build();
  const Tensor in = Wave({1, 3, 60, 50});
  const auto expected = Bytes(graph, "numbers", in);
  MustApply(&graph, "remove_transposes", "in", "numbers");
  EXPECT_EQ(CountOf(graph, "Transpose"), 2) << Text(graph);
  const graph::Node& values = graph.node(graph.Find("values"));
  EXPECT_NE(graph.node(values.inputs()[0].node).op(), "Transpose")
      << Text(graph);
  EXPECT_EQ(Bytes(graph, "numbers", in), expected);
}

TEST(RemoveTransposesTest, ShapesThatAreReadStayInTheirOrder) {
  ChannelsFirst maker(3);
  maker.b.Placeholder("in", {-1, 3, -1, -1});
  const Value x = maker.Conv({"in", {1, 3, 6, 5}}, 4);
  const Value y = maker.Node("Relu", {x.name}, x.shape);
  maker.b.Node("shape", "Shape", {y.name},
               FloatT({{"out_type", TypeAttr(tensorflow::DT_INT32)}}));
  const Value z = maker.Conv(y, 2);
  maker.b.Node("out", "Identity", {z.name}, FloatT());
  maker.b.Node("sizes", "Identity", {"shape"},
               {{"T", TypeAttr(tensorflow::DT_INT32)}});
  Graph graph = maker.b.Build();
  const Tensor in = Wave({2, 3, 6, 5});
  const auto expected = Bytes(graph, "out,sizes", in);
  MustApply(&graph, "remove_transposes", "in", "out,sizes");
  EXPECT_EQ(CountOf(graph, "Transpose"), 2) << Text(graph);
  EXPECT_EQ(Bytes(graph, "out,sizes", in), expected);
}

TEST(RemoveTransposesTest, WhatIsAskedForKeepsItsOrder) {
  ChannelsFirst maker(4);
  maker.b.Placeholder("in", {1, 3, 6, 5});
  const Value x = maker.Conv({"in", {1, 3, 6, 5}}, 4);
  const Value y = maker.Node("Relu", {x.name}, x.shape);
  const Value z = maker.Transpose(y, kToLast);
  const std::string outputs = absl::StrCat(y.name, ",", z.name);
  Graph graph = maker.b.Build();
  const Tensor in = Wave({1, 3, 6, 5});
  const auto expected = Bytes(graph, outputs, in);
  MustApply(&graph, "remove_transposes", "in", outputs);
  EXPECT_EQ(Bytes(graph, outputs, in), expected);
}

TEST(RemoveTransposesTest, ConstantsAreTurnedOnce) {
  ChannelsFirst maker(5);
  maker.b.Placeholder("in", {2, 3});
  maker.b.Floats("c", {3, 2}, {1, 2, 3, 4, 5, 6});
  const Value c = maker.Transpose({"c", {3, 2}}, {1, 0});
  maker.b.Node("out", "Add", {"in", c.name}, FloatT());
  Graph graph = maker.b.Build();
  MustApply(&graph, "remove_transposes", "in", "out");
  EXPECT_EQ(CountOf(graph, "Transpose"), 0);
  EXPECT_EQ(FloatsOf(graph, "c/transposed"),
            (std::vector<float>{1, 3, 5, 2, 4, 6}));
  EXPECT_EQ(Show(graph, "c"), "none");
}

TEST(RemoveTransposesTest, LeavesOtherGraphsAlone) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    std::vector<std::string> outputs;
    Graph graph = GraphMaker(seed).Make(&outputs).Build();
    const std::string before = Text(graph);
    MustApply(&graph, "remove_transposes", "in", absl::StrJoin(outputs, ","));
    EXPECT_EQ(Text(graph), before);
  }
}

// A declared input, a trunk, a declared output.
Graph DeclaredModel(absl::string_view format) {
  ChannelsFirst maker(6);
  maker.b.Placeholder("in", {1, 3, 6, 5});
  const Value x = maker.Conv({"in", {1, 3, 6, 5}}, 4);
  maker.b.Node("middle", "Relu", {x.name}, FloatT());
  const Value y = maker.Conv({"middle", x.shape}, 2);
  maker.b.Node("out", "Identity", {y.name}, FloatT());
  Graph graph = maker.b.Build();
  if (!format.empty()) {
    const auto def = [&](const char* name) {
      return graph.mutable_node(*graph.Get(name))->mutable_def();
    };
    graph::DeclareInput(format, 0, "in", {}, def("in"));
    graph::DeclareOutput(format, 0, "out", {}, def("out"));
  }
  return graph;
}

TEST(LayOutModelTest, TakesWhatTheFileDeclares) {
  Graph graph = DeclaredModel("onnx");
  const Tensor in = Wave({1, 3, 6, 5});
  const auto expected = Bytes(graph, "out", in);
  OPTFARM_ASSERT_OK(LayOutModel({}, &graph));
  EXPECT_EQ(CountTransposes(graph), 2) << Text(graph);
  EXPECT_EQ(Bytes(graph, "out", in), expected);
}

TEST(LayOutModelTest, WhatAUserNamesKeepsItsOrder) {
  Graph graph = DeclaredModel("onnx");
  const Tensor in = Wave({1, 3, 6, 5});
  const auto expected = Bytes(graph, "out,middle", in);
  OPTFARM_ASSERT_OK(LayOutModel(
      std::vector<std::string>{"middle", "no such tensor"}, &graph));
  EXPECT_EQ(Bytes(graph, "out,middle", in), expected);
}

TEST(LayOutModelTest, LeavesTensorFlowsGraphsAlone) {
  Graph graph = DeclaredModel("");
  const std::string before = Text(graph);
  OPTFARM_ASSERT_OK(LayOutModel({}, &graph));
  EXPECT_EQ(Text(graph), before);
}

TEST(MinimumCutTest, FindsTheBestOfAllChoices) {
  std::mt19937 random(7);
  const auto roll = [&](int sides) {
    return static_cast<int>(random() % sides);
  };
  for (int run = 0; run < 200; ++run) {
    const int count = 1 + roll(8);
    std::vector<std::pair<int, int>> single(count);
    struct Pair {
      int a, b, neither, only_b, only_a, both;
    };
    std::vector<Pair> pairs;
    MinimumCut cut(count);
    for (int v = 0; v < count; ++v) {
      single[v] = {roll(20), roll(20)};
      cut.AddCost(v, single[v].first, single[v].second);
    }
    for (int i = 0; i < 2 * count && count > 1; ++i) {
      Pair p = {roll(count), roll(count), roll(9),
                9 + roll(9), 9 + roll(9), roll(9)};
      if (p.a == p.b) continue;
      pairs.push_back(p);
      cut.AddCosts(p.a, p.b, p.neither, p.only_b, p.only_a, p.both);
    }
    const auto cost_of = [&](const std::vector<bool>& choice) {
      int cost = 0;
      for (int v = 0; v < count; ++v) {
        cost += choice[v] ? single[v].second : single[v].first;
      }
      for (const Pair& p : pairs) {
        cost += choice[p.a] ? (choice[p.b] ? p.both : p.only_a)
                            : (choice[p.b] ? p.only_b : p.neither);
      }
      return cost;
    };
    int least = 1 << 30;
    for (int bits = 0; bits < 1 << count; ++bits) {
      std::vector<bool> choice;
      for (int v = 0; v < count; ++v) choice.push_back(((bits >> v) & 1) != 0);
      least = std::min(least, cost_of(choice));
    }
    EXPECT_EQ(cost_of(cut.Solve()), least);
  }
}

TEST(PermutationTest, ComposesAndDropsAxes) {
  EXPECT_EQ(Composed({0, 2, 3, 1}, {0, 3, 1, 2}), IdentityOf(4));
  EXPECT_EQ(Inverse({0, 2, 3, 1}), (Permutation{0, 3, 1, 2}));
  EXPECT_EQ(Without({0, 2, 3, 1}, {false, false, true, true}), IdentityOf(2));
  EXPECT_EQ(Without({0, 2, 3, 1}, {false, true, false, false}), IdentityOf(3));
  const graph::PartialShape shape({-1, 1, 1, 8});
  EXPECT_TRUE(KeepsElements(shape, {0, 3, 1, 2}));
  EXPECT_FALSE(KeepsElements(shape, {3, 0, 1, 2}));
  EXPECT_FALSE(KeepsElements(graph::PartialShape({2, 3}), {1, 0}));
}

}  // namespace
}  // namespace optfarm::transforms::testing
