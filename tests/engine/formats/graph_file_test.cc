#include "engine/formats/tensorflow/graph_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/files.h"
#include "tensorflow/core/protobuf/saved_model.pb.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::formats {
namespace {

using ::optfarm::testing::FreshFolder;
using ::optfarm::testing::IsOk;
using ::optfarm::testing::StatusIs;
using ::optfarm::testing::TestDataPath;
using tensorflow::GraphDef;
using ::testing::AllOf;
using ::testing::HasSubstr;

GraphDef SmallGraph() {
  GraphDef graph;
  for (const char* name : {"a", "b", "c"}) {
    tensorflow::NodeDef* node = graph.add_node();
    node->set_name(name);
    node->set_op("Const");
    for (const char* key : {"dtype", "x", "y", "z", "w", "v", "u"}) {
      (*node->mutable_attr())[key].set_type(tensorflow::DT_FLOAT);
    }
    (*node->mutable_attr())["value"].mutable_tensor()->set_tensor_content(
        std::string("\0\1\2\3", 4));
  }
  graph.mutable_versions()->set_producer(24);
  return graph;
}

std::string WriteFile(const std::string& name, const std::string& bytes) {
  const std::string path = JoinPath(FreshFolder(), name);
  EXPECT_THAT(WriteFileAtomically(path, bytes), IsOk());
  return path;
}

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(GraphFileTest, ReadsWhatItWroteInBothEncodings) {
  for (const GraphEncoding encoding :
       {GraphEncoding::kBinary, GraphEncoding::kText}) {
    const std::string path = JoinPath(FreshFolder(), "graph");
    OPTFARM_ASSERT_OK(SaveGraphDef(SmallGraph(), path, encoding));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const GraphDef read, LoadGraphDef(path));
    EXPECT_EQ(read.SerializeAsString().size(),
              SmallGraph().SerializeAsString().size());
    EXPECT_EQ(*SerializeGraphDef(read), *SerializeGraphDef(SmallGraph()));
  }
}

TEST(GraphFileTest, KeepsUnknownFields) {
  // Field 999 of a node: tag 0xba 0x3e, length 3.
  std::string bytes = SmallGraph().SerializeAsString();
  const std::string node = "\x0a\x01q\x12\x04NoOp\xba\x3e\x03xyz";
  bytes += "\x0a" + std::string(1, static_cast<char>(node.size())) + node;
  OPTFARM_ASSERT_OK_AND_ASSIGN(const GraphDef graph, ParseGraphDef(bytes));
  EXPECT_THAT(*SerializeGraphDef(graph), HasSubstr("\xba\x3e\x03xyz"));
}

TEST(GraphFileTest, SaysWhereATruncatedFileEnds) {
  const std::string bytes = *SerializeGraphDef(SmallGraph());
  for (size_t length = 1; length < bytes.size(); ++length) {
    const auto graph = ParseGraphDef(bytes.substr(0, length));
    // Cut between two fields it is a graph with fewer nodes.
    if (graph.ok()) continue;
    EXPECT_THAT(graph,
                StatusIs(kInvalid, ::testing::AnyOf(HasSubstr("truncated"),
                                                    HasSubstr("is text"))))
        << length;
  }
  EXPECT_THAT(ParseGraphDef(bytes.substr(0, bytes.size() / 2), "'m.pb'"),
              StatusIs(kInvalid, AllOf(HasSubstr("'m.pb' is truncated"),
                                       HasSubstr("1 whole nodes"))));
}

TEST(GraphFileTest, RefusesBytesThatAreNoGraph) {
  EXPECT_THAT(ParseGraphDef(""), StatusIs(kInvalid, HasSubstr("is empty")));
  EXPECT_THAT(ParseGraphDef(std::string("\x01\x02\xff\xff\xff\xff\xff", 7)),
              StatusIs(kInvalid, HasSubstr("is not a TensorFlow graph")));
  EXPECT_THAT(ParseGraphDef(std::string(100, '\0')),
              StatusIs(kInvalid, HasSubstr("is not a TensorFlow graph")));
}

TEST(GraphFileTest, RefusesTextThatIsNoGraphWithThePlace) {
  EXPECT_THAT(ParseGraphDef("node {\n  name: 'a'\n  oops: 3\n}\n", "'g.pb'"),
              StatusIs(kInvalid, AllOf(HasSubstr("'g.pb' is text"),
                                       HasSubstr("line 3, column 7"))));
}

TEST(GraphFileTest, NamesWhatAFileIsInstead) {
  const struct {
    std::string bytes;
    const char* says;
  } kCases[] = {
      {"\x1f\x8b\x08 whatever", "gzip"},
      {"PK\x03\x04 whatever", "zip"},
      {"\x89HDF\r\n\x1a\n", "HDF5"},
      {std::string("\x1c\0\0\0TFL3\0\0", 10), "TensorFlow Lite"},
      {"\xff\xd8\xff\xe0", "picture"},
      {"\x93NUMPY\x01", "NumPy"},
      {"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"},
      {"<!DOCTYPE html>", "web page"},
      {"{\"modelTopology\": {}}", "JSON"},
      {std::string(60, 'x') + "\x57\xfb\x80\x8b\x24\x75\x47\xdb", "checkpoint"},
      {"saved_model_schema_version: 1", "SavedModel"},
      // ONNX: ir_version 7, producer "x", graph of 2 bytes.
      {std::string("\x08\x07\x12\x01x\x3a\x02\x0a\x00", 9), "ONNX"},
  };
  for (const auto& test : kCases) {
    EXPECT_THAT(ParseGraphDef(test.bytes),
                StatusIs(kInvalid, HasSubstr(test.says)));
  }
}

TEST(GraphFileTest, NamesMetaGraphAndSavedModel) {
  tensorflow::SavedModel saved;
  saved.set_saved_model_schema_version(1);
  tensorflow::MetaGraphDef* meta = saved.add_meta_graphs();
  meta->mutable_meta_info_def()->set_tensorflow_version("1.4.0");
  *meta->mutable_graph_def() = SmallGraph();
  EXPECT_THAT(ParseGraphDef(meta->SerializeAsString()),
              StatusIs(kInvalid, HasSubstr("MetaGraphDef")));
  EXPECT_THAT(ParseGraphDef(saved.SerializeAsString()),
              StatusIs(kInvalid, AllOf(HasSubstr("SavedModel"),
                                       HasSubstr("optctl graph freeze"))));
}

TEST(GraphFileTest, NamesFoldersAndPrefixes) {
  const std::string folder = FreshFolder();
  EXPECT_THAT(LoadGraphDef(folder), StatusIs(kInvalid, HasSubstr("a folder")));
  OPTFARM_ASSERT_OK(
      WriteFileAtomically(JoinPath(folder, "model.ckpt.index"), "x"));
  EXPECT_THAT(LoadGraphDef(folder),
              StatusIs(kInvalid, HasSubstr("checkpoint")));
  EXPECT_THAT(LoadGraphDef(JoinPath(folder, "model.ckpt")),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("prefix of a checkpoint")));
  OPTFARM_ASSERT_OK(
      WriteFileAtomically(JoinPath(folder, "saved_model.pb"), "x"));
  EXPECT_THAT(LoadGraphDef(folder),
              StatusIs(kInvalid, HasSubstr("SavedModel")));
  EXPECT_THAT(LoadGraphDef(JoinPath(folder, "none.pb")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none.pb")));
}

TEST(GraphFileTest, RefusesFilesAboveTheLimitAndTooManyNodes) {
  const std::string path = WriteFile("g.pb", *SerializeGraphDef(SmallGraph()));
  EXPECT_THAT(
      LoadGraphDef(path, 10),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("g.pb")));
  std::string bytes("\x0a\x06\x0a\x00\x12\x02op", 8);
  for (int64_t i = 0; i <= kMaxGraphNodes; ++i) bytes.append("\x0a\0", 2);
  EXPECT_THAT(
      ParseGraphDef(bytes),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("nodes")));
}

// Larger than what is read at a time, with every kind of field.
TEST(GraphFileTest, ReadsLargeGraphsPieceByPiece) {
  GraphDef graph = SmallGraph();
  for (int i = 0; i < 30; ++i) {
    tensorflow::NodeDef* node = graph.add_node();
    node->set_name(std::to_string(i));
    node->set_op("Const");
    std::string bytes(100'000 + 12345 * static_cast<size_t>(i), 'a');
    bytes.back() = static_cast<char>(i);
    (*node->mutable_attr())["value"].mutable_tensor()->set_tensor_content(
        bytes);
  }
  graph.mutable_library()->add_function()->mutable_signature()->set_name("f");
  const std::string path = JoinPath(FreshFolder(), "graph");
  OPTFARM_ASSERT_OK(SaveGraphDef(graph, path));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const std::string bytes, ReadFile(path));
  EXPECT_TRUE(bytes == *SerializeGraphDef(graph));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const GraphDef read, LoadGraphDef(path));
  EXPECT_TRUE(*SerializeGraphDef(read) == bytes);
  EXPECT_THAT(LoadGraphDef(WriteFile("cut", bytes.substr(0, 1'000'000))),
              StatusIs(kInvalid, HasSubstr("is truncated: after ")));
}

TEST(GraphFileTest, SurvivesDeepNesting) {
  std::string text = "node { name: 'a' op: 'b' attr { key: 'k' value ";
  for (int i = 0; i < 5000; ++i) text += "{ func { attr { key: 'k' value ";
  EXPECT_FALSE(ParseGraphDef(text).ok());
}

TEST(GraphFileTest, SaysWhatSharedFilesAre) {
  OPTFARM_REQUIRE_TEST_DATA();
  const struct {
    const char* path;
    const char* says;
  } kCases[] = {
      {"models/dotnet_cifar_saved_model", "SavedModel"},
      {"models/dotnet_cifar_saved_model/saved_model.pb", "SavedModel"},
      {"models/dotnet_mnist_lr_model/saved_model.pb", "SavedModel"},
      {"models/regression_savedmodel_rust/saved_model.pb", "SavedModel"},
      {"models/dotnet_cifar_model/model.ckpt.meta", "MetaGraphDef"},
      {"models/mnist_v1_checkpoint/model.ckpt.meta", "MetaGraphDef"},
      {"models/reuben_lstm_chain/model.checkpoint.meta", "MetaGraphDef"},
      {"models/dotnet_cifar_model/model.ckpt.index", "checkpoint"},
      {"models/dotnet_cifar_model/model.ckpt", "prefix of a checkpoint"},
      {"models/mnist_v1_checkpoint/model.ckpt", "checkpoint"},
      {"models/haskell_mnist_v1/MNISTBias.ckpt", "checkpoint"},
      {"models/tflite_peers/mobilenet_v1_0.25_128_quant.tflite", "Lite"},
      {"models/dotnet_cifar_model/model.ckpt.data-00000-of-00001",
       "is not a TensorFlow graph"},
      {"misc/grace_hopper.jpg", "picture"},
      {"misc/labels_mobilenet_1001.txt", "is text, but not a graph"},
  };
  for (const auto& test : kCases) {
    const auto graph = LoadGraphDef(TestDataPath(test.path));
    EXPECT_FALSE(graph.ok()) << test.path;
    EXPECT_THAT(std::string(graph.status().message()), HasSubstr(test.says))
        << test.path;
  }
}

TEST(GraphFileTest, ReadsSharedGraphs) {
  OPTFARM_REQUIRE_TEST_DATA();
  for (const char* path : {"models/mobilenet_v1_0.25_128/frozen_graph.pb",
                           "models/conv_actions_frozen/conv_actions_frozen.pb",
                           "models/haskell_mnist_v1/MNIST.pb",
                           "models/mobilenet_v1_1.0_224_eval_graph/"
                           "mobilenet_v1_1.0_224_eval.pbtxt",
                           "golden/cifar/int8/expected.pb"}) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const GraphDef graph,
                                 LoadGraphDef(TestDataPath(path)));
    EXPECT_GT(graph.node_size(), 10) << path;
    OPTFARM_ASSERT_OK_AND_ASSIGN(const GraphDef again,
                                 ParseGraphDef(*SerializeGraphDef(graph)));
    EXPECT_EQ(*SerializeGraphDef(again), *SerializeGraphDef(graph));
  }
}

}  // namespace
}  // namespace optfarm::formats
