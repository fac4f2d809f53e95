// If in ONNX files that we write: the nodes of a branch stand in it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/export/convert_file.h"
#include "onnx/onnx.pb.h"
#include "tests/engine/formats/onnx/onnx_model.h"
#include "tests/engine/runtime/run_op.h"
#include "tests/support/status_matchers.h"

namespace optfarm::exporting {
namespace {

using formats::FloatValue;
using runtime::Floats;
using runtime::Tensor;
using runtime::ValuesOf;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

std::string Flag(const std::string& name) {
  return absl::StrCat("input { name: '", name,
                      "' type { tensor_type { elem_type: 9 shape {} } } } ");
}
std::string Node(const std::string& op, const std::string& ends) {
  return absl::StrCat("node { op_type: '", op, "' ", ends, " } ");
}
std::string Branch(const std::string& name, const std::string& graph) {
  return absl::StrCat("attribute { name: '", name, "' type: GRAPH g { ", graph,
                      " } } ");
}
std::string Outputs(const std::vector<std::string>& names,
                    int64_t columns = -1) {
  std::string text;
  for (const std::string& name : names) {
    absl::StrAppend(&text, "output { ", FloatValue(name, {2, columns}), " } ");
  }
  return text;
}

// e = exp(x), in both branches; p = e + |x| with c, else -e with d, else
// rectified x; q = e itself with c, else x.
std::string NestedBranches(int64_t columns) {
  const std::string inner = absl::StrCat(
      "input: 'd' output: 'p2' ",
      Branch("then_branch",
             Outputs({"minus"}) + Node("Neg", "input: 'e' output: 'minus'")),
      Branch("else_branch",
             Outputs({"rectified"}) +
                 Node("Relu", "input: 'x' output: 'rectified'")));
  const std::string outer = absl::StrCat(
      "input: 'c' output: 'p' output: 'q' ",
      Branch("then_branch", Outputs({"p1", "q1"}) +
                                Node("Abs", "input: 'x' output: 'size'") +
                                Node("Add",
                                     "input: 'e' input: 'size' "
                                     "output: 'p1'") +
                                Node("Identity", "input: 'e' output: 'q1'")),
      Branch("else_branch", Outputs({"p2", "q2"}) + Node("If", inner) +
                                Node("Identity", "input: 'x' output: 'q2'")));
  return formats::OnnxBytes(absl::StrCat(
      Flag("c"), Flag("d"), "input { ", FloatValue("x", {2, columns}), " } ",
      Outputs({"p", "q"}, columns), Node("Exp", "input: 'x' output: 'e'"),
      Node("If", outer)));
}

std::vector<std::string> OpsOf(const onnx::GraphProto& graph) {
  std::vector<std::string> ops;
  for (const auto& node : graph.node()) ops.push_back(node.op_type());
  return ops;
}

const onnx::NodeProto* FindIf(const onnx::GraphProto& graph) {
  for (const auto& node : graph.node()) {
    if (node.op_type() == "If") return &node;
  }
  return nullptr;
}

const onnx::GraphProto& BranchOf(const onnx::NodeProto& node,
                                 const std::string& name) {
  for (const auto& attribute : node.attribute()) {
    if (attribute.name() == name) return attribute.g();
  }
  ADD_FAILURE() << "no " << name;
  return onnx::GraphProto::default_instance();
}

ConvertOptions ToOnnx() {
  ConvertOptions options;
  options.written.format = ModelFormat::kOnnx;
  return options;
}

absl::StatusOr<ConvertedModel> Rewritten(const std::string& bytes) {
  auto graph = formats::ReadOnnxGraph(bytes);
  if (!graph.ok()) return graph.status();
  return ConvertGraph(*graph, ToOnnx());
}

TEST(OnnxBranchesTest, NodesStandInTheBranchThatAloneNeedsThem) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const ConvertedModel made,
                               Rewritten(NestedBranches(-1)));
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(made.bytes));
  EXPECT_THAT(OpsOf(model.graph()), ElementsAre("Exp", "If"));
  const onnx::NodeProto* outer = FindIf(model.graph());
  ASSERT_NE(outer, nullptr);
  ASSERT_EQ(outer->output_size(), 2);
  EXPECT_THAT(OpsOf(BranchOf(*outer, "then_branch")),
              AllOf(IsSupersetOf({"Abs", "Add"}), Not(Contains("Neg"))));
  const onnx::GraphProto& other = BranchOf(*outer, "else_branch");
  const onnx::NodeProto* inner = FindIf(other);
  ASSERT_NE(inner, nullptr);
  EXPECT_THAT(OpsOf(BranchOf(*inner, "then_branch")), ElementsAre("Neg"));
  EXPECT_THAT(OpsOf(BranchOf(*inner, "else_branch")), ElementsAre("Relu"));
  // A branch returns what it makes itself.
  for (const onnx::GraphProto* branch :
       {&BranchOf(*outer, "then_branch"), &other}) {
    std::set<std::string> own;
    for (const auto& node : branch->node()) {
      own.insert(node.output().begin(), node.output().end());
    }
    for (const auto& output : branch->output()) {
      EXPECT_THAT(own, Contains(output.name()));
      EXPECT_EQ(output.type().tensor_type().elem_type(), 1);
    }
  }
}

TEST(OnnxBranchesTest, AnswersAreThoseOfTheBranchThatIsTaken) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const ConvertedModel made,
                               Rewritten(NestedBranches(1)));
  const Tensor x = Floats({2, 1}, {1, -2});
  for (const bool c : {true, false}) {
    for (const bool d : {true, false}) {
      const std::vector<Tensor> inputs = {Tensor::Scalar(c), Tensor::Scalar(d),
                                          x};
      OPTFARM_ASSERT_OK_AND_ASSIGN(const auto before,
                                   formats::Answers(NestedBranches(1), inputs));
      OPTFARM_ASSERT_OK_AND_ASSIGN(const auto after,
                                   formats::Answers(made.bytes, inputs));
      for (const size_t i : {0u, 1u}) {
        EXPECT_EQ(ValuesOf<float>(after[i]), ValuesOf<float>(before[i]))
            << c << d << i;
      }
      EXPECT_THAT(ValuesOf<float>(after[0])[0], FloatNear(c   ? 3.7183f
                                                          : d ? -2.7183f
                                                              : 1.0f,
                                                          1e-3f));
    }
  }
}

// The rank of the result depends on a size that is open.
TEST(OnnxBranchesTest, OpenSizesAreFixedWhereABranchDependsOnThem) {
  const std::string bytes = formats::OnnxBytes(absl::StrCat(
      "input { ", FloatValue("x", {1, -1}),
      " } output { name: 'y' type { "
      "tensor_type { elem_type: 1 } } } "
      "initializer { name: 'one' data_type: 7 int64_data: 1 } "
      "initializer { name: 'axis' dims: 1 data_type: 7 int64_data: 0 } ",
      Node("Shape", "input: 'x' output: 's'"),
      Node("Gather", "input: 's' input: 'one' output: 'n'"),
      Node("Equal", "input: 'n' input: 'one' output: 'c'"),
      Node("If",
           absl::StrCat(
               "input: 'c' output: 'y' ",
               Branch("then_branch",
                      Outputs({"less"}) + Node("Squeeze",
                                               "input: 'x' input: 'axis' "
                                               "output: 'less'")),
               Branch("else_branch",
                      Outputs({"same"}) +
                          Node("Identity", "input: 'x' output: 'same'"))))));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const ConvertedModel made, Rewritten(bytes));
  EXPECT_THAT(made.line, HasSubstr("its open sizes became --inputs=x:1x16"));
  ASSERT_TRUE(made.difference.has_value());
  EXPECT_EQ(made.difference->unequal, 0);
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(made.bytes));
  EXPECT_THAT(OpsOf(model.graph()), Each(::testing::StrNe("If")));
}

// A recurrent layer's state has no name for its batch either.
TEST(OnnxBranchesTest, AStateWithoutNamesHasABatchOfOne) {
  const std::string weights =
      "initializer { name: 'w' dims: 1 dims: 2 dims: 1 data_type: 1 "
      "float_data: 1 float_data: 2 } initializer { name: 'r' dims: 1 dims: 2 "
      "dims: 2 data_type: 1 float_data: [1, 0, 0, 1] } "
      "initializer { name: 'axis' dims: 1 data_type: 7 int64_data: 2 } ";
  const std::string open = "dim {} dim {} ";
  const std::string state = "dim { dim_value: 1 } dim {} dim { dim_value: 2 }";
  const auto value = [](const std::string& name, const std::string& dims) {
    return absl::StrCat("name: '", name,
                        "' type { tensor_type { elem_type: 1 shape { ", dims,
                        " } } }");
  };
  const std::string bytes = formats::OnnxBytes(absl::StrCat(
      "input { ", value("x", open), " } input { ", value("h", state),
      " } output { ", value("y", state), " } ", weights,
      Node("Unsqueeze", "input: 'x' input: 'axis' output: 'columns'"),
      Node("Transpose",
           "input: 'columns' output: 'steps' attribute { name: 'perm' type: "
           "INTS ints: [1, 0, 2] }"),
      Node("RNN",
           "input: 'steps' input: 'w' input: 'r' input: '' input: '' input: "
           "'h' output: '' output: 'y' attribute { name: 'hidden_size' type: "
           "INT i: 2 }")));
  for (const ModelFormat format :
       {ModelFormat::kOnnx, ModelFormat::kTflite, ModelFormat::kGraph}) {
    ConvertOptions options;
    options.written.format = format;
    OPTFARM_ASSERT_OK_AND_ASSIGN(const graph::Graph graph,
                                 formats::ReadOnnxGraph(bytes));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const ConvertedModel made,
                                 ConvertGraph(graph, options));
    EXPECT_TRUE(made.difference.has_value()) << made.line;
  }
}

// Two rates of a sound, as it were: each has its own number of samples.
TEST(OnnxBranchesTest, ABranchThatCannotRunWithTheSizesIsLeftOut) {
  const auto product = [](const std::string& result,
                          const std::string& weights) {
    return Outputs({result}) +
           Node("MatMul", absl::StrCat("input: 'x' input: '", weights,
                                       "' output: '", result, "'"));
  };
  const std::string bytes = formats::OnnxBytes(absl::StrCat(
      Flag("c"), "input { ", FloatValue("x", {1, -1}), " } output { ",
      FloatValue("y", {1, -1}), " } ",
      "initializer { name: 'w4' dims: 4 dims: 1 data_type: 1 "
      "float_data: [1, 2, 3, 4] } ",
      "initializer { name: 'w2' dims: 2 dims: 3 data_type: 1 "
      "float_data: [5, 6, 7, 8, 9, 10] } ",
      Node("If", absl::StrCat("input: 'c' output: 'y' ",
                              Branch("then_branch", product("four", "w4")),
                              Branch("else_branch", product("two", "w2"))))));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const graph::Graph graph,
                               formats::ReadOnnxGraph(bytes));
  ConvertOptions options;
  options.written.format = ModelFormat::kTflite;
  const graph::PartialShape sizes[] = {graph::PartialShape({1, 4}),
                                       graph::PartialShape({1, 2})};
  for (const bool c : {true, false}) {
    options.io.inputs = {{"c", std::nullopt, graph::PartialShape::Scalar()},
                         {"x", std::nullopt, sizes[c ? 0 : 1]}};
    OPTFARM_ASSERT_OK_AND_ASSIGN(const ConvertedModel made,
                                 ConvertGraph(graph, options));
    EXPECT_THAT(made.line, HasSubstr(absl::StrCat(
                               "without the ", c ? "else" : "then",
                               "-branch of 'y', which cannot run with these "
                               "sizes; read back: all ")));
    const Tensor x = c ? Floats({1, 4}, {1, 1, 1, 1}) : Floats({1, 2}, {1, 1});
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto answers,
                                 formats::Answers(made.bytes, {x}));
    EXPECT_THAT(ValuesOf<float>(answers[0]),
                c ? ::testing::ElementsAreArray({10.0f})
                  : ::testing::ElementsAreArray({13.0f, 15.0f, 17.0f}));
  }
  // Sizes with which neither can run are refused as before.
  options.io.inputs[1].shape = graph::PartialShape({1, 3});
  EXPECT_FALSE(ConvertGraph(graph, options).ok());
}

}  // namespace
}  // namespace optfarm::exporting
