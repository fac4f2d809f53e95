// The table of op signatures against small nodes and against every node of the
// shared models.

#include "engine/graph/op_defs.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tests/engine/graph/model_files.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::graph {
namespace {

using ::optfarm::testing::IsOk;
using ::optfarm::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace tensorflow;  // NOLINT: DT_* in expectations

NodeDef Node(absl::string_view text) {
  NodeDef node;
  EXPECT_TRUE(
      google::protobuf::TextFormat::ParseFromString(std::string(text), &node));
  return node;
}

TEST(OpDefs, KnowsManyOpsAndNoOthers) {
  EXPECT_GT(AllOpNames().size(), 500u);
  ASSERT_NE(FindOpDef("Conv2D"), nullptr);
  EXPECT_EQ(FindOpDef("Conv2D")->name(), "Conv2D");
  EXPECT_EQ(FindOpDef("Conv2d"), nullptr);
  EXPECT_EQ(FindOpDef(""), nullptr);
}

TEST(OpDefs, TypesComeFromAttributesAndTheirDefaults) {
  const NodeDef arg_max =
      Node("name: 'a' op: 'ArgMax' attr { key: 'T' value { type: DT_FLOAT } }");
  EXPECT_THAT(*InputTypes(*FindOpDef("ArgMax"), arg_max),
              ElementsAre(DT_FLOAT, DT_INT32));
  EXPECT_THAT(*OutputTypes(*FindOpDef("ArgMax"), arg_max),
              ElementsAre(DT_INT64));
}

TEST(OpDefs, ListsAreExpanded) {
  const NodeDef concat = Node(
      "name: 'c' op: 'ConcatV2' attr { key: 'N' value { i: 3 } } "
      "attr { key: 'T' value { type: DT_HALF } }");
  EXPECT_THAT(*InputTypes(*FindOpDef("ConcatV2"), concat),
              ElementsAre(DT_HALF, DT_HALF, DT_HALF, DT_INT32));
  EXPECT_EQ(*InputCount(*FindOpDef("ConcatV2"), concat), 4);
  const PortRange axis = *InputPorts(*FindOpDef("ConcatV2"), concat, "axis");
  EXPECT_EQ(axis.begin, 3);
  EXPECT_EQ(axis.end, 4);
  const NodeDef identity = Node(
      "name: 'i' op: 'IdentityN' attr { key: 'T' value { "
      "list { type: [DT_FLOAT, DT_STRING] } } }");
  EXPECT_THAT(*OutputTypes(*FindOpDef("IdentityN"), identity),
              ElementsAre(DT_FLOAT, DT_STRING));
}

TEST(OpDefs, VariablesGiveReferences) {
  const NodeDef variable = Node(
      "name: 'v' op: 'VariableV2' attr { key: 'dtype' value { type: DT_FLOAT "
      "} }");
  EXPECT_THAT(*OutputTypes(*FindOpDef("VariableV2"), variable),
              ElementsAre(DT_FLOAT_REF));
  EXPECT_TRUE(IsRefType(DT_FLOAT_REF));
  EXPECT_FALSE(IsRefType(DT_FLOAT));
}

TEST(OpDefs, DamagedNodesGetAnErrorThatNamesThem) {
  const OpDef& split = *FindOpDef("Split");
  const struct {
    const char* node;
    const char* message;
  } cases[] = {
      {"attr { key: 'T' value { type: DT_FLOAT } }",
       "attribute 'num_split' is missing"},
      {"attr { key: 'num_split' value { i: 1000000000000 } }",
       "asks for 1000000000000 tensors"},
      {"attr { key: 'num_split' value { i: -1 } }", "asks for -1 tensors"},
      {"attr { key: 'num_split' value { f: 2 } }", "wrong kind"},
      {"attr { key: 'num_split' value { i: 2 } }", "attribute 'T' is missing"},
  };
  for (const auto& c : cases) {
    const NodeDef node =
        Node(std::string("name: 'the_split' op: 'Split' ") + c.node);
    EXPECT_THAT(
        OutputTypes(split, node),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.message)));
    EXPECT_THAT(OutputTypes(split, node).status().message(),
                HasSubstr("the_split"));
  }
}

TEST(OpDefs, DefaultsAreAddedOnlyWhereMissing) {
  NodeDef conv = Node(
      "name: 'c' op: 'Conv2D' attr { key: 'data_format' value { s: 'NCHW' } }");
  ASSERT_THAT(ApplyDefaultAttributes(*FindOpDef("Conv2D"), &conv), IsOk());
  EXPECT_EQ(conv.attr().at("data_format").s(), "NCHW");
  EXPECT_TRUE(conv.attr().at("use_cudnn_on_gpu").b());
  EXPECT_FALSE(conv.attr().contains("T"));
  EXPECT_FALSE(conv.attr().contains("dilations")) << "late attribute";
  ASSERT_THAT(ApplyDefaultAttributes(*FindOpDef("Conv2D"), &conv,
                                     DefaultAttributes::kAll),
              IsOk());
  EXPECT_THAT(conv.attr().at("dilations").list().i(), ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(ApplyDefaultAttributes(*FindOpDef("Relu"), &conv),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("Relu")));
}

TEST(OpDefs, UnknownOpsCountAsStateful) {
  EXPECT_TRUE(IsStateful("RandomUniform"));
  EXPECT_FALSE(IsStateful("Conv2D"));
  EXPECT_TRUE(IsStateful("NobodyKnowsMe"));
}

// Every node of every shared model: the op is known, so are its attributes,
// and it has as many data inputs as the signature says.
TEST(OpDefs, FitEveryModelNode) {
  OPTFARM_REQUIRE_TEST_DATA();
  int nodes = 0;
  for (const std::string& path : graph::testing::ModelFiles()) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const std::vector<GraphDef> graphs,
                                 graph::testing::ReadGraphs(path));
    for (const GraphDef& graph : graphs) {
      for (const NodeDef& node : graph.node()) {
        ++nodes;
        const OpDef* op_def = FindOpDef(node.op());
        ASSERT_NE(op_def, nullptr) << path << ": " << node.op();
        for (const auto& [name, value] : node.attr()) {
          if (name.front() == '_') continue;
          EXPECT_NE(FindAttrDef(*op_def, name), nullptr)
              << path << ": " << node.op() << "." << name;
        }
        int inputs = 0;
        for (const std::string& input : node.input()) {
          inputs += input.front() != '^';
        }
        const absl::StatusOr<int> wanted = InputCount(*op_def, node);
        ASSERT_THAT(wanted, IsOk()) << path;
        EXPECT_EQ(inputs, *wanted) << path << ": " << node.ShortDebugString();
        EXPECT_THAT(InputTypes(*op_def, node), IsOk()) << path;
        EXPECT_THAT(OutputTypes(*op_def, node), IsOk()) << path;
      }
    }
  }
  EXPECT_GT(nodes, 10000);
}

}  // namespace
}  // namespace optfarm::graph
