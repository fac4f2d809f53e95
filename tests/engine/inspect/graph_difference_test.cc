// What compare_graphs counts as a difference, and what not.

#include "engine/inspect/graph_difference.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "tensorflow/core/framework/graph.pb.h"

namespace optfarm::inspect {
namespace {

using ::testing::IsEmpty;

std::vector<NodeDifference> Differences(const std::string& first,
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
  const auto differences = Differences(list, other);
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_EQ(differences[0].kind, NodeDifference::Kind::kAttribute);
  EXPECT_EQ(differences[0].attribute, "value");
  EXPECT_NE(differences[0].first, differences[0].second);
}

TEST(GraphDifferenceTest, TheFirstDifferenceOfANodeIsReported) {
  const auto differences =
      Differences(R"(node { name: "a" op: "X" input: "p" input: "q:1" }
                     node { name: "gone" op: "X" })",
                  R"(node { name: "new" op: "X" }
                     node { name: "a" op: "X" input: "p:0" input: "q"
                            attr { key: "T" value { type: DT_FLOAT } } })");
  ASSERT_EQ(differences.size(), 3u);
  EXPECT_EQ(differences[0].node, "a");
  EXPECT_EQ(differences[0].kind, NodeDifference::Kind::kInput);
  EXPECT_EQ(differences[0].input, 1u);
  EXPECT_EQ(differences[0].first, "q:1");
  EXPECT_EQ(differences[0].second, "q");
  EXPECT_EQ(differences[1].kind, NodeDifference::Kind::kNode);
  EXPECT_EQ(differences[1].first, "gone");
  EXPECT_FALSE(differences[1].second.has_value());
  EXPECT_EQ(differences[2].second, "new");
  EXPECT_FALSE(differences[2].first.has_value());
}

}  // namespace
}  // namespace optfarm::inspect
