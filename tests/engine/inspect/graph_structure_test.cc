// The order of nodes, and what is kept of constants.

#include "engine/inspect/graph_structure.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "tensorflow/core/framework/graph.pb.h"
#include "tests/support/status_matchers.h"

namespace optfarm::inspect {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

absl::StatusOr<std::vector<StructureNode>> StructureOf(
    const std::string& text) {
  tensorflow::GraphDef graph;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &graph));
  return ListGraphStructure(graph);
}

TEST(GraphStructureTest, NodesComeInTheOrderOfExecutionWithInputsAsWritten) {
  const auto nodes = StructureOf(R"(
    node { name: "y" op: "Relu" input: "x:0" input: "^x" }
    node { name: "x" op: "Placeholder" })");
  OPTFARM_ASSERT_OK(nodes);
  ASSERT_EQ(nodes->size(), 2u);
  EXPECT_EQ((*nodes)[0].name, "x");
  EXPECT_FALSE((*nodes)[0].constant.has_value());
  EXPECT_EQ((*nodes)[1].op, "Relu");
  EXPECT_THAT((*nodes)[1].inputs, ElementsAre("x:0", "^x"));
}

TEST(GraphStructureTest, ConstantsHaveThreeValuesAtMost) {
  const auto nodes = StructureOf(R"(node { name: "c" op: "Const"
    attr { key: "value" value { tensor { dtype: DT_FLOAT
      tensor_shape { dim { size: 4 } } float_val: 0.1 } } } })");
  OPTFARM_ASSERT_OK(nodes);
  const ConstantPreview& constant = *(*nodes)[0].constant;
  EXPECT_EQ(constant.problem, "");
  EXPECT_EQ(constant.dtype, tensorflow::DT_FLOAT);
  EXPECT_EQ(constant.shape.num_elements(), 4);
  EXPECT_THAT(constant.first_values, ElementsAre("0.1", "0.1", "0.1"));
}

TEST(GraphStructureTest, MalformedConstantsHaveAProblem) {
  const auto nodes = StructureOf(R"(node { name: "c" op: "Const" })");
  OPTFARM_ASSERT_OK(nodes);
  EXPECT_EQ((*nodes)[0].constant->problem, "none");
  EXPECT_THAT((*nodes)[0].constant->first_values, IsEmpty());
}

TEST(GraphStructureTest, ACycleIsAnError) {
  EXPECT_THAT(StructureOf(R"(node { name: "a" op: "Relu" input: "b" }
                             node { name: "b" op: "Relu" input: "a" })"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("cycle")));
}

}  // namespace
}  // namespace optfarm::inspect
