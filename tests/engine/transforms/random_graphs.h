// Small random graphs for property tests: convolutions with what stands around
// them in real models, constants that are shared or have to be computed, ops
// with several outputs, control edges. A graph follows from its number alone.

#ifndef OPTFARM_TESTS_ENGINE_TRANSFORMS_RANDOM_GRAPHS_H_
#define OPTFARM_TESTS_ENGINE_TRANSFORMS_RANDOM_GRAPHS_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/support/graph_builder.h"

namespace optfarm::transforms::testing {

using namespace optfarm::testing;  // NOLINT: the tests' own vocabulary

// Chooses; the same on every machine.
class Dice {
 public:
  explicit Dice(uint32_t seed) : engine_(seed) {}
  // 0 to sides - 1.
  int Roll(int sides) { return static_cast<int>(engine_() % sides); }
  bool OneIn(int times) { return Roll(times) == 0; }
  // Between -1 and 1.
  float Number() { return static_cast<float>(Roll(2001) - 1000) / 1000.0f; }
  template <typename T>
  const T& Of(const std::vector<T>& choices) {
    return choices[Roll(static_cast<int>(choices.size()))];
  }

 private:
  std::mt19937 engine_;
};

// A float tensor of the graph.
struct Value {
  std::string name;
  std::vector<int64_t> shape;

  int rank() const { return static_cast<int>(shape.size()); }
  int64_t channels() const { return shape.back(); }
};

class GraphMaker {
 public:
  // `has_groups`: some convolutions have groups.
  explicit GraphMaker(uint32_t seed, bool has_groups = false)
      : dice_(seed), has_groups_(has_groups) {
    b_.Placeholder("in", {1, 6, 5, 4});
    pictures_.push_back({"in", {1, 6, 5, 4}});
  }

  // The graph, whose input is "in", a picture [1,6,5,4]; `outputs` are some of
  // its tensors.
  GraphBuilder Make(std::vector<std::string>* outputs) {
    const int steps = 3 + dice_.Roll(12);
    for (int i = 0; i < steps; ++i) AddSomething();
    *outputs = {Last(pictures_).name};
    if (dice_.OneIn(3)) outputs->push_back(dice_.Of(pictures_).name);
    if (!rows_.empty()) outputs->push_back(Last(rows_).name);
    // What is fed is not asked for, and nothing twice.
    std::erase(*outputs, "in");
    std::sort(outputs->begin(), outputs->end());
    outputs->erase(std::unique(outputs->begin(), outputs->end()),
                   outputs->end());
    if (outputs->empty()) {
      outputs->push_back(Unary("Relu", pictures_[0]).name);
    }
    return b_;
  }

 private:
  static const Value& Last(const std::vector<Value>& values) {
    return values.back();
  }

  std::string NewName(const std::string& op) {
    return absl::StrCat(dice_.OneIn(2) ? "scope/" : "", op, count_++);
  }

  std::vector<float> Numbers(int64_t count, float base = 0, float scale = 1) {
    std::vector<float> numbers;
    for (int64_t i = 0; i < count; ++i) {
      numbers.push_back(base + scale * dice_.Number());
    }
    return numbers;
  }

  // A constant, sometimes one that another node reads already, sometimes one
  // that has to be computed.
  std::string Constant(const std::vector<int64_t>& shape, float base = 0,
                       float scale = 1) {
    const std::string kind = absl::StrCat(absl::StrJoin(shape, ","), "/", base);
    auto& known = constants_[kind];
    if (!known.empty() && dice_.OneIn(4)) return dice_.Of(known);
    int64_t count = 1;
    for (int64_t size : shape) count *= size;
    std::string name = NewName("const");
    b_.Floats(name, shape, Numbers(count, base, scale));
    if (dice_.OneIn(5)) {
      const std::string op = dice_.OneIn(2) ? "Identity" : "Abs";
      const std::string computed = NewName("computed");
      b_.Node(computed, op, {name}, FloatT());
      name = computed;
    }
    known.push_back(name);
    return name;
  }

  std::string Integers(const std::vector<int64_t>& shape,
                       const std::vector<int32_t>& values) {
    const std::string name = NewName("ints");
    b_.Ints(name, shape, values);
    return name;
  }

  // Control edges, devices and such, which may stand anywhere.
  Value Finish(const std::string& name, std::vector<int64_t> shape) {
    tensorflow::NodeDef* node = &*b_.mutable_def()->mutable_node()->rbegin();
    if (dice_.OneIn(10)) {
      const std::string other = dice_.Of(pictures_).name;
      node->add_input(absl::StrCat(
          "^",
          std::string(absl::string_view(other).substr(0, other.find(':')))));
    }
    if (dice_.OneIn(12)) node->set_device("/cpu:0");
    if (dice_.OneIn(12)) (*node->mutable_attr())["_note"] = IntAttr(1);
    return {name, std::move(shape)};
  }

  Value Unary(const std::string& op, const Value& x, const Attrs& attrs = {}) {
    const std::string name = NewName(op);
    b_.Node(name, op, {x.name}, FloatT(attrs));
    return Finish(name, x.shape);
  }

  const Value& Picture() {
    // Mostly deep, sometimes wide.
    return dice_.OneIn(3) ? dice_.Of(pictures_) : Last(pictures_);
  }

  std::string Padding() { return dice_.OneIn(2) ? "SAME" : "VALID"; }

  static int64_t OutSize(int64_t in, int64_t window, int64_t stride,
                         const std::string& padding) {
    return padding == "SAME" ? (in + stride - 1) / stride
                             : (in - window) / stride + 1;
  }

  std::vector<int64_t> Strided(const Value& x, int64_t window, int64_t stride,
                               const std::string& padding, int64_t channels) {
    return {x.shape[0], OutSize(x.shape[1], window, stride, padding),
            OutSize(x.shape[2], window, stride, padding), channels};
  }

  Value Convolution(const Value& x) {
    const bool is_depthwise = dice_.OneIn(4);
    const int64_t window = dice_.OneIn(2) ? 1 : 3;
    const int64_t stride = 1 + dice_.Roll(2);
    std::string padding = Padding();
    if (x.shape[1] < window || x.shape[2] < window) padding = "SAME";
    // Groups read a part of the channels each.
    const int64_t groups =
        has_groups_ && !is_depthwise && x.channels() % 2 == 0 && dice_.OneIn(4)
            ? 2
            : 1;
    const int64_t many = groups * (1 + dice_.Roll(3));
    const std::string filter = Constant(
        {window, window, x.channels() / groups, is_depthwise ? 1 : many});
    const std::string name = NewName("conv");
    b_.Node(name, is_depthwise ? "DepthwiseConv2dNative" : "Conv2D",
            {x.name, filter},
            FloatT({{"strides", IntsAttr({1, stride, stride, 1})},
                    {"padding", StringAttr(padding)}}));
    return Finish(name, Strided(x, window, stride, padding,
                                is_depthwise ? x.channels() : many));
  }

  Value BatchNorm(const Value& x) {
    const int64_t c = x.channels();
    const std::string mean = Constant({c});
    const std::string variance = Constant({c}, 1.5f);
    const std::string beta = Constant({c});
    const std::string gamma = Constant({c}, 2);
    const std::string name = NewName("norm");
    if (dice_.OneIn(3)) {
      b_.Node(
          name, "BatchNormWithGlobalNormalization",
          {x.name, mean, variance, beta, gamma},
          FloatT({{"variance_epsilon", FloatAttr(0.001f)},
                  {"scale_after_normalization", BoolAttr(dice_.OneIn(2))}}));
    } else {
      const std::string op =
          dice_.OneIn(2) ? "FusedBatchNorm" : "FusedBatchNormV3";
      Attrs attrs = FloatT(
          {{"epsilon", FloatAttr(0.001f)}, {"is_training", BoolAttr(false)}});
      if (op == "FusedBatchNormV3") {
        attrs["U"] = TypeAttr(tensorflow::DT_FLOAT);
      }
      b_.Node(name, op, {x.name, gamma, beta, mean, variance}, attrs);
    }
    return Finish(name, x.shape);
  }

  Value WithConstant(const Value& x) {
    const std::string op =
        dice_.Of<std::string>({"Mul", "Add", "Sub", "AddV2", "BiasAdd"});
    const bool is_scalar = op != "BiasAdd" && dice_.OneIn(4);
    const std::string c =
        Constant(is_scalar ? std::vector<int64_t>{}
                           : std::vector<int64_t>{x.channels()});
    const bool is_turned = op != "BiasAdd" && dice_.OneIn(4);
    const std::string name = NewName(op);
    b_.Node(name, op,
            is_turned ? std::vector<std::string>{c, x.name}
                      : std::vector<std::string>{x.name, c},
            FloatT());
    return Finish(name, x.shape);
  }

  Value Scaled(const Value& x) {
    const std::string c = Constant({x.channels()}, 0.5f);
    const std::string name = NewName("scale");
    b_.Node(name, "Mul", {x.name, c}, FloatT());
    return Finish(name, x.shape);
  }

  Value WithOther(const Value& x) {
    std::vector<Value> same;
    for (const Value& other : pictures_) {
      if (other.shape == x.shape) same.push_back(other);
    }
    const std::string op = dice_.Of<std::string>({"Add", "Mul", "Maximum"});
    const std::string name = NewName(op);
    b_.Node(name, op, {x.name, dice_.Of(same).name}, FloatT());
    return Finish(name, x.shape);
  }

  Value Concatenation(const Value& x) {
    std::vector<Value> fitting;
    for (const Value& other : pictures_) {
      if (other.shape[1] == x.shape[1] && other.shape[2] == x.shape[2]) {
        fitting.push_back(other);
      }
    }
    const Value& y = dice_.Of(fitting);
    const std::string axis = Integers({}, {dice_.OneIn(2) ? 3 : -1});
    const std::string name = NewName("concat");
    b_.Node(
        name, "ConcatV2", {x.name, y.name, axis},
        FloatT({{"N", IntAttr(2)}, {"Tidx", TypeAttr(tensorflow::DT_INT32)}}));
    return Finish(name,
                  {1, x.shape[1], x.shape[2], x.channels() + y.channels()});
  }

  Value Pool(const Value& x) {
    const std::string op = dice_.OneIn(2) ? "MaxPool" : "AvgPool";
    const std::string name = NewName(op);
    b_.Node(name, op, {x.name},
            FloatT({{"ksize", IntsAttr({1, 2, 2, 1})},
                    {"strides", IntsAttr({1, 1, 1, 1})},
                    {"padding", StringAttr("SAME")}}));
    return Finish(name, x.shape);
  }

  Value Mirrored(const Value& x) {
    if (x.shape[1] < 3 || x.shape[2] < 3) return Unary("Relu", x);
    const std::string paddings = Integers({4, 2}, {0, 0, 1, 1, 2, 0, 0, 0});
    const std::string name = NewName("mirror");
    b_.Node(name, "MirrorPad", {x.name, paddings},
            FloatT({{"mode",
                     StringAttr(dice_.OneIn(2) ? "REFLECT" : "SYMMETRIC")}}));
    return Finish(name, {1, x.shape[1] + 2, x.shape[2] + 2, x.channels()});
  }

  Value Resized(const Value& x) {
    const std::string size = Integers({2}, {7, 6});
    const std::string name = NewName("resize");
    b_.Node(name, "ResizeBilinear", {x.name, size},
            FloatT({{"align_corners", BoolAttr(dice_.OneIn(2))}}));
    return Finish(name, {1, 7, 6, x.channels()});
  }

  // Two halves of the channels, of which the second goes on.
  Value SecondHalf(const Value& x) {
    if (x.channels() % 2 != 0) return Unary("Neg", x);
    const std::string axis = Integers({}, {3});
    const std::string name = NewName("split");
    b_.Node(name, "Split", {axis, x.name}, FloatT({{"num_split", IntAttr(2)}}));
    const Value half =
        Finish(name, {1, x.shape[1], x.shape[2], x.channels() / 2});
    pictures_.push_back(half);
    return {half.name + ":1", half.shape};
  }

  // A dilated convolution as three ops.
  Value Atrous(const Value& x) {
    const bool is_same = dice_.OneIn(2);
    const auto height = static_cast<int32_t>(x.shape[1]);
    const auto width = static_cast<int32_t>(x.shape[2]);
    const int32_t before = is_same ? 2 : 0;
    if (!is_same && (height < 5 || width < 5)) return Unary("Relu", x);
    // Padded to a multiple of 2.
    const int32_t more_y = (height + 2 * before) % 2;
    const int32_t more_x = (width + 2 * before) % 2;
    const std::string block = Integers({2}, {2, 2});
    const std::string paddings =
        Integers({2, 2}, {before, before + more_y, before, before + more_x});
    const std::string crops = Integers({2, 2}, {0, more_y, 0, more_x});
    const std::string filter = Constant({3, 3, x.channels(), 2});
    const std::string name = NewName("atrous");
    b_.Node(name + "/batch", "SpaceToBatchND", {x.name, block, paddings},
            FloatT());
    b_.Node(name + "/conv", "Conv2D", {name + "/batch", filter},
            FloatT({{"strides", IntsAttr({1, 1, 1, 1})},
                    {"padding", StringAttr("VALID")}}));
    b_.Node(name, "BatchToSpaceND", {name + "/conv", block, crops}, FloatT());
    const int64_t less = is_same ? 0 : 4;
    return Finish(name, {1, height - less, width - less, 2});
  }

  // A shape that is computed in the graph.
  void Flattened(const Value& x) {
    const int64_t size = x.shape[1] * x.shape[2] * x.shape[3];
    std::string shape;
    if (dice_.OneIn(2)) {
      const std::string of = NewName("shape");
      b_.Node(of, "Shape", {x.name}, FloatT());
      const std::string begin = Integers({1}, {0});
      const std::string end = Integers({1}, {1});
      const std::string batch = NewName("batch");
      b_.Node(batch, "Slice", {of, begin, end},
              {{"T", TypeAttr(tensorflow::DT_INT32)},
               {"Index", TypeAttr(tensorflow::DT_INT32)}});
      const std::string rest = Integers({1}, {-1});
      const std::string axis = Integers({}, {0});
      shape = NewName("pack");
      b_.Node(shape, "ConcatV2", {batch, rest, axis},
              {{"T", TypeAttr(tensorflow::DT_INT32)},
               {"N", IntAttr(2)},
               {"Tidx", TypeAttr(tensorflow::DT_INT32)}});
    } else {
      const int32_t all = static_cast<int32_t>(size);
      shape = Integers({2}, {1, dice_.OneIn(2) ? all : -1});
    }
    const bool is_copy = dice_.OneIn(3);
    if (is_copy) {
      const std::string wide = NewName("wide");
      b_.Node(wide, "Cast", {shape},
              {{"SrcT", TypeAttr(tensorflow::DT_INT32)},
               {"DstT", TypeAttr(tensorflow::DT_INT64)}});
      shape = wide;
    }
    const std::string name = NewName("flat");
    b_.Node(name, is_copy ? "ReshapeCopy" : "Reshape", {x.name, shape},
            FloatT());
    rows_.push_back(Finish(name, {1, size}));
  }

  void MatrixProduct(const Value& x) {
    const bool is_turned = dice_.OneIn(3);
    const int64_t out = 1 + dice_.Roll(4);
    const std::string w =
        Constant(is_turned ? std::vector<int64_t>{out, x.channels()}
                           : std::vector<int64_t>{x.channels(), out});
    const std::string name = NewName("matmul");
    b_.Node(name, "MatMul", {x.name, w},
            FloatT({{"transpose_b", BoolAttr(is_turned)}}));
    rows_.push_back(Finish(name, {1, out}));
  }

  // A constant that comes about where `after` does.
  std::string ConstantAfter(const std::string& after,
                            const std::vector<int64_t>& shape) {
    const std::string name = Constant(shape, 100 + count_);
    tensorflow::NodeDef* node = &*b_.mutable_def()->mutable_node()->rbegin();
    if (node->op() == "Const") node->add_input("^" + after);
    return name;
  }

  // tf.cond: one of two things is done with the picture, by its values or by a
  // constant.
  Value Branched(const Value& x) {
    const std::string base = NewName("cond");
    const auto below = [&](const std::string& name) {
      return base + "/" + name;
    };
    const Attrs boolean = {{"T", TypeAttr(tensorflow::DT_BOOL)}};
    if (dice_.OneIn(2)) {
      const std::string axes = Integers({4}, {0, 1, 2, 3});
      b_.Node(below("max"), "Max", {x.name, axes}, FloatT());
      const std::string limit = Constant({}, 0.2f);
      b_.Node(below("pred"), "Less", {below("max"), limit}, FloatT());
    } else {
      b_.Node(below("pred"), "Less", {Constant({}), Constant({}, 0.2f)},
              FloatT());
    }
    b_.Node(below("pivot"), "Switch", {below("pred"), below("pred")}, boolean);
    b_.Node(below("switch_f"), "Identity", {below("pivot")}, boolean);
    b_.Node(below("switch_t"), "Identity", {below("pivot:1")}, boolean);
    b_.Node(below("pred_id"), "Identity", {below("pred")}, boolean);
    b_.Node(below("Switch"), "Switch", {x.name, below("pred_id")}, FloatT());
    const std::string c = ConstantAfter(below("switch_t"), {x.channels()});
    b_.Node(below("then"), dice_.OneIn(2) ? "Mul" : "Add",
            {below("Switch:1"), c}, FloatT());
    b_.Node(below("else"), dice_.OneIn(2) ? "Relu" : "Identity",
            {below("Switch")}, FloatT());
    const std::string name = below("Merge");
    b_.Node(name, "Merge", {below("else"), below("then")},
            FloatT({{"N", IntAttr(2)}}));
    return {name, x.shape};
  }

  // tf.while_loop: something is done with the picture up to three times.
  Value Looped(const Value& x) {
    const std::string base = NewName("while");
    const auto below = [&](const std::string& name) {
      return base + "/" + name;
    };
    const auto of = [&](tensorflow::DataType type, Attrs attrs = {}) {
      attrs["T"] = TypeAttr(type);
      return attrs;
    };
    const auto kInt = tensorflow::DT_INT32;
    const auto kFloat = tensorflow::DT_FLOAT;
    const tensorflow::AttrValue frame = StringAttr(base);
    b_.Node(below("Enter"), "Enter", {Integers({}, {0})},
            of(kInt, {{"frame_name", frame}}));
    b_.Node(below("Enter_1"), "Enter", {x.name},
            of(kFloat, {{"frame_name", frame}}));
    b_.Node(below("Merge"), "Merge", {below("Enter"), below("NextIteration")},
            of(kInt, {{"N", IntAttr(2)}}));
    b_.Node(below("Merge_1"), "Merge",
            {below("Enter_1"), below("NextIteration_1")},
            of(kFloat, {{"N", IntAttr(2)}}));
    const std::string limit = Integers({}, {dice_.Roll(4)});
    b_.mutable_def()->mutable_node()->rbegin()->add_input("^" + below("Merge"));
    b_.Node(below("Less"), "Less", {below("Merge"), limit}, of(kInt));
    b_.Node(below("LoopCond"), "LoopCond", {below("Less")});
    b_.Node(below("Switch"), "Switch", {below("Merge"), below("LoopCond")},
            of(kInt));
    b_.Node(below("Switch_1"), "Switch", {below("Merge_1"), below("LoopCond")},
            of(kFloat));
    b_.Node(below("Identity"), "Identity", {below("Switch:1")}, of(kInt));
    b_.Node(below("Identity_1"), "Identity", {below("Switch_1:1")}, of(kFloat));
    const std::string one = Integers({}, {1});
    b_.mutable_def()->mutable_node()->rbegin()->add_input("^" +
                                                          below("Identity"));
    b_.Node(below("add"), "Add", {below("Identity"), one}, of(kInt));
    const std::string c = ConstantAfter(below("Identity"), {x.channels()});
    b_.Node(below("body"), dice_.OneIn(2) ? "Mul" : "Add",
            {below("Identity_1"), c}, FloatT());
    b_.Node(below("NextIteration"), "NextIteration", {below("add")}, of(kInt));
    b_.Node(below("NextIteration_1"), "NextIteration", {below("body")},
            of(kFloat));
    const std::string name = below("Exit");
    b_.Node(name, "Exit", {below("Switch_1")}, of(kFloat));
    return {name, x.shape};
  }

  // What is found behind one another, so that patterns come about.
  void AddChain() {
    const Value x = Picture();
    switch (dice_.Roll(5)) {
      case 0:
        pictures_.push_back(Convolution(x));
        return pictures_.push_back(BatchNorm(Last(pictures_)));
      case 1:
        pictures_.push_back(Convolution(x));
        return pictures_.push_back(Scaled(Last(pictures_)));
      case 2:
        pictures_.push_back(Mirrored(x));
        return pictures_.push_back(Convolution(Last(pictures_)));
      case 3:
        pictures_.push_back(Resized(x));
        if (dice_.OneIn(2)) pictures_.push_back(Mirrored(Last(pictures_)));
        return pictures_.push_back(Convolution(Last(pictures_)));
      default:
        pictures_.push_back(Atrous(x));
        return pictures_.push_back(BatchNorm(Last(pictures_)));
    }
  }

  void AddSomething() {
    if (dice_.OneIn(4)) return AddChain();
    if (!rows_.empty() && dice_.OneIn(4)) {
      const Value x = Last(rows_);
      if (dice_.OneIn(2)) {
        MatrixProduct(x);
      } else {
        rows_.push_back(WithConstant(x));
      }
      return;
    }
    const Value x = Picture();
    switch (dice_.Roll(18)) {
      case 0:
      case 1:
      case 2:
        return pictures_.push_back(Convolution(x));
      case 3:
      case 4:
        return pictures_.push_back(BatchNorm(x));
      case 5:
      case 6:
        return pictures_.push_back(WithConstant(x));
      case 7:
        return pictures_.push_back(
            Unary(dice_.Of<std::string>({"Relu", "Relu6", "Tanh", "Neg"}), x));
      case 8:
        return pictures_.push_back(Unary("Identity", x));
      case 9:
        return pictures_.push_back(
            Unary("CheckNumerics", x, {{"message", StringAttr("here")}}));
      case 10:
        return pictures_.push_back(WithOther(x));
      case 11:
        return pictures_.push_back(Concatenation(x));
      case 12:
        return pictures_.push_back(dice_.OneIn(2) ? Pool(x) : Mirrored(x));
      case 13:
        return pictures_.push_back(dice_.OneIn(2) ? Resized(x) : SecondHalf(x));
      case 14:
        return pictures_.push_back(Atrous(x));
      case 15:
        return pictures_.push_back(Branched(x));
      case 16:
        return pictures_.push_back(Looped(x));
      default:
        return Flattened(x);
    }
  }

  Dice dice_;
  const bool has_groups_;
  GraphBuilder b_;
  int count_ = 0;
  std::vector<Value> pictures_;
  std::vector<Value> rows_;
  std::map<std::string, std::vector<std::string>> constants_;
};

}  // namespace optfarm::transforms::testing

#endif  // OPTFARM_TESTS_ENGINE_TRANSFORMS_RANDOM_GRAPHS_H_
