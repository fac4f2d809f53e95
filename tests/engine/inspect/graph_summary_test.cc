// What SummarizeGraph finds, also where a graph is broken.

#include "engine/inspect/graph_summary.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "tensorflow/core/framework/graph.pb.h"

namespace optfarm::inspect {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

GraphSummary Summarize(const std::string& text) {
  tensorflow::GraphDef graph;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &graph));
  return SummarizeGraph(graph);
}

TEST(GraphSummaryTest, ShapesAreKeptAsTheFileHasThem) {
  const GraphSummary summary = Summarize(R"(
    node { name: "known" op: "Placeholder"
      attr { key: "dtype" value { type: DT_UINT8 } }
      attr { key: "shape" value { shape { dim { size: -1 } dim { size: 4 }
                                          dim { size: -7 } } } } }
    node { name: "rank" op: "Placeholder"
      attr { key: "shape" value { shape { unknown_rank: true } } } }
    node { name: "text" op: "Placeholder" attr { key: "shape" value { i: 3 } } }
    node { name: "none" op: "Placeholder" })");
  using ShapeKind = SummaryTensor::ShapeKind;
  ASSERT_EQ(summary.inputs.size(), 4u);
  EXPECT_EQ(summary.inputs[0].dtype, tensorflow::DT_UINT8);
  EXPECT_EQ(summary.inputs[0].shape_kind, ShapeKind::kDims);
  EXPECT_THAT(summary.inputs[0].dims, ElementsAre(-1, 4, -7));
  EXPECT_EQ(summary.inputs[1].shape_kind, ShapeKind::kUnknownRank);
  EXPECT_EQ(summary.inputs[2].shape_kind, ShapeKind::kNotAShape);
  EXPECT_EQ(summary.inputs[3].shape_kind, ShapeKind::kNotGiven);
  EXPECT_EQ(summary.inputs[3].dtype, tensorflow::DT_INVALID);
}

TEST(GraphSummaryTest, WhatNobodyReadsIsAnOutput) {
  const GraphSummary summary = Summarize(R"(
    node { name: "x" op: "Placeholder" }
    node { name: "y" op: "Relu" input: "x" }
    node { name: "z" op: "Relu" input: "y:0" }
    node { name: "late" op: "NoOp" input: "^y" device: "/gpu:0" })");
  ASSERT_EQ(summary.outputs.size(), 1u);
  EXPECT_EQ(summary.outputs[0].name, "z");
  EXPECT_EQ(summary.outputs[0].op, "Relu");
  EXPECT_EQ(summary.control_edges, 1);
  EXPECT_THAT(summary.devices, ElementsAre(Pair("/gpu:0", 1)));
  EXPECT_THAT(summary.ops, ElementsAre(Pair("Relu", 2), Pair("NoOp", 1),
                                       Pair("Placeholder", 1)));
  EXPECT_THAT(summary.invalid_inputs, IsEmpty());
}

TEST(GraphSummaryTest, WhatAFileDeclaresIsListedByItsNamesInItsOrder) {
  const GraphSummary summary = Summarize(R"(
    node { name: "helper" op: "Placeholder" }
    node { name: "image_0" op: "Placeholder"
      attr { key: "_model_input" value { i: 0 } }
      attr { key: "_tensor_names" value { list { s: "image:0" } } } }
    node { name: "last" op: "Relu" input: "image_0"
      attr { key: "_model_output" value { i: 1 } } }
    node { name: "first" op: "Relu" input: "image_0"
      attr { key: "_model_output" value { i: 0 } }
      attr { key: "_tensor_names" value { list { s: "scores;1" } } } }
    node { name: "read" op: "Relu" input: "first" })");
  ASSERT_EQ(summary.inputs.size(), 1u);
  EXPECT_EQ(summary.inputs[0].name, "image_0");
  EXPECT_EQ(summary.inputs[0].name_in_file, "image:0");
  ASSERT_EQ(summary.outputs.size(), 2u);
  EXPECT_EQ(summary.outputs[0].name, "first");
  EXPECT_EQ(summary.outputs[0].name_in_file, "scores;1");
  EXPECT_EQ(summary.outputs[1].name_in_file, "last");
}

TEST(GraphSummaryTest, InputsThatNameNoNodeAreInvalid) {
  const GraphSummary summary =
      Summarize(R"(node { name: "y" op: "Relu" input: "gone:1" })");
  ASSERT_EQ(summary.invalid_inputs.size(), 1u);
  EXPECT_EQ(summary.invalid_inputs[0].input, "gone:1");
  EXPECT_EQ(summary.invalid_inputs[0].node, "y");
}

}  // namespace
}  // namespace optfarm::inspect
