// What compare_graphs counts as a difference, and what not.

#include "engine/inspect/graph_difference.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "tensorflow/core/framework/graph.pb.h"

namespace optfarm::inspect {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<std::string> Differences(const std::string& first,
                                     const std::string& second,
                                     size_t most = 10) {
  tensorflow::GraphDef a, b;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(first, &a));
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(second, &b));
  return FindGraphDifferences(a, b, most);
}

TEST(GraphDifferenceTest, OrderVersionsAndSpellingDoNotCount) {
  EXPECT_THAT(Differences(R"(node { name: "a" op: "X" }
                     node { name: "b" op: "Y" input: "a" input: "^c"
                            input: "^a" }
                     node { name: "c" op: "Z"
                            attr { key: "_note" value { i: 1 } } }
                     versions { producer: 22 })",
                          R"(node { name: "c" op: "Z" }
                     node { name: "b" op: "Y" input: "a:0" input: "^a"
                            input: "^c" }
                     node { name: "a" op: "X" }
                     library { function { signature { name: "f" } } })"),
              IsEmpty());
}

TEST(GraphDifferenceTest, TensorsAreComparedByValue) {
  const std::string list =
      R"(node { name: "c" op: "Const" attr { key: "value" value { tensor {
           dtype: DT_INT32 tensor_shape { dim { size: 2 } } int_val: 1 } } } })";
  const std::string content =
      R"(node { name: "c" op: "Const" attr { key: "value" value { tensor {
           dtype: DT_INT32 tensor_shape { dim { size: 2 } }
           tensor_content: "\001\000\000\000\001\000\000\000" } } } })";
  const std::string other =
      R"(node { name: "c" op: "Const" attr { key: "value" value { tensor {
           dtype: DT_INT32 tensor_shape { dim { size: 2 } } int_val: 2 } } } })";
  EXPECT_THAT(Differences(list, content), IsEmpty());
  EXPECT_THAT(Differences(list, other),
              ElementsAre(HasSubstr("has attribute 'value'")));
}

TEST(GraphDifferenceTest, NamesWhatDiffers) {
  EXPECT_THAT(Differences(R"(node { name: "a" op: "X" })",
                          R"(node { name: "a" op: "Y" })"),
              ElementsAre("Node 'a' has op 'X' in the first graph and 'Y' in "
                          "the second"));
  EXPECT_THAT(Differences(R"(node { name: "a" op: "X" device: "/cpu:0" })",
                          R"(node { name: "a" op: "X" })"),
              ElementsAre(HasSubstr("has device '/cpu:0' in the first graph")));
  EXPECT_THAT(Differences(R"(node { name: "a" op: "X" input: "p:1" })",
                          R"(node { name: "a" op: "X" input: "p" })"),
              ElementsAre(HasSubstr("has input 0 'p:1'")));
  EXPECT_THAT(Differences(R"(node { name: "a" op: "X" input: "p" })",
                          R"(node { name: "a" op: "X" })"),
              ElementsAre(HasSubstr("has 1 inputs in the first graph and 0")));
  EXPECT_THAT(Differences(R"(node { name: "a" op: "X" input: "^p" })",
                          R"(node { name: "a" op: "X" })"),
              ElementsAre(HasSubstr("has control inputs [^p]")));
  EXPECT_THAT(Differences(R"(node { name: "a" op: "X" })",
                          R"(node { name: "a" op: "X"
                       attr { key: "T" value { type: DT_FLOAT } } })"),
              ElementsAre(HasSubstr("'T' only in the second graph, with type: "
                                    "DT_FLOAT")));
}

TEST(GraphDifferenceTest, TellsNodesOfOneGraphOnlyUpToTheLimit) {
  const std::string first = R"(node { name: "a" op: "X" }
                               node { name: "b" op: "X" })";
  const std::string second = R"(node { name: "c" op: "X" })";
  EXPECT_THAT(Differences(first, second),
              ElementsAre("Node 'a' is only in the first graph",
                          "Node 'b' is only in the first graph",
                          "Node 'c' is only in the second graph"));
  EXPECT_THAT(Differences(first, second, 1), SizeIs(1));
}

}  // namespace
}  // namespace optfarm::inspect
