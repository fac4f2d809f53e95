// The lines of `optctl graph summarize --print_structure`.

#include "client_cli/tables/structure_text.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tests/support/status_matchers.h"

namespace optfarm::client_cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

tensorflow::GraphDef ParseGraph(const std::string& text) {
  tensorflow::GraphDef graph;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &graph));
  return graph;
}

absl::StatusOr<std::vector<std::string>> LinesOf(const std::string& text) {
  const auto structure = inspect::ListGraphStructure(ParseGraph(text));
  if (!structure.ok()) return structure.status();
  return StructureLines(*structure);
}

// The line of a constant with this tensor.
std::string LineOf(const std::string& tensor) {
  const auto lines = LinesOf(
      absl::StrCat("node { name: 'c' op: 'Const' attr { key: 'value' value { "
                   "tensor { ",
                   tensor, " } } } }"));
  return lines.ok() ? (*lines)[0] : std::string(lines.status().message());
}

TEST(StructureTextTest, NodesStandInTheOrderThatTensorFlowSortsThem) {
  const auto lines = LinesOf(R"(
    node { name: "y" op: "MatMul" input: "x:0" input: "w" input: "^x" }
    node { name: "x" op: "Placeholder" }
    node { name: "w" op: "Placeholder" })");
  OPTFARM_ASSERT_OK(lines);
  EXPECT_THAT(*lines, ElementsAre("w (Placeholder): []", "x (Placeholder): []",
                                  "y (MatMul): [x:0, w, ^x]"));
}

TEST(StructureTextTest, ConstantsShowTheirFirstValues) {
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

TEST(StructureTextTest, MalformedConstantsSayWhatIsWrong) {
  EXPECT_THAT(LineOf("dtype: DT_FLOAT tensor_shape { dim { size: -4 } }"),
              HasSubstr("value=("));
}

}  // namespace
}  // namespace optfarm::client_cli
