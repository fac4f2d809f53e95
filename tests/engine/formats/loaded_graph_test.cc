#include "engine/formats/tensorflow/loaded_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "tests/support/status_matchers.h"

namespace optfarm::formats {
namespace {

using ::optfarm::testing::StatusIs;
using tensorflow::GraphDef;
using tensorflow::NodeDef;
using tensorflow::TensorProto;
using ::testing::HasSubstr;

// Floats that are more than are copied.
constexpr int kMany = 20'000;

class LoadedGraphTest : public ::testing::Test {
 protected:
  void SetUp() override {
    OPTFARM_ASSERT_OK_AND_ASSIGN(folder_, MakeTemporaryFolder("loaded_graph"));
    path_ = JoinPath(folder_, "model.pb");
  }
  void TearDown() override { (void)RemoveAll(folder_); }

  // A constant of `count` floats that are bytes of the file.
  TensorProto* AddConstant(const std::string& name, int count) {
    NodeDef* node = graph_.add_node();
    node->set_name(name);
    node->set_op("Const");
    graph::SetType(node, "dtype", tensorflow::DT_FLOAT);
    TensorProto* value = (*node->mutable_attr())["value"].mutable_tensor();
    value->set_dtype(tensorflow::DT_FLOAT);
    value->mutable_tensor_shape()->add_dim()->set_size(count);
    std::string bytes(sizeof(float) * static_cast<size_t>(count), '\0');
    for (size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<char>(i * 7 % 64);
    }
    value->set_tensor_content(bytes);
    return value;
  }

  absl::StatusOr<LoadedGraph> Load() {
    OPTFARM_RETURN_IF_ERROR(SaveGraphDef(graph_, path_));
    return LoadGraph(path_);
  }
  // Loads, and expects a graph with the same nodes.
  void ExpectAsSaved() {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const LoadedGraph loaded, Load());
    EXPECT_EQ(loaded.package, nullptr);
    EXPECT_EQ(loaded.def.ShortDebugString(), graph_.ShortDebugString());
  }

  std::string folder_, path_;
  GraphDef graph_;
};

TEST_F(LoadedGraphTest, LargeConstantsStayInTheFile) {
  AddConstant("small", 100);
  const TensorProto large = *AddConstant("large/weights", kMany);
  graph_.mutable_node(1)->set_device("/cpu:0");
  graph_.mutable_versions()->set_producer(24);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const LoadedGraph loaded, Load());
  ASSERT_EQ(loaded.def.node_size(), 2);
  EXPECT_EQ(loaded.def.node(0).ShortDebugString(),
            graph_.node(0).ShortDebugString());
  EXPECT_EQ(loaded.def.versions().producer(), 24);
  const NodeDef& node = loaded.def.node(1);
  EXPECT_EQ(node.op(), "ImmutableConst");
  EXPECT_EQ(node.name(), "large/weights");
  EXPECT_EQ(node.device(), "/cpu:0");
  EXPECT_EQ(node.attr().at("dtype").type(), tensorflow::DT_FLOAT);
  EXPECT_EQ(node.attr().at("shape").shape().ShortDebugString(),
            large.tensor_shape().ShortDebugString());
  ASSERT_NE(loaded.package, nullptr);
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const SharedBytes region,
      RegionsOf(loaded.package)(node.attr().at("memory_region_name").s()));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const std::string file, ReadFile(path_));
  EXPECT_EQ(region.mapped_file, file);
  EXPECT_EQ(region.bytes, large.tensor_content());
}

TEST_F(LoadedGraphTest, ConstantsThatAreNotPlainBytesAreRead) {
  AddConstant("has_fewer", kMany)
      ->mutable_tensor_shape()
      ->mutable_dim(0)
      ->set_size(kMany - 1);
  AddConstant("has_more_besides", kMany)->add_float_val(1);
  AddConstant("says_otherwise", kMany)->set_dtype(tensorflow::DT_INT32);
  AddConstant("flags", kMany)->set_dtype(tensorflow::DT_BOOL);
  AddConstant("waits", kMany);
  graph_.mutable_node(4)->add_input("^flags");
  AddConstant("none", kMany);
  graph_.mutable_node(5)->set_op("Placeholder");
  ExpectAsSaved();
}

TEST_F(LoadedGraphTest, ARegionOfNoPackageIsNotTakenForOneOfTheFile) {
  AddConstant("large", kMany);
  NodeDef* node = graph_.add_node();
  node->set_name("stolen");
  node->set_op("ImmutableConst");
  graph::SetString(node, "memory_region_name",
                   absl::StrCat(kRegionPrefix, "large"));
  ExpectAsSaved();
}

TEST_F(LoadedGraphTest, TheLastOfTwoValuesCountsAsInProtobuf) {
  AddConstant("twice", kMany);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const std::string bytes,
                               SerializeGraphDef(graph_));
  // A node that is merged out of two: its value is the second one's.
  NodeDef second;
  TensorProto* value = (*second.mutable_attr())["value"].mutable_tensor();
  value->set_dtype(tensorflow::DT_FLOAT);
  value->add_float_val(3);
  const std::string node =
      graph_.node(0).SerializeAsString() + second.SerializeAsString();
  std::string length;
  for (size_t left = node.size(); left > 0; left >>= 7) {
    length += static_cast<char>((left & 0x7f) | (left > 0x7f ? 0x80 : 0));
  }
  OPTFARM_ASSERT_OK(
      WriteFileAtomically(path_, absl::StrCat("\n", length, node)));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const LoadedGraph loaded, LoadGraph(path_));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const GraphDef read, LoadGraphDef(path_));
  EXPECT_EQ(loaded.def.ShortDebugString(), read.ShortDebugString());
  EXPECT_EQ(loaded.def.node(0).op(), "Const");
}

TEST_F(LoadedGraphTest, DamageIsToldAsWithoutMapping) {
  AddConstant("large", kMany);
  AddConstant("other", kMany);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const std::string bytes,
                               SerializeGraphDef(graph_));
  OPTFARM_ASSERT_OK(
      WriteFileAtomically(path_, bytes.substr(0, bytes.size() - 10)));
  EXPECT_THAT(LoadGraph(path_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("is truncated: after 1 whole nodes")));
  EXPECT_THAT(LoadGraph(path_, bytes.size() / 2),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("the limit is")));
}

// What is mapped is what would have been read, whatever the bytes are.
TEST_F(LoadedGraphTest, FlippedBitsAreTakenAsWithoutMapping) {
  AddConstant("large", kMany);
  AddConstant("small", 2);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const std::string bytes,
                               SerializeGraphDef(graph_));
  // Where the nodes' own fields are: before the elements and behind them.
  constexpr size_t kHead = 80, kTail = 120;
  int mapped = 0;
  for (size_t i = 0; i < kHead + kTail; ++i) {
    const size_t at = i < kHead ? i : bytes.size() - (i - kHead) - 1;
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (i % 8)));
    std::ofstream(path_, std::ios::binary) << damaged;
    const absl::StatusOr<LoadedGraph> loaded = LoadGraph(path_);
    const absl::StatusOr<GraphDef> read = LoadGraphDef(path_);
    ASSERT_EQ(loaded.status(), read.status()) << at;
    if (!loaded.ok()) continue;
    ASSERT_EQ(loaded->def.node_size(), read->node_size()) << at;
    for (int n = 0; n < read->node_size(); ++n) {
      const NodeDef& node = loaded->def.node(n);
      ASSERT_EQ(node.name(), read->node(n).name()) << at;
      if (node.op() != "ImmutableConst") {
        ASSERT_EQ(node.SerializeAsString().size(),
                  read->node(n).SerializeAsString().size())
            << at;
        continue;
      }
      ++mapped;
      OPTFARM_ASSERT_OK_AND_ASSIGN(
          const SharedBytes region,
          RegionsOf(loaded->package)(node.attr().at("memory_region_name").s()));
      ASSERT_EQ(region.bytes,
                read->node(n).attr().at("value").tensor().tensor_content())
          << at;
    }
  }
  EXPECT_GT(mapped, 0);
}

}  // namespace
}  // namespace optfarm::formats
