// Chains that are tried on a few samples, through whole jobs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/check.h"
#include "base/digest.h"
#include "base/files.h"
#include "engine/optimize/optimize_job.h"
#include "engine/optimize/recipes/recipes.h"
#include "tests/engine/optimize/small_model.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::optimize {
namespace {

using ::optfarm::testing::FreshFolder;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kSide = 20;

// The convolution of SmallModel over larger pictures: 1,600 numbers a sample.
tensorflow::GraphDef PictureModel() {
  tensorflow::GraphDef graph = testing::SmallModel();
  auto* nodes = graph.mutable_node();
  int count = 0;
  while (nodes->Get(count).name() != "relu") ++count;
  nodes->DeleteSubrange(count + 1, nodes->size() - count - 1);
  auto* shape = (*nodes->Mutable(0)->mutable_attr())["shape"].mutable_shape();
  shape->mutable_dim(1)->set_size(kSide);
  shape->mutable_dim(2)->set_size(kSide);
  return graph;
}

std::string WritePictures(int count) {
  std::vector<float> pixels(count * kSide * kSide);
  for (size_t i = 0; i < pixels.size(); ++i) {
    pixels[i] = static_cast<float>((i * 7919 + i / 400 * 31) % 1009) / 1009;
  }
  std::string path = JoinPath(FreshFolder(), "x.npy");
  OPTFARM_CHECK(formats::SaveNpy(runtime::Tensor::FromValues<float>(
                                     {count, 1, kSide, kSide, 1}, pixels)
                                     .ToProto(),
                                 path)
                    .ok());
  return path;
}

// A job whose chains all miss what is aimed at, and none the bounds.
OptimizeRequest Request(int samples) {
  OptimizeRequest request;
  request.model_path = testing::WriteModel(PictureModel(), FreshFolder());
  request.recipe = *BuiltInRecipe("int8");
  request.recipe.mutable_keep_float()->set_aim_snr_db(1000);
  request.recipe.clear_bounds();
  request.recipe.mutable_bounds()->set_min_snr_db(10);
  request.data.AddInput("input", WritePictures(samples));
  request.outputs = {"relu"};
  request.out_folder = FreshFolder();
  request.tool_version = "test";
  return request;
}

TEST(SearchSamplesTest, ChainsAreTriedOnAFewSamplesAndTheBestMadeFromAll) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report report,
                               RunOptimize(Request(40), nullptr));
  ASSERT_GE(report.search_size(), 3);
  const int last = report.search_size() - 1;
  for (int i = 0; i < last; ++i) {
    EXPECT_THAT(report.search(i).description(), HasSubstr(", on 8 samples"));
    EXPECT_FALSE(report.search(i).taken());
  }
  EXPECT_THAT(report.search(last).description(), Not(HasSubstr("on 8")));
  EXPECT_TRUE(report.search(last).taken());
  // As many as correct biases.
  EXPECT_GE(report.calibration().samples(), 32);
  EXPECT_TRUE(report.passed());
}

TEST(SearchSamplesTest, WhatAFewSamplesDoNotKeepIsSearchedForOnAll) {
  OptimizeRequest request = Request(40);
  // No chain holds it, so that none may be taken unseen.
  request.recipe.mutable_bounds()->set_max_size_ratio(0.001);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report report,
                               RunOptimize(request, nullptr));
  EXPECT_FALSE(report.passed());
  int on_all = 0;
  for (const v1::SearchStep& step : report.search()) {
    on_all += step.description().find("on 8 samples") == std::string::npos;
  }
  EXPECT_GE(on_all, 3);
}

TEST(SearchSamplesTest, FewSamplesAreAllUsed) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report report,
                               RunOptimize(Request(31), nullptr));
  for (const v1::SearchStep& step : report.search()) {
    EXPECT_THAT(step.description(), Not(HasSubstr("on 8")));
  }
}

TEST(SearchSamplesTest, ClassesAreComparedOnAllSamples) {
  OptimizeRequest request = Request(40);
  request.model_path =
      testing::WriteModel(testing::SmallModel(), FreshFolder());
  request.outputs.clear();
  request.data = {};
  request.data.AddInput(
      "input", JoinPath(testing::WriteSamples(40, FreshFolder()), "x.npy"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report report,
                               RunOptimize(request, nullptr));
  for (const v1::SearchStep& step : report.search()) {
    EXPECT_THAT(step.description(), Not(HasSubstr("on 8")));
  }
}

TEST(SearchSamplesTest, TheSameWorkGivesTheSameBytes) {
  std::vector<std::string> digests;
  for (const int threads : {1, 3}) {
    OptimizeRequest request = Request(40);
    request.threads = threads;
    OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report report,
                                 RunOptimize(request, nullptr));
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        digests.emplace_back(),
        Sha256OfFile(JoinPath(request.out_folder, "optimized.pb")));
  }
  EXPECT_EQ(digests[0], digests[1]);
}

}  // namespace
}  // namespace optfarm::optimize
