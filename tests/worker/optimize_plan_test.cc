// A lease becomes files and the engine's request, and paths from outside stay
// inside.

#include "worker/optimize_plan.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/support/status_matchers.h"

namespace optfarm::worker {
namespace {

using ::optfarm::testing::IsOk;
using ::optfarm::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

v1::LeasedTask Lease() {
  v1::LeasedTask lease;
  v1::OptimizeTask& task = *lease.mutable_optimize();
  task.mutable_model()->set_name("net.pb");
  task.mutable_model()->mutable_digest()->set_sha256("m");
  task.mutable_recipe()->set_name("int8");
  return lease;
}

// Adds a source of the one file.
v1::DataSource& AddSource(v1::LeasedTask* lease, v1::DataSource::Role role,
                          const std::string& path) {
  v1::DataSource& source =
      *lease->mutable_optimize()->mutable_calibration()->add_sources();
  source.set_role(role);
  source.add_files()->set_path(path);
  return source;
}

std::set<std::string> Paths(const v1::LeasedTask& lease) {
  std::set<std::string> paths;
  const auto inputs = OptimizeInputs(lease);
  EXPECT_THAT(inputs, IsOk());
  if (!inputs.ok()) return paths;
  for (const rpc::TaskInput& input : *inputs) paths.insert(input.path);
  return paths;
}

TEST(OptimizePlanTest, EachSourceHasAFolderOfItsOwn) {
  v1::LeasedTask lease = Lease();
  AddSource(&lease, v1::DataSource::SAMPLES, "arrays/1.jpg");
  AddSource(&lease, v1::DataSource::INPUT, "x.npz").set_input("x");
  AddSource(&lease, v1::DataSource::LABELS, "x.npz").set_member("y");
  EXPECT_THAT(Paths(lease),
              UnorderedElementsAre("model/net.pb", "data/0/arrays/1.jpg",
                                   "data/1/x.npz", "data/2/x.npz"));
  const optimize::OptimizeRequest request =
      OptimizeRequestFor(lease, rpc::TaskFolder("/t"));
  EXPECT_EQ(request.model_path, "/t/in/model/net.pb");
  EXPECT_EQ(request.data.PathOf(0), "/t/in/data/0/arrays/1.jpg");
  EXPECT_EQ(request.data.PathOf(2), "/t/in/data/2/x.npz");
  EXPECT_EQ(request.out_folder, "/t/out");
}

TEST(OptimizePlanTest, FormatsReachTheEngine) {
  v1::LeasedTask lease = Lease();
  lease.mutable_optimize()->add_out_formats(v1::PB);
  lease.mutable_optimize()->add_out_formats(v1::TFLITE);
  EXPECT_THAT(OptimizeRequestFor(lease, rpc::TaskFolder("/t")).out_formats,
              UnorderedElementsAre(v1::PB, v1::TFLITE));
}

TEST(OptimizePlanTest, DataReachTheEngineUnchanged) {
  v1::LeasedTask lease = Lease();
  AddSource(&lease, v1::DataSource::SAMPLES, "shards/a.tfrecord").set_mean(0);
  v1::DataSource& array = AddSource(&lease, v1::DataSource::INPUT, "x.npz");
  array.set_member("left");
  array.set_layout(v1::DataSource::CONSTANT);
  array.set_std(255);
  v1::Dataset& data = *lease.mutable_optimize()->mutable_calibration();
  data.set_labels_offset(1);
  const optimize::OptimizeRequest request =
      OptimizeRequestFor(lease, rpc::TaskFolder("/t"));
  EXPECT_EQ(request.data.dataset.SerializeAsString(), data.SerializeAsString());
  EXPECT_TRUE(request.data.dataset.sources(0).has_mean());
  EXPECT_FALSE(request.data.dataset.sources(0).has_std());
}

TEST(OptimizePlanTest, AbsentDataStaysAbsent) {
  const optimize::OptimizeRequest request =
      OptimizeRequestFor(Lease(), rpc::TaskFolder("/t"));
  EXPECT_FALSE(request.data.HasSamples());
  EXPECT_TRUE(request.data.dataset.sources().empty());
}

// Not seen, they would be replaced by random inputs.
TEST(OptimizePlanTest, RefusesDataOfAnOlderServer) {
  v1::LeasedTask lease = Lease();
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "files { path: 'cats/1.jpg' }",
      lease.mutable_optimize()->mutable_calibration()));
  EXPECT_THAT(OptimizeInputs(lease),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("upgrade the server first")));
}

TEST(OptimizePlanTest, MessagesNameFilesAsTheyWereSent) {
  v1::LeasedTask lease = Lease();
  AddSource(&lease, v1::DataSource::SAMPLES, "cats/1.jpg");
  AddSource(&lease, v1::DataSource::INPUT, "x.npy");
  const rpc::TaskFolder folder("/t");
  EXPECT_EQ(WithoutFolder("While decoding '/t/in/data/0/cats/1.jpg': broken; "
                          "'/t/in/data/1/x.npy', '/t/in/model/net.pb' and "
                          "'/t/in/data/0' too",
                          lease, folder),
            "While decoding 'cats/1.jpg': broken; 'x.npy', 'model/net.pb' and "
            "'the samples' too");
}

TEST(OptimizePlanTest, ModelNamesThatAreNoFileNamesAreReplaced) {
  for (const char* name : {"", "..", ".", "a/..", "b\nc"}) {
    v1::LeasedTask lease = Lease();
    lease.mutable_optimize()->mutable_model()->set_name(name);
    EXPECT_THAT(Paths(lease), UnorderedElementsAre("model/model.pb")) << name;
  }
}

TEST(OptimizePlanTest, RefusesPathsThatLeaveTheFolder) {
  for (const char* path : {"../x.png", "/etc/passwd", "a//b.png", "a/./b.png",
                           "", "a/..", "line\nbreak.png"}) {
    v1::LeasedTask lease = Lease();
    AddSource(&lease, v1::DataSource::SAMPLES, path);
    EXPECT_THAT(OptimizeInputs(lease),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("calibration data")))
        << path;
  }
}

TEST(OptimizePlanTest, RefusesDoublesAndOtherKindsOfTasks) {
  v1::LeasedTask lease = Lease();
  AddSource(&lease, v1::DataSource::SAMPLES, "a.png")
      .add_files()
      ->set_path("a.png");
  EXPECT_THAT(OptimizeInputs(lease),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("twice")));
  lease.mutable_benchmark();
  EXPECT_THAT(OptimizeInputs(lease),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("something else")));
}

TEST(FinishReportTest, NamesArtifactsAndTheOptimizedGraph) {
  v1::Completion completion;
  // What the engine may have claimed does not count.
  completion.mutable_report()->add_artifacts()->set_name("claimed");
  v1::Artifact graph;
  graph.set_name("optimized.pb");
  graph.mutable_digest()->set_sha256("g");
  const std::vector<v1::Artifact> artifacts = {graph};
  OPTFARM_ASSERT_OK(FinishReport(Lease(), artifacts, &completion));
  // Again, as after a refused completion.
  OPTFARM_ASSERT_OK(FinishReport(Lease(), artifacts, &completion));
  EXPECT_EQ(completion.report().artifacts_size(), 1);
  EXPECT_EQ(completion.report().optimized_model().sha256(), "g");
  EXPECT_EQ(completion.report().recipe_name(), "int8");
  EXPECT_EQ(completion.report().model().sha256(), "m");
}

TEST(FinishReportTest, AReportWithoutAGraphIsAnError) {
  v1::Completion completion;
  EXPECT_THAT(FinishReport(Lease(), {}, &completion),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("no report")));
  completion.mutable_report();
  EXPECT_THAT(FinishReport(Lease(), {}, &completion),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("optimized.pb")));
}

}  // namespace
}  // namespace optfarm::worker
