#include "engine/graph/model_interface.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/graph/attr.h"
#include "engine/graph/infer_io.h"
#include "tests/support/status_matchers.h"

namespace optfarm::graph {
namespace {

using ::testing::ElementsAre;

NodeId AddNode(Graph* graph, const std::string& name, const std::string& op,
               std::vector<Endpoint> inputs) {
  tensorflow::NodeDef def;
  def.set_name(name);
  def.set_op(op);
  SetType(&def, op == "Placeholder" ? "dtype" : "T", tensorflow::DT_FLOAT);
  if (op == "Placeholder") {
    *(*def.mutable_attr())["shape"].mutable_shape() =
        PartialShape({1, 4}).ToProto();
  }
  return graph->Add(std::move(def), inputs);
}

// Two inputs in the other order than the file's, two outputs likewise, and an
// end that the file does not declare.
struct DeclaredGraph {
  Graph graph;
  NodeId first, second, sum, product;

  DeclaredGraph() {
    second = AddNode(&graph, "b", "Placeholder", {});
    first = AddNode(&graph, "a", "Placeholder", {});
    sum = AddNode(&graph, "sum", "Add", {{first, 0}, {second, 0}});
    product = AddNode(&graph, "product", "Mul", {{first, 0}, {second, 0}});
    AddNode(&graph, "more", "Neg", {{sum, 0}});
    DeclareInput("onnx", 0, "a:0", {"batch", ""},
                 graph.mutable_node(first)->mutable_def());
    DeclareInput("onnx", 1, "b;1", {"", ""},
                 graph.mutable_node(second)->mutable_def());
    DeclareOutput("onnx", 1, "sum/out", {},
                  graph.mutable_node(sum)->mutable_def());
    DeclareOutput("onnx", 0, "12", {},
                  graph.mutable_node(product)->mutable_def());
  }
};

TEST(ModelInterfaceTest, KeepsNamesOrderAndFormatOfTheFile) {
  const DeclaredGraph model;
  const ModelInterface interface = ReadModelInterface(model.graph);
  EXPECT_EQ(interface.format, "onnx");
  ASSERT_EQ(interface.inputs.size(), 2u);
  EXPECT_EQ(interface.inputs[0].name, "a:0");
  EXPECT_EQ(interface.inputs[0].tensor, (Endpoint{model.first, 0}));
  EXPECT_THAT(interface.inputs[0].dim_names, ElementsAre("batch", ""));
  EXPECT_TRUE(interface.inputs[1].dim_names.empty());
  ASSERT_EQ(interface.outputs.size(), 2u);
  EXPECT_EQ(interface.outputs[0].name, "12");
  EXPECT_EQ(interface.outputs[1].name, "sum/out");
}

TEST(ModelInterfaceTest, FindsTensorsByTheNamesOfFileAndGraph) {
  const DeclaredGraph model;
  for (const char* name : {"b;1", "b", "b:0"}) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Endpoint tensor,
                                 ResolveTensor(model.graph, name));
    EXPECT_EQ(tensor.node, model.second) << name;
  }
  EXPECT_EQ(TensorNameInFile(model.graph, {model.product, 0}), "12");
  EXPECT_EQ(ResolveTensor(model.graph, "nothing").status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_FALSE(ResolveTensor(model.graph, "^sum").ok());
}

TEST(ModelInterfaceTest, InputsAndOutputsAreInferredAsTheFileDeclaresThem) {
  const DeclaredGraph model;
  OPTFARM_ASSERT_OK_AND_ASSIGN(const GraphIo io, InferIo(model.graph));
  ASSERT_EQ(io.inputs.size(), 2u);
  EXPECT_EQ(io.inputs[0].name, "a");
  EXPECT_EQ(io.inputs[1].name, "b");
  ASSERT_EQ(io.outputs.size(), 2u);
  EXPECT_EQ(io.outputs[0].name, "product");
  EXPECT_EQ(io.outputs[1].name, "sum");
}

TEST(ModelInterfaceTest, ATensorFlowGraphDeclaresNothing) {
  Graph graph;
  AddNode(&graph, "x", "Placeholder", {});
  const ModelInterface interface = ReadModelInterface(graph);
  EXPECT_EQ(interface.format, "");
  EXPECT_TRUE(interface.inputs.empty());
  EXPECT_EQ(TensorNameInFile(graph, {0, 0}), "x");
}

TEST(NodeNameOfTest, ReplacesWhatTensorFlowDoesNotAllow) {
  EXPECT_EQ(NodeNameOf("serving_default_input:0"), "serving_default_input");
  EXPECT_EQ(NodeNameOf("StatefulPartitionedCall:2"),
            "StatefulPartitionedCall_2");
  EXPECT_EQ(NodeNameOf("/model/conv;bias x"), "model/conv_bias_x");
  EXPECT_EQ(NodeNameOf("495"), "495");
  EXPECT_EQ(NodeNameOf("///"), "unnamed");
}

}  // namespace
}  // namespace optfarm::graph
