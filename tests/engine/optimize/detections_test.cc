#include "engine/optimize/judging/detections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "engine/runtime/core/tensor.h"
#include "tests/engine/optimize/small_model.h"

namespace optfarm::optimize {
namespace {

using graph::TensorName;
using runtime::Shape;
using runtime::Tensor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Box {
  float top, left, bottom, right, score, class_number;
};

// Boxes, scores, classes.
std::vector<Tensor> Outputs(const std::vector<Box>& boxes) {
  std::vector<float> corners, scores, classes;
  for (const Box& box : boxes) {
    corners.insert(corners.end(), {box.top, box.left, box.bottom, box.right});
    scores.push_back(box.score);
    classes.push_back(box.class_number);
  }
  const auto count = static_cast<int64_t>(boxes.size());
  return {Tensor::FromValues<float>(Shape({1, count, 4}), corners),
          Tensor::FromValues<float>(Shape({1, count}), scores),
          Tensor::FromValues<float>(Shape({1, count}), classes)};
}

constexpr Box kCat = {0, 0, 0.5f, 0.5f, 0.9f, 1};
constexpr Box kDog = {0.5f, 0.5f, 1, 1, 0.9f, 2};

v1::DetectionComparison Compare(const std::vector<Box>& original,
                                const std::vector<Box>& result) {
  const Detector detector{0, 1, 2, {}};
  DetectionComparer comparer;
  EXPECT_TRUE(comparer.Add(detector, Outputs(original), Outputs(result)));
  return comparer.Result();
}

TEST(DetectionComparerTest, OrderDoesNotMatter) {
  const auto same = Compare({kCat, kDog}, {kDog, kCat});
  EXPECT_EQ(same.float_detections(), 2);
  EXPECT_EQ(same.found(), 2);
  EXPECT_EQ(same.extra(), 0);
  EXPECT_DOUBLE_EQ(same.mean_iou(), 1);
  EXPECT_DOUBLE_EQ(same.mean_score_change(), 0);
}

TEST(DetectionComparerTest, AnotherPlaceOrClassIsLostAndNew) {
  Box moved = kCat;
  moved.left += 0.4f;
  moved.right += 0.4f;
  Box renamed = kDog;
  renamed.class_number = 3;
  const auto other = Compare({kCat, kDog}, {moved, renamed});
  EXPECT_EQ(other.found(), 0);
  EXPECT_EQ(other.optimized_detections(), 2);
  EXPECT_EQ(other.extra(), 2);
}

TEST(DetectionComparerTest, ASmallShiftIsMeasured) {
  Box shifted = kCat;
  shifted.right = 0.4f;
  shifted.score = 0.4f;
  const auto near = Compare({kCat}, {shifted});
  EXPECT_EQ(near.found(), 1);
  EXPECT_NEAR(near.mean_iou(), 0.8, 1e-6);
  EXPECT_NEAR(near.mean_score_change(), 0.5, 1e-6);
  // It is below the threshold now, but has not come out of nothing.
  EXPECT_EQ(near.optimized_detections(), 0);
  shifted.score = 0.2f;
  EXPECT_EQ(Compare({kCat}, {shifted}).found(), 0);
}

TEST(DetectionComparerTest, EachIsMatchedOnce) {
  const auto twice = Compare({kCat, kCat}, {kCat});
  EXPECT_EQ(twice.float_detections(), 2);
  EXPECT_EQ(twice.found(), 1);
  EXPECT_THAT(Describe(twice), HasSubstr("found 50.0 % of 2"));
}

TEST(DetectionComparerTest, OtherShapesAreNotCounted) {
  const Detector detector{0, 1, 2, {}};
  std::vector<Tensor> broken = Outputs({kCat});
  std::swap(broken[0], broken[1]);
  DetectionComparer comparer;
  EXPECT_FALSE(comparer.Add(detector, Outputs({kCat}), broken));
  EXPECT_FALSE(comparer.Add(detector, {}, {}));
  EXPECT_EQ(comparer.Result().samples(), 0);
}

// A net whose scores and boxes go through a selection.
tensorflow::GraphDef DetectorModel() {
  tensorflow::GraphDef graph = testing::SmallModel();
  testing::AddNode(&graph, "decoded", "Identity", {"hidden"});
  testing::AddConst(&graph, "most",
                    Tensor::FromValues<int32_t>(Shape({}), {5}));
  testing::AddNode(&graph, "picked", "NonMaxSuppression",
                   {"decoded", "softmax", "most"})
      ->clear_attr();
  for (const char* name :
       {"detection_boxes", "detection_scores", "detection_classes"}) {
    testing::AddNode(&graph, name, "Identity", {"picked"});
  }
  return graph;
}

const TensorName kNames[] = {
    {"detection_boxes", 0}, {"detection_scores", 0}, {"detection_classes", 0}};

TEST(FindDetectorTest, FindsWhatGoesIntoTheSelection) {
  const auto graph = graph::Graph::FromDef(DetectorModel());
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto detector = FindDetector(*graph, kNames);
  ASSERT_TRUE(detector.has_value());
  EXPECT_EQ(detector->scores, 1u);
  EXPECT_THAT(detector->raw,
              ElementsAre(TensorName{"hidden", 0}, TensorName{"softmax", 0}));
}

TEST(FindDetectorTest, NamesAloneMakeNoDetector) {
  tensorflow::GraphDef def = testing::SmallModel();
  for (const TensorName& name : kNames) {
    testing::AddNode(&def, name.node, "Identity", {"softmax"});
  }
  const auto graph = graph::Graph::FromDef(std::move(def));
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_FALSE(FindDetector(*graph, kNames).has_value());
  const TensorName softmax[] = {{"softmax", 0}};
  EXPECT_FALSE(FindDetector(*graph, softmax).has_value());
}

}  // namespace
}  // namespace optfarm::optimize
