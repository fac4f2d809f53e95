// What counts as missing for a target, and which remedy is named.

#include "engine/inspect/compatibility.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/graph/op_defs.h"
#include "engine/graph/ops/op_table.h"
#include "tests/support/graph_builder.h"

namespace optfarm::inspect {
namespace {

using ::optfarm::testing::BoolAttr;
using ::optfarm::testing::FloatT;
using ::optfarm::testing::GraphBuilder;
using ::optfarm::testing::IntsAttr;
using ::optfarm::testing::TypeAttr;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<Incompatibility> Find(const graph::Graph& graph,
                                  CompatibilityTarget target,
                                  const std::string& output = "") {
  std::vector<graph::NodeId> outputs;
  if (!output.empty()) outputs.push_back(graph.Find(output));
  return FindIncompatibilities(graph, {}, outputs, target);
}

TEST(CompatibilityTest, OpsWithoutKernelsAreCountedAndNamedOnce) {
  GraphBuilder b;
  b.Placeholder("x", {1});
  b.Node("a", "NobodysOp", {"x"});
  b.Node("b", "NobodysOp", {"a"});
  const auto found = Find(b.Build(), CompatibilityTarget::kRuntime, "b");
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].op, "NobodysOp");
  EXPECT_EQ(found[0].problem, "has no kernel");
  EXPECT_EQ(found[0].nodes, 2);
  EXPECT_EQ(found[0].example, "a");
  EXPECT_EQ(found[0].remedy, "");
}

TEST(CompatibilityTest, WhatNoOutputNeedsIsStripped) {
  GraphBuilder b;
  b.Placeholder("x", {1});
  b.Node("y", "Relu", {"x"}, FloatT());
  b.Node("a", "NobodysOp", {"x"});
  const auto found = Find(b.Build(), CompatibilityTarget::kRuntime, "y");
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].remedy, "strip_unused_nodes");
}

TEST(CompatibilityTest, DtypesThatAKernelRefusesAreTold) {
  GraphBuilder b;
  b.Placeholder("x", {1}, tensorflow::DT_STRING);
  b.Node("y", "Relu", {"x"}, {{"T", TypeAttr(tensorflow::DT_STRING)}});
  const auto found = Find(b.Build(), CompatibilityTarget::kRuntime, "y");
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found[0].problem, HasSubstr("string"));
  const auto by_signature =
      Find(b.Build(), CompatibilityTarget::kTensorFlow14, "y");
  ASSERT_THAT(by_signature, SizeIs(1));
  EXPECT_EQ(by_signature[0].problem, "does not take T=string");
}

TEST(CompatibilityTest, LateAttributesGoIfTheyHaveTheirDefault) {
  GraphBuilder b;
  b.Placeholder("x", {1});
  b.Node("a", "ResizeBilinear", {"x", "x"},
         FloatT({{"half_pixel_centers", BoolAttr(false)}}));
  b.Node("b", "ResizeBilinear", {"x", "x"},
         FloatT({{"half_pixel_centers", BoolAttr(true)}}));
  b.Node("c", "Relu", {"x"}, FloatT({{"made_up", IntsAttr({1})}}));
  const auto found = Find(b.Build(), CompatibilityTarget::kTensorFlow14);
  ASSERT_THAT(found, SizeIs(3));
  EXPECT_EQ(found[0].remedy,
            "remove_attribute(attribute_name=half_pixel_centers, "
            "op_name=ResizeBilinear)");
  EXPECT_THAT(found[1].problem, HasSubstr("not its default value"));
  EXPECT_EQ(found[1].remedy, "");
  EXPECT_THAT(found[2].problem, HasSubstr("in no version we know"));
}

TEST(CompatibilityTest, OpsOfOtherFormatsAreTold) {
  GraphBuilder b;
  b.Placeholder("x", {1});
  b.Node("y", "HardSwish", {"x"}, FloatT());
  const auto found = Find(b.Build(), CompatibilityTarget::kTensorFlow14, "y");
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found[0].problem, HasSubstr("TensorFlow does not have"));
}

TEST(CompatibilityTest, LateOpsAreTold) {
  GraphBuilder b;
  b.Placeholder("x", {1});
  b.Node("y", "FusedBatchNormV3", {"x"}, FloatT());
  const auto found = Find(b.Build(), CompatibilityTarget::kTensorFlow14, "y");
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].problem, "came after TensorFlow 1.4");
  EXPECT_EQ(found[0].remedy, "fold_old_batch_norms");
}

TEST(CompatibilityTest, CallsOfTheGraphsOwnFunctionsAreNoOps) {
  tensorflow::GraphDef def;
  def.add_node()->set_name("call");
  def.mutable_node(0)->set_op("Twice");
  def.mutable_library()->add_function()->mutable_signature()->set_name("Twice");
  auto graph = graph::Graph::FromDef(std::move(def));
  ASSERT_TRUE(graph.ok());
  EXPECT_THAT(Find(*graph, CompatibilityTarget::kRuntime), IsEmpty());
}

// y = StatelessIf(true, x): Relu or what `other` is.
graph::Graph Conditional(const std::string& other) {
  GraphBuilder b;
  b.Placeholder("condition", {}, tensorflow::DT_BOOL);
  b.Placeholder("x", {1});
  tensorflow::GraphDef def = b.Build().ToDef();
  for (const std::string& op : {std::string("Relu"), other}) {
    tensorflow::FunctionDef* function = def.mutable_library()->add_function();
    function->mutable_signature()->set_name("branch_" + op);
    auto* input = function->mutable_signature()->add_input_arg();
    input->set_name("a");
    input->set_type(tensorflow::DT_FLOAT);
    auto* output = function->mutable_signature()->add_output_arg();
    output->set_name("r");
    output->set_type(tensorflow::DT_FLOAT);
    tensorflow::NodeDef* node = function->add_node_def();
    node->set_name("n");
    node->set_op(op);
    node->add_input("a");
    (*node->mutable_attr())["T"].set_type(tensorflow::DT_FLOAT);
    (*function->mutable_ret())["r"] =
        op == "Relu" ? "n:activations:0" : "n:y:0";
  }
  tensorflow::NodeDef* call = def.add_node();
  call->set_name("y");
  call->set_op("StatelessIf");
  call->add_input("condition");
  call->add_input("x");
  auto& attr = *call->mutable_attr();
  attr["Tcond"].set_type(tensorflow::DT_BOOL);
  attr["Tin"].mutable_list()->add_type(tensorflow::DT_FLOAT);
  attr["Tout"].mutable_list()->add_type(tensorflow::DT_FLOAT);
  attr["then_branch"].mutable_func()->set_name("branch_Relu");
  attr["else_branch"].mutable_func()->set_name("branch_" + other);
  return *graph::Graph::FromDef(std::move(def));
}

TEST(CompatibilityTest, ConditionalsAreInlinedAsTheRuntimeDoes) {
  const graph::Graph known = Conditional("Neg");
  EXPECT_THAT(Find(known, CompatibilityTarget::kRuntime, "y"), IsEmpty());
  EXPECT_THAT(Find(known, CompatibilityTarget::kRuntime), IsEmpty());
  const auto late = Find(known, CompatibilityTarget::kTensorFlow14, "y");
  ASSERT_THAT(late, SizeIs(1));
  EXPECT_EQ(late[0].op, "StatelessIf");
  EXPECT_THAT(Find(known, CompatibilityTarget::kLaterTensorFlow, "y"),
              IsEmpty());
}

TEST(CompatibilityTest, CallsThatCannotBeInlinedAreReported) {
  const auto found =
      Find(Conditional("NobodysOp"), CompatibilityTarget::kRuntime, "y");
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found[0].problem, HasSubstr("has no kernel"));
}

TEST(CompatibilityTest, LaterTensorFlowHasLateOpsButNotThoseOfOneDnn) {
  GraphBuilder b;
  b.Placeholder("x", {1});
  b.Node("a", "AddV2", {"x", "x"}, FloatT());
  b.Node("b", "HardSwish", {"a"}, FloatT());
  b.Node("c", "QuantizedMatMulWithBias", {"b"});
  b.Node("d", "NobodysOp", {"c"});
  const auto found = Find(b.Build(), CompatibilityTarget::kLaterTensorFlow);
  ASSERT_THAT(found, SizeIs(3));
  EXPECT_EQ(found[0].op, "HardSwish");
  EXPECT_EQ(found[1].op, "QuantizedMatMulWithBias");
  EXPECT_THAT(found[1].problem, HasSubstr("oneDNN"));
  EXPECT_EQ(found[2].op, "NobodysOp");
}

TEST(LateOpsTest, AreToldFromOldOnes) {
  int late = 0;
  for (absl::string_view op : graph::AllOpNames()) late += graph::IsLateOp(op);
  EXPECT_GT(late, 50);
  EXPECT_TRUE(graph::IsLateOp("AddV2"));
  EXPECT_FALSE(graph::IsLateOp("Add"));
  EXPECT_FALSE(graph::IsLateOp("NobodysOp"));
}

}  // namespace
}  // namespace optfarm::inspect
