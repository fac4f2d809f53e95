#include "engine/optimize/rounding/nearest_plane.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace optfarm::optimize {
namespace {

using ::testing::ElementsAre;

// Second moments of random inputs that have much in common.
QuadraticForm RandomForm(size_t size, std::mt19937* random) {
  std::normal_distribution<double> normal;
  QuadraticForm form;
  form.size = size;
  form.values.assign(size * size, 0.0);
  for (int sample = 0; sample < 200; ++sample) {
    const double common = 3 * normal(*random);
    std::vector<double> x(size);
    for (double& value : x) value = common + normal(*random);
    for (size_t i = 0; i < size; ++i) {
      for (size_t j = 0; j <= i; ++j) form.values[i * size + j] += x[i] * x[j];
    }
  }
  return form;
}

TEST(NearestPlaneTest, TakesTheNearestWhereNothingGoesTogether) {
  const QuadraticForm form = {3, {4, 0, 0, 0, 1, 0, 0, 0, 9}};
  EXPECT_THAT(RoundToNearestPlanes(form, {0.4, -1.6, 2.51}, 1, 0.01, 127),
              ElementsAre(0, -2, 3));
}

TEST(NearestPlaneTest, LetsOneErrorMakeUpForAnother) {
  // Two inputs that are always equal: only the sum of the weights counts.
  const QuadraticForm form = {2, {1, 0, 1, 1}};
  const std::vector<double> rounded =
      RoundToNearestPlanes(form, {0.4, 0.4}, 1, 0.001, 127);
  EXPECT_EQ(rounded[0] + rounded[1], 1);
}

TEST(NearestPlaneTest, TakesTheNearestWhereTheFormKnowsNothing) {
  const QuadraticForm form = {2, {0, 0, 0, 0}};
  EXPECT_THAT(RoundToNearestPlanes(form, {0.4, 0.6}, 1, 0.01, 127),
              ElementsAre(0, 1));
  EXPECT_THAT(RoundToNearestPlanes({}, {}, 0, 0.01, 127), ElementsAre());
}

TEST(NearestPlaneTest, StaysWithinTheCodes) {
  const QuadraticForm form = {2, {1, 0, 1, 1}};
  const std::vector<double> rounded =
      RoundToNearestPlanes(form, {127.4, 130, -127.4, -500}, 2, 0.01, 127);
  for (const double value : rounded) EXPECT_LE(std::abs(value), 127);
}

TEST(NearestPlaneTest, CostsLessThanTheNearestCodes) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> weight(-50, 50);
  constexpr size_t kSize = 40, kColumns = 20;
  const QuadraticForm form = RandomForm(kSize, &random);
  std::vector<double> targets(kSize * kColumns);
  for (double& value : targets) value = weight(random);
  std::vector<double> adapted =
      RoundToNearestPlanes(form, targets, kColumns, 0.01, 127);
  std::vector<double> nearest(targets.size());
  for (size_t i = 0; i < targets.size(); ++i) {
    nearest[i] = targets[i] - std::round(targets[i]);
    EXPECT_EQ(adapted[i], std::round(adapted[i]));
    adapted[i] = targets[i] - adapted[i];
  }
  const std::vector<double> before = ErrorsUnder(form, nearest, kColumns);
  const std::vector<double> after = ErrorsUnder(form, adapted, kColumns);
  double all_before = 0, all_after = 0;
  for (size_t c = 0; c < kColumns; ++c) {
    all_before += before[c];
    all_after += after[c];
  }
  EXPECT_LT(all_after, 0.5 * all_before);
}

TEST(NearestPlaneTest, SumsErrorsUnderTheWholeForm) {
  // [1 2; 2 5] from its lower half; e = (1, -1) and (2, 0).
  const QuadraticForm form = {2, {1, 99, 2, 5}};
  EXPECT_THAT(ErrorsUnder(form, {1, 2, -1, 0}, 2), ElementsAre(2, 4));
}

}  // namespace
}  // namespace optfarm::optimize
