// If without functions: the branch that sizes decide for, or a choice.

#include "engine/export/flatten_branches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "engine/graph/function_body.h"
#include "engine/graph/graph.h"
#include "engine/graph/model_interface.h"
#include "engine/runtime/session/session.h"
#include "tests/support/graph_builder.h"
#include "tests/support/status_matchers.h"

namespace optfarm::exporting {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;
using namespace optfarm::testing;  // NOLINT: the tests' own vocabulary
using graph::Graph;
using graph::PartialShape;

tensorflow::AttrValue FunctionAttr(const std::string& name) {
  tensorflow::AttrValue value;
  value.mutable_func()->set_name(name);
  return value;
}

tensorflow::AttrValue TypesAttr(std::vector<tensorflow::DataType> types) {
  tensorflow::AttrValue value;
  for (const auto type : types) value.mutable_list()->add_type(type);
  return value;
}

// Function `name` of one float tensor: `op` of it.
void AddFunction(const std::string& name, const std::string& op,
                 GraphBuilder* b) {
  auto* function = b->mutable_def()->mutable_library()->add_function();
  function->mutable_signature()->set_name(name);
  for (auto* arg : {function->mutable_signature()->add_input_arg(),
                    function->mutable_signature()->add_output_arg()}) {
    arg->set_type(tensorflow::DT_FLOAT);
  }
  function->mutable_signature()->mutable_input_arg(0)->set_name("a");
  function->mutable_signature()->mutable_output_arg(0)->set_name("r");
  auto* node = function->add_node_def();
  node->set_name("inner");
  node->set_op(op);
  node->add_input("a");
  (*node->mutable_attr())["T"] = TypeAttr(tensorflow::DT_FLOAT);
  (*function->mutable_ret())["r"] =
      op == "Relu" ? "inner:activations:0" : "inner:y:0";
}

// Function `name` of one float tensor, which calls `then` behind a condition
// that is always true.
void AddNestedFunction(const std::string& name, const std::string& then,
                       GraphBuilder* b) {
  AddFunction(name, "Neg", b);
  const tensorflow::FunctionDefLibrary& library = b->def().library();
  auto* function = b->mutable_def()->mutable_library()->mutable_function(
      library.function_size() - 1);
  function->clear_node_def();
  GraphBuilder body;
  body.Ints("one", {}, {1});
  body.Node("same", "Equal", {"one:output:0", "one:output:0"},
            {{"T", TypeAttr(tensorflow::DT_INT32)}});
  body.Node("nested", "StatelessIf", {"same:z:0", "a"},
            {{"Tcond", TypeAttr(tensorflow::DT_BOOL)},
             {"Tin", TypesAttr({tensorflow::DT_FLOAT})},
             {"Tout", TypesAttr({tensorflow::DT_FLOAT})},
             {"then_branch", FunctionAttr(then)},
             {"else_branch", FunctionAttr("rectified")}});
  for (const auto& node : body.def().node()) *function->add_node_def() = node;
  (*function->mutable_ret())["r"] = "nested:output:0";
}

void AddIf(const std::string& condition, GraphBuilder* b) {
  b->Node("out", "StatelessIf", {condition, "x"},
          {{"Tcond", TypeAttr(tensorflow::DT_BOOL)},
           {"Tin", TypesAttr({tensorflow::DT_FLOAT})},
           {"Tout", TypesAttr({tensorflow::DT_FLOAT})},
           {"then_branch", FunctionAttr("negated")},
           {"else_branch", FunctionAttr("rectified")},
           {std::string(graph::kTensorNamesAttr), [] {
              tensorflow::AttrValue names;
              names.mutable_list()->add_s("the output");
              return names;
            }()}});
}

// Whether x has two elements.
void AddSizeCondition(GraphBuilder* b) {
  b->Node("size", "Size", {"x"},
          FloatT({{"out_type", TypeAttr(tensorflow::DT_INT32)}}));
  b->Ints("two", {}, {2});
  b->Node("is_two", "Equal", {"size", "two"},
          {{"T", TypeAttr(tensorflow::DT_INT32)}});
}

std::set<std::string> OpsOf(const Graph& graph) {
  std::set<std::string> ops;
  for (graph::NodeId id : graph.Ids()) ops.insert(graph.node(id).op());
  return ops;
}

Graph Flattened(const GraphBuilder& b, const PartialShape& shape,
                OpenBranches open = OpenBranches::kBothRun) {
  Graph graph = b.Build();
  const std::vector<FedShape> fed = {{{graph.Find("x"), 0}, shape}};
  const std::vector<graph::Endpoint> outputs = {{graph.Find("out"), 0}};
  EXPECT_THAT(FlattenBranches(fed, outputs, open, &graph), IsOk());
  return graph;
}

std::vector<float> Answer(const Graph& graph, std::vector<std::string> feeds,
                          const std::vector<runtime::Tensor>& inputs) {
  std::vector<graph::TensorName> names;
  for (const std::string& feed : feeds) names.push_back({feed, 0});
  auto session = runtime::Session::Create(graph, names, {{"out", 0}});
  EXPECT_THAT(session, IsOk());
  if (!session.ok()) return {};
  auto result = (*session)->Run(inputs);
  EXPECT_THAT(result, IsOk());
  if (!result.ok()) return {};
  const auto flat = (*result)[0].flat<float>();
  return {flat.begin(), flat.end()};
}

runtime::Tensor Floats(std::vector<float> values) {
  auto tensor = runtime::Tensor::Zeros(
      tensorflow::DT_FLOAT,
      *runtime::Shape::FromDims({static_cast<int64_t>(values.size())}));
  std::copy(values.begin(), values.end(), tensor->data<float>());
  return *std::move(tensor);
}

TEST(FlattenBranchesTest, TakesTheBranchThatSizesDecideFor) {
  GraphBuilder b;
  b.Placeholder("x", {-1});
  AddSizeCondition(&b);
  AddFunction("negated", "Neg", &b);
  AddFunction("rectified", "Relu", &b);
  AddIf("is_two", &b);
  const Graph two = Flattened(b, PartialShape({2}));
  EXPECT_THAT(OpsOf(two), Contains("Neg"));
  EXPECT_THAT(OpsOf(two), Not(Contains("Relu")));
  EXPECT_THAT(OpsOf(two), Not(Contains("StatelessIf")));
  EXPECT_THAT(Answer(two, {"x"}, {Floats({1, -2})}), ElementsAre(-1, 2));
  const Graph three = Flattened(b, PartialShape({3}));
  EXPECT_THAT(OpsOf(three), Not(Contains("Neg")));
  EXPECT_THAT(Answer(three, {"x"}, {Floats({1, -2, 3})}), ElementsAre(1, 0, 3));
  // Under its own name in the file.
  EXPECT_EQ(graph::TensorNameInFile(three, {three.Find("out"), 0}),
            "the output");
}

TEST(FlattenBranchesTest, BranchesWithinBranchesGoToo) {
  GraphBuilder b;
  b.Placeholder("x", {-1});
  AddSizeCondition(&b);
  AddFunction("rectified", "Relu", &b);
  AddFunction("inner_negated", "Neg", &b);
  AddNestedFunction("negated", "inner_negated", &b);
  AddIf("is_two", &b);
  const Graph graph = Flattened(b, PartialShape({2}));
  EXPECT_THAT(OpsOf(graph), Not(Contains("StatelessIf")));
  EXPECT_THAT(Answer(graph, {"x"}, {Floats({1, -2})}), ElementsAre(-1, 2));
}

TEST(FlattenBranchesTest, ChoosesWhereOnlyARunKnows) {
  GraphBuilder b;
  b.Placeholder("x", {2});
  b.Placeholder("flag", {}, tensorflow::DT_BOOL);
  AddFunction("negated", "Neg", &b);
  AddFunction("rectified", "Relu", &b);
  AddIf("flag", &b);
  const Graph graph = Flattened(b, PartialShape({2}));
  EXPECT_THAT(OpsOf(graph), Contains("SelectV2"));
  EXPECT_THAT(OpsOf(graph), Not(Contains("StatelessIf")));
  for (const bool flag : {true, false}) {
    auto condition = runtime::Tensor::Zeros(tensorflow::DT_BOOL, {});
    condition->data<bool>()[0] = flag;
    const auto answer =
        Answer(graph, {"x", "flag"}, {Floats({1, -2}), *condition});
    EXPECT_EQ(answer,
              flag ? (std::vector<float>{-1, 2}) : (std::vector<float>{1, 0}));
  }
}

TEST(FlattenBranchesTest, KeepsABranchOfOpenOrOtherSizes) {
  GraphBuilder b;
  b.Placeholder("x", {-1});
  b.Placeholder("flag", {}, tensorflow::DT_BOOL);
  AddFunction("negated", "Neg", &b);
  AddFunction("rectified", "Relu", &b);
  AddIf("flag", &b);
  EXPECT_THAT(OpsOf(Flattened(b, PartialShape({-1}))), Contains("StatelessIf"));
}

TEST(FlattenBranchesTest, SaysWhichIfAChoiceIsFor) {
  GraphBuilder b;
  b.Placeholder("x", {-1});
  b.Placeholder("flag", {}, tensorflow::DT_BOOL);
  AddFunction("negated", "Neg", &b);
  AddFunction("rectified", "Relu", &b);
  AddIf("flag", &b);
  const Graph graph = Flattened(b, PartialShape({-1}), OpenBranches::kOneRuns);
  EXPECT_THAT(OpsOf(graph), Not(Contains("StatelessIf")));
  const graph::NodeId choice = graph.Find("out/choice");
  ASSERT_NE(choice, graph::kNoNode);
  EXPECT_EQ(graph.node(choice).def().attr().at(graph::kBranchesAttr).s(),
            "out");
}

TEST(FlattenBranchesTest, RefusesABranchThatCallsItself) {
  GraphBuilder b;
  b.Placeholder("x", {2});
  AddSizeCondition(&b);
  AddFunction("rectified", "Relu", &b);
  AddNestedFunction("negated", "negated", &b);
  AddIf("is_two", &b);
  Graph graph = b.Build();
  const std::vector<FedShape> fed = {{{graph.Find("x"), 0}, PartialShape({2})}};
  const std::vector<graph::Endpoint> outputs = {{graph.Find("out"), 0}};
  EXPECT_THAT(FlattenBranches(fed, outputs, OpenBranches::kBothRun, &graph),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       ::testing::HasSubstr("branches within branches")));
}

}  // namespace
}  // namespace optfarm::exporting
