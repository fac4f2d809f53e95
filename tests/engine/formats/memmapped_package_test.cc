#include "engine/formats/tensorflow/memmapped_package.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "base/files.h"
#include "engine/formats/tensorflow/file_kind.h"
#include "engine/formats/tensorflow/graph_file.h"
#include "engine/formats/tensorflow/loaded_graph.h"
#include "tensorflow/core/util/memmapped_file_system.pb.h"
#include "tests/support/graph_builder.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::formats {
namespace {

using ::optfarm::testing::FloatT;
using ::optfarm::testing::FreshFolder;
using ::optfarm::testing::GraphBuilder;
using ::optfarm::testing::IsOk;
using ::optfarm::testing::StatusIs;
using tensorflow::GraphDef;
using tensorflow::MemmappedFileSystemDirectory;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;

// Three constants of 12, 16 and 8 bytes and something that reads them.
GraphDef SmallGraph() {
  GraphBuilder b;
  b.Placeholder("x", {3});
  b.Floats("a/b", {3}, {1, 2, 3});
  b.Floats("a-b", {4}, {9});  // Repeated: 9 9 9 9.
  b.Ints("small", {2}, {5, 6});
  b.Node("sum", "Add", {"x", "a/b"}, FloatT());
  b.mutable_def()->mutable_versions()->set_producer(24);
  return b.def();
}

std::string Package(const GraphDef& graph, int64_t min_bytes = 12) {
  auto made = SerializeMemmapped(graph, min_bytes);
  EXPECT_THAT(made, IsOk());
  return made.ok() ? made->bytes : "";
}

// The package's directory may be changed before it is put together again.
std::string WithDirectory(
    const std::string& package,
    const std::function<void(MemmappedFileSystemDirectory*)>& change) {
  uint64_t at = 0;
  std::memcpy(&at, &package[package.size() - 8], 8);
  MemmappedFileSystemDirectory directory;
  EXPECT_TRUE(
      directory.ParseFromString(package.substr(at, package.size() - 8 - at)));
  change(&directory);
  return package.substr(0, at) + directory.SerializeAsString() +
         package.substr(package.size() - 8);
}

absl::Status StatusOfBytes(const std::string& bytes) {
  const auto package = MemmappedPackage::FromBytes(bytes, "m.pkg");
  if (!package.ok()) return package.status();
  return (*package)->GraphWithConstants().status();
}

TEST(MemmappedPackageTest, HoldsLargeConstantsAligned) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const MemmappedBytes made,
                               SerializeMemmapped(SmallGraph(), 12));
  EXPECT_EQ(made.converted_nodes, 2);
  EXPECT_EQ(IdentifyBytes(made.bytes), FileKind::kMemoryMappedGraph);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto package,
                               MemmappedPackage::FromBytes(made.bytes, "m"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const GraphDef graph, package->Graph());
  EXPECT_EQ(graph.versions().producer(), 24);
  const tensorflow::NodeDef& node = graph.node(1);
  EXPECT_EQ(node.op(), "ImmutableConst");
  EXPECT_EQ(node.attr_size(), 3);
  EXPECT_EQ(node.attr().at("memory_region_name").s(),
            "memmapped_package://a_b");
  // The same name after replacing what paths cannot have.
  EXPECT_EQ(graph.node(2).attr().at("memory_region_name").s(),
            "memmapped_package://a_b_");
  EXPECT_EQ(graph.node(3).op(), "Const");
  for (const char* name :
       {"memmapped_package://a_b", "memmapped_package://a_b_"}) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const absl::string_view region,
                                 package->Find(name));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(region.data()) % 64, 0u);
  }
  EXPECT_EQ(package->Find("memmapped_package://a_b")->size(), 12u);
}

TEST(MemmappedPackageTest, GivesTheGraphBack) {
  const std::string path = JoinPath(FreshFolder(), "model.mmpb");
  OPTFARM_ASSERT_OK_AND_ASSIGN(const int converted,
                               SaveMemmapped(SmallGraph(), 12, path));
  EXPECT_EQ(converted, 2);
  EXPECT_EQ(*ReadFile(path), Package(SmallGraph()));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const GraphDef graph, LoadGraphDef(path));
  EXPECT_EQ(graph.node(1).op(), "Const");
  EXPECT_EQ(graph.node(1).attr().at("value").tensor().tensor_content(),
            std::string("\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40", 12));
  EXPECT_EQ(graph.node(2).attr().at("value").tensor().tensor_content().size(),
            16u);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const LoadedGraph loaded, LoadGraph(path));
  ASSERT_NE(loaded.package, nullptr);
  EXPECT_EQ(loaded.def.node(1).op(), "ImmutableConst");
}

TEST(MemmappedPackageTest, OrdinaryGraphsLoadWithoutAPackage) {
  const std::string path = JoinPath(FreshFolder(), "graph.pb");
  ASSERT_THAT(SaveGraphDef(SmallGraph(), path), IsOk());
  OPTFARM_ASSERT_OK_AND_ASSIGN(const LoadedGraph loaded, LoadGraph(path));
  EXPECT_EQ(loaded.package, nullptr);
  EXPECT_EQ(loaded.def.node_size(), 5);
}

TEST(MemmappedPackageTest, IsKnownWithoutAnyRegionBeforeTheGraph) {
  const std::string bytes = Package(SmallGraph(), 1 << 20);
  EXPECT_EQ(IdentifyBytes(bytes), FileKind::kMemoryMappedGraph);
  EXPECT_THAT(StatusOfBytes(bytes), IsOk());
}

TEST(MemmappedPackageTest, ReadsOldDirectoriesWithoutLengths) {
  const std::string bytes = WithDirectory(
      Package(SmallGraph()), [](MemmappedFileSystemDirectory* directory) {
        for (auto& element : *directory->mutable_element()) {
          element.clear_length();
        }
      });
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto package,
                               MemmappedPackage::FromBytes(bytes, "m"));
  // With the zeros behind it.
  EXPECT_EQ(package->Find("memmapped_package://a_b")->size(), 64u);
  EXPECT_THAT(package->GraphWithConstants(), IsOk());
}

TEST(MemmappedPackageTest, RefusesCorruptDirectories) {
  const std::string good = Package(SmallGraph());
  EXPECT_THAT(StatusOfBytes("12345678"),
              StatusIs(kDataLoss, HasSubstr("too short")));
  std::string behind = good;
  behind[behind.size() - 1] = 1;
  EXPECT_THAT(StatusOfBytes(behind),
              StatusIs(kDataLoss, AllOf(HasSubstr("Corrupted memmapped model"),
                                        HasSubstr("directory"))));
  const struct {
    std::function<void(MemmappedFileSystemDirectory*)> change;
    const char* says;
  } kCases[] = {
      {[](auto* d) { d->mutable_element(1)->set_offset(0); },
       "behind the one that follows"},
      {[](auto* d) { d->mutable_element(2)->set_offset(uint64_t{1} << 40); },
       "behind the one that follows"},
      {[](auto* d) { d->mutable_element(0)->set_length(65); },
       "65 bytes in the place of 64"},
      {[](auto* d) { d->mutable_element(1)->set_name(d->element(0).name()); },
       "twice"},
      {[](auto* d) { d->mutable_element(2)->set_name("other"); }, "no graph"},
      {[](auto* d) { d->mutable_element(2)->set_length(3); }, "is damaged"},
      {[](auto* d) { d->mutable_element(0)->set_length(8); },
       "too few for 3 elements"},
  };
  for (const auto& test : kCases) {
    EXPECT_THAT(StatusOfBytes(WithDirectory(good, test.change)),
                StatusIs(kDataLoss, HasSubstr(test.says)));
  }
}

TEST(MemmappedPackageTest, EveryFlippedByteIsAnErrorOrAGraph) {
  const std::string good = Package(SmallGraph());
  for (size_t at = 0; at < good.size(); ++at) {
    for (const char flip : {'\x01', '\xff'}) {
      std::string damaged = good;
      damaged[at] = static_cast<char>(damaged[at] ^ flip);
      const absl::Status status = StatusOfBytes(damaged);
      if (!status.ok()) {
        EXPECT_THAT(status, StatusIs(kDataLoss, HasSubstr("m.pkg")));
      }
      ParseGraphDef(damaged).IgnoreError();
    }
  }
}

TEST(MemmappedPackageTest, NeverLooksOutsideTheFile) {
  const auto package =
      MemmappedPackage::FromBytes(Package(SmallGraph()), "m.pkg");
  OPTFARM_ASSERT_OK(package);
  EXPECT_THAT((*package)->Find("/etc/passwd"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no region")));
  EXPECT_THAT((*package)->Find("memmapped_package://a_c"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("a_b")));
}

TEST(MemmappedPackageTest, RefusesConstantsThatAreMalformed) {
  GraphBuilder b;
  b.Floats("bad", {4}, {1});
  auto* tensor = (*b.mutable_def()->mutable_node(0)->mutable_attr())["value"]
                     .mutable_tensor();
  tensor->set_tensor_content("12345");
  EXPECT_THAT(SerializeMemmapped(b.def(), 1),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("constant 'bad'")));
  EXPECT_THAT(
      SerializeMemmapped(SmallGraph(), 0),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("above 0")));
}

TEST(MemmappedPackageTest, ManyNamesThatCollideStayApart) {
  GraphBuilder b;
  for (int i = 0; i < 200; ++i) {
    std::string name = "w";
    for (int bit = 0; bit < 8; ++bit) name += (i >> bit & 1) != 0 ? '/' : '-';
    b.Ints(name, {1}, {i});
  }
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto package,
      MemmappedPackage::FromBytes(Package(b.def(), 1), "m"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const GraphDef graph,
                               package->GraphWithConstants());
  for (int i = 0; i < 200; ++i) {
    EXPECT_EQ(graph.node(i).attr().at("value").tensor().tensor_content()[0],
              static_cast<char>(i));
  }
}

}  // namespace
}  // namespace optfarm::formats
