// Event files: framing, checksums, and the names of an imported graph.

#include "engine/formats/tensorflow/event_file.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "engine/formats/files/crc32c.h"
#include "tensorflow/core/util/event.pb.h"
#include "tests/support/status_matchers.h"

namespace optfarm::formats {
namespace {

tensorflow::GraphDef ParseGraph(const std::string& text) {
  tensorflow::GraphDef graph;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &graph));
  return graph;
}

uint32_t Number32(absl::string_view bytes) {
  uint32_t number = 0;
  std::memcpy(&number, bytes.data(), 4);
  return number;
}

// Takes the next record off `file`, checking its checksums.
tensorflow::Event TakeRecord(absl::string_view* file) {
  tensorflow::Event event;
  EXPECT_GE(file->size(), 16u);
  uint64_t length = 0;
  std::memcpy(&length, file->data(), 8);
  EXPECT_EQ(UnmaskCrc(Number32(file->substr(8))), Crc32c(file->substr(0, 8)));
  const absl::string_view record = file->substr(12, length);
  EXPECT_EQ(UnmaskCrc(Number32(file->substr(12 + length))), Crc32c(record));
  EXPECT_TRUE(event.ParseFromString(std::string(record)));
  file->remove_prefix(16 + length);
  return event;
}

TEST(EventFileTest, HasAVersionThenTheGraph) {
  const tensorflow::GraphDef graph =
      ParseGraph(R"(node { name: "x" op: "Placeholder" })");
  const auto bytes = GraphToEventFile(graph, absl::FromUnixMillis(1500));
  OPTFARM_ASSERT_OK(bytes);
  absl::string_view rest = *bytes;
  const tensorflow::Event version = TakeRecord(&rest);
  EXPECT_EQ(version.file_version(), "brain.Event:2");
  EXPECT_EQ(version.wall_time(), 1.5);
  const tensorflow::Event content = TakeRecord(&rest);
  EXPECT_EQ(content.wall_time(), 1.5);
  tensorflow::GraphDef read;
  EXPECT_TRUE(read.ParseFromString(content.graph_def()));
  EXPECT_EQ(read.DebugString(), graph.DebugString());
  EXPECT_TRUE(rest.empty());
}

TEST(EventFileTest, IsNamedSoThatTensorBoardFindsIt) {
  EXPECT_EQ(EventFileName(absl::FromUnixSeconds(1500000000), "host"),
            "events.out.tfevents.1500000000.host");
}

TEST(EventFileTest, ImportedNamesAreScopedWhereverTheyStand) {
  const tensorflow::GraphDef graph =
      ImportedGraph(ParseGraph(R"(node { name: "x" op: "Placeholder" }
                    node { name: "y" op: "Relu" input: "x:1" input: "^x"
                      attr { key: "_class" value { list {
                        s: "loc:@x" s: "other" } } } })"),
                    "import");
  EXPECT_EQ(graph.node(0).name(), "import/x");
  EXPECT_EQ(graph.node(1).name(), "import/y");
  EXPECT_EQ(graph.node(1).input(0), "import/x:1");
  EXPECT_EQ(graph.node(1).input(1), "^import/x");
  EXPECT_EQ(graph.node(1).attr().at("_class").list().s(0), "loc:@import/x");
  EXPECT_EQ(graph.node(1).attr().at("_class").list().s(1), "other");
}

}  // namespace
}  // namespace optfarm::formats
