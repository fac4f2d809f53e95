// The text of `optctl graph summarize`, line by line.

#include "client_cli/tables/summary_text.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tensorflow/core/framework/graph.pb.h"

namespace optfarm::client_cli {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using inspect::GraphSummary;
using inspect::SummarizeGraph;

tensorflow::GraphDef ParseGraph(const std::string& text) {
  tensorflow::GraphDef graph;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &graph));
  return graph;
}

constexpr char kSmallGraph[] = R"(
  node { name: "x" op: "Placeholder"
    attr { key: "dtype" value { type: DT_FLOAT } }
    attr { key: "shape" value { shape { dim { size: -1 } dim { size: 4 } } } } }
  node { name: "w" op: "Const" device: "/cpu:0"
    attr { key: "dtype" value { type: DT_FLOAT } }
    attr { key: "value" value { tensor { dtype: DT_FLOAT
      tensor_shape { dim { size: 4 } dim { size: 300 } } float_val: 0.5 } } } }
  node { name: "v" op: "VariableV2"
    attr { key: "dtype" value { type: DT_INT32 } } }
  node { name: "y" op: "MatMul" input: "x" input: "w:0" input: "^v" }
  node { name: "init" op: "NoOp" input: "^v" })";

std::string TextOf(const GraphSummary& summary) {
  return SummaryText(summary,
                     BenchmarkLine(summary, "m.pb", "optctl graph benchmark"));
}

TEST(SummaryTextTest, SaysWhatSummarizeGraphSays) {
  const GraphSummary summary = SummarizeGraph(ParseGraph(kSmallGraph));
  EXPECT_EQ(
      TextOf(summary),
      "Found 1 possible inputs: (name=x, type=float(1), shape=[?,4]) \n"
      "Found 1 variables: (name=v, type=int32(3), shape=None) \n"
      "Found 1 possible outputs: (name=y, op=MatMul) \n"
      "Found 1200 (1.20k) const parameters, 0 (0) variable parameters, and 2 "
      "control_edges\n"
      "1 nodes assigned to device '/cpu:0'\n"
      "Op types used: 1 Const, 1 MatMul, 1 NoOp, 1 Placeholder, 1 VariableV2\n"
      "To measure it, try these arguments:\n"
      "optctl graph benchmark --graph=m.pb --show_flops --input_layer=x,v "
      "--input_layer_type=float,int32 --input_layer_shape=-1,4: "
      "--output_layer=y\n");
  EXPECT_THAT(summary.invalid_inputs, IsEmpty());
}

TEST(SummaryTextTest, EmptyGraphHasNothingSpotted) {
  const GraphSummary summary = SummarizeGraph(tensorflow::GraphDef());
  EXPECT_THAT(TextOf(summary),
              HasSubstr("No inputs spotted.\nNo variables spotted.\nNo outputs "
                        "spotted.\n"));
}

TEST(SummaryTextTest, InvalidInputsAreListedAndEndTheText) {
  const GraphSummary summary = SummarizeGraph(
      ParseGraph(R"(node { name: "y" op: "Relu" input: "gone:1" })"));
  ASSERT_EQ(summary.invalid_inputs.size(), 1u);
  EXPECT_EQ(InvalidInputText(summary.invalid_inputs[0]),
            "Invalid input gone:1 for node y");
  EXPECT_THAT(TextOf(summary), Not(HasSubstr("Op types used")));
}

TEST(SummaryTextTest, FunctionBodiesCountAmongTheOps) {
  const GraphSummary summary =
      SummarizeGraph(ParseGraph(R"(node { name: "a" op: "Const" }
                    library { function { node_def { name: "f" op: "Relu" }
                                         node_def { name: "g" op: "Relu" } } })"));
  EXPECT_THAT(TextOf(summary), HasSubstr("Op types used: 2 Relu, 1 Const\n"));
}

TEST(SummaryTextTest, MalformedConstantsCountNothing) {
  const GraphSummary summary =
      SummarizeGraph(ParseGraph(R"(node { name: "w" op: "Const"
        attr { key: "value" value { tensor { dtype: DT_FLOAT
          tensor_shape { dim { size: 1099511627776 } }
          tensor_content: "0123456789" } } } })"));
  EXPECT_THAT(TextOf(summary), HasSubstr("Found 0 (0) const parameters"));
}

TEST(SummaryTextTest, JsonHasTheSameFacts) {
  const GraphSummary summary = SummarizeGraph(ParseGraph(kSmallGraph));
  const auto json = nlohmann::json::parse(
      SummaryJson(summary, BenchmarkLine(summary, "m.pb", "benchmark_model")));
  EXPECT_EQ(json["inputs"][0]["name"], "x");
  EXPECT_EQ(json["inputs"][0]["type"], "float");
  EXPECT_EQ(json["inputs"][0]["shape"], "[?,4]");
  EXPECT_EQ(json["outputs"][0]["op"], "MatMul");
  EXPECT_EQ(json["const_parameters"], 1200);
  EXPECT_EQ(json["control_edges"], 2);
  EXPECT_EQ(json["devices"]["/cpu:0"], 1);
  EXPECT_EQ(json["ops"].size(), 5u);
  EXPECT_EQ(json["benchmark"].get<std::string>().find(
                "benchmark_model --graph=m.pb --show_flops "),
            0u);
}

TEST(SummaryTextTest, ShortCountsAreTensorFlows) {
  EXPECT_EQ(ShortCount(999), "999");
  EXPECT_EQ(ShortCount(1000), "1.00k");
  EXPECT_EQ(ShortCount(4'253'864), "4.25M");
  EXPECT_EQ(ShortCount(5'000'000'000), "5.00B");
  EXPECT_EQ(ShortCount(2'000'000'000'000'000), "2E+15");
}

}  // namespace
}  // namespace optfarm::client_cli
