// Differences of graphs as sentences.

#include "client_cli/tables/difference_text.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "tensorflow/core/framework/graph.pb.h"

namespace optfarm::client_cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::vector<std::string> Differences(const std::string& first,
                                     const std::string& second,
                                     size_t most = 10) {
  tensorflow::GraphDef a, b;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(first, &a));
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(second, &b));
  std::vector<std::string> texts;
  for (const inspect::NodeDifference& difference :
       inspect::FindGraphDifferences(a, b, most)) {
    texts.push_back(DifferenceText(difference));
  }
  return texts;
}

TEST(DifferenceTextTest, NamesWhatDiffers) {
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

TEST(DifferenceTextTest, TellsNodesOfOneGraphOnlyUpToTheLimit) {
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
}  // namespace optfarm::client_cli
