// A lease becomes files and the engine's request, and paths from outside stay
// inside.

#include "worker/optimize_plan.h"

#include <gmock/gmock.h>
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

v1::DatasetFile& AddFile(v1::LeasedTask* lease, const std::string& path) {
  v1::DatasetFile& file =
      *lease->mutable_optimize()->mutable_calibration()->add_files();
  file.set_path(path);
  return file;
}

std::set<std::string> Paths(const v1::LeasedTask& lease) {
  std::set<std::string> paths;
  const auto inputs = OptimizeInputs(lease);
  EXPECT_THAT(inputs, IsOk());
  if (!inputs.ok()) return paths;
  for (const rpc::TaskInput& input : *inputs) paths.insert(input.path);
  return paths;
}

TEST(OptimizePlanTest, LaysOutModelDataArraysAndLabels) {
  v1::LeasedTask lease = Lease();
  AddFile(&lease, "cats/1.jpg");
  AddFile(&lease, "x.npy").set_input("x");
  lease.mutable_optimize()->mutable_labels()->set_name("val.txt");
  EXPECT_THAT(Paths(lease),
              UnorderedElementsAre("model/net.pb", "data/cats/1.jpg",
                                   "arrays/x.npy", "labels/labels.txt"));
  const optimize::OptimizeRequest request =
      OptimizeRequestFor(lease, rpc::TaskFolder("/t"));
  EXPECT_EQ(request.model_path, "/t/in/model/net.pb");
  EXPECT_EQ(request.calibration_folder, "/t/in/data");
  ASSERT_EQ(request.calibration_arrays.size(), 1u);
  EXPECT_EQ(request.calibration_arrays[0].first, "x");
  EXPECT_EQ(request.calibration_arrays[0].second, "/t/in/arrays/x.npy");
  EXPECT_EQ(request.labels_path, "/t/in/labels/labels.txt");
  EXPECT_EQ(request.out_folder, "/t/out");
}

TEST(OptimizePlanTest, NamesMembersOfArraysAndRecords) {
  v1::LeasedTask lease = Lease();
  AddFile(&lease, "shards/a.tfrecord");
  v1::DatasetFile& array = AddFile(&lease, "arrays/1/x.npz");
  array.set_input("x");
  array.set_member("left");
  v1::OptimizeTask& task = *lease.mutable_optimize();
  task.mutable_labels()->set_name("val.tfrecord:image/class/label");
  task.mutable_calibration()->set_labels_offset(1);
  EXPECT_THAT(Paths(lease), UnorderedElementsAre(
                                "model/net.pb", "data/shards/a.tfrecord",
                                "arrays/arrays/1/x.npz", "labels/labels.txt"));
  const optimize::OptimizeRequest request =
      OptimizeRequestFor(lease, rpc::TaskFolder("/t"));
  EXPECT_EQ(request.calibration_folder, "/t/in/data");
  ASSERT_EQ(request.calibration_arrays.size(), 1u);
  EXPECT_EQ(request.calibration_arrays[0].second,
            "/t/in/arrays/arrays/1/x.npz:left");
  EXPECT_EQ(request.labels_path, "/t/in/labels/labels.txt:image/class/label");
  EXPECT_EQ(request.labels_offset, 1);
}

TEST(OptimizePlanTest, AbsentDataStaysAbsent) {
  const optimize::OptimizeRequest request =
      OptimizeRequestFor(Lease(), rpc::TaskFolder("/t"));
  EXPECT_EQ(request.calibration_folder, "");
  EXPECT_EQ(request.labels_path, "");
  EXPECT_FALSE(request.input_mean.has_value());
}

// Pictures that nobody scaled are told of, and arrays need no scale.
TEST(OptimizePlanTest, AScaleThatNobodyGaveStaysAbsent) {
  v1::LeasedTask lease = Lease();
  AddFile(&lease, "cats/1.jpg");
  const optimize::OptimizeRequest request =
      OptimizeRequestFor(lease, rpc::TaskFolder("/t"));
  EXPECT_FALSE(request.input_mean.has_value());
  EXPECT_FALSE(request.input_std.has_value());
}

TEST(OptimizePlanTest, MessagesNameFilesAsTheyWereSent) {
  const rpc::TaskFolder folder("/t");
  EXPECT_EQ(WithoutFolder("While decoding '/t/in/data/cats/1.jpg': broken; "
                          "'/t/in/arrays/arrays/1/x.npy' and "
                          "'/t/in/labels/labels.txt' too",
                          folder),
            "While decoding 'cats/1.jpg': broken; 'arrays/1/x.npy' and "
            "'labels/labels.txt' too");
}

TEST(OptimizePlanTest, AStandardDeviationOfZeroMeansOne) {
  v1::LeasedTask lease = Lease();
  lease.mutable_optimize()->mutable_calibration()->set_input_mean(127.5);
  const optimize::OptimizeRequest request =
      OptimizeRequestFor(lease, rpc::TaskFolder("/t"));
  EXPECT_EQ(request.input_mean, 127.5);
  EXPECT_EQ(request.input_std, 1);
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
    AddFile(&lease, path);
    EXPECT_THAT(OptimizeInputs(lease),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("calibration data")))
        << path;
  }
}

TEST(OptimizePlanTest, RefusesDoublesAndOtherKindsOfTasks) {
  v1::LeasedTask lease = Lease();
  AddFile(&lease, "a.png");
  AddFile(&lease, "a.png");
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
