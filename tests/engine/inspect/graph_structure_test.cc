// The lines of `optctl graph summarize --print_structure`.

#include "engine/inspect/graph_structure.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tests/support/status_matchers.h"

namespace optfarm::inspect {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

tensorflow::GraphDef ParseGraph(const std::string& text) {
  tensorflow::GraphDef graph;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &graph));
  return graph;
}

// The line of a constant with this tensor.
std::string LineOf(const std::string& tensor) {
  const auto lines = PrintGraphStructure(ParseGraph(
      absl::StrCat("node { name: 'c' op: 'Const' attr { key: 'value' value { "
                   "tensor { ",
                   tensor, " } } } }")));
  return lines.ok() ? (*lines)[0] : std::string(lines.status().message());
}

TEST(GraphStructureTest, NodesStandInTheOrderThatTensorFlowSortsThem) {
  const auto lines = PrintGraphStructure(ParseGraph(R"(
    node { name: "y" op: "MatMul" input: "x:0" input: "w" input: "^x" }
    node { name: "x" op: "Placeholder" }
    node { name: "w" op: "Placeholder" })"));
  OPTFARM_ASSERT_OK(lines);
  EXPECT_THAT(*lines, ElementsAre("w (Placeholder): []", "x (Placeholder): []",
                                  "y (MatMul): [x:0, w, ^x]"));
}

TEST(GraphStructureTest, ConstantsShowTheirFirstValues) {
  EXPECT_EQ(LineOf("dtype: DT_FLOAT tensor_shape { dim { size: 2 } } "
                   "float_val: 1 float_val: 0.1"),
            "c (Const): [], value=Tensor<type: float shape: [2] values: 1 "
            "0.1>");
  EXPECT_EQ(LineOf("dtype: DT_FLOAT tensor_shape { dim { size: 2 } dim { "
                   "size: 2 } } float_val: 1 float_val: 2 float_val: 3"),
            "c (Const): [], value=Tensor<type: float shape: [2,2] values: [1 "
            "2][3]...>");
  EXPECT_EQ(LineOf("dtype: DT_INT32 tensor_shape { dim { size: 2 } dim { "
                   "size: 2 } dim { size: 2 } } int_val: 7"),
            "c (Const): [], value=Tensor<type: int32 shape: [2,2,2] values: "
            "[[7 7][7]]...>");
  EXPECT_EQ(LineOf("dtype: DT_STRING tensor_shape { } string_val: 'a\\n'"),
            "c (Const): [], value=Tensor<type: string shape: [] values: a\\n>");
  EXPECT_EQ(LineOf("dtype: DT_BOOL tensor_shape { dim { } }"),
            "c (Const): [], value=Tensor<type: bool shape: [0] values: >");
}

TEST(GraphStructureTest, MalformedConstantsSayWhatIsWrong) {
  EXPECT_THAT(LineOf("dtype: DT_FLOAT tensor_shape { dim { size: -4 } }"),
              HasSubstr("value=("));
}

TEST(GraphStructureTest, ACycleIsAnError) {
  EXPECT_THAT(PrintGraphStructure(ParseGraph(R"(
                node { name: "a" op: "Relu" input: "b" }
                node { name: "b" op: "Relu" input: "a" })")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("cycle")));
}

}  // namespace
}  // namespace optfarm::inspect
