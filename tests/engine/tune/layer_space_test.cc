#include "engine/tune/layer_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace optfarm::tune {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

double Decibel(double noise) { return -10 * std::log10(noise); }

void AddLayer(const std::string& name, double noise, double cost_us,
              v1::Report* report) {
  v1::LayerSensitivity& layer = *report->add_sensitivity();
  layer.set_name(name);
  layer.set_output_snr_db(Decibel(noise));
  layer.set_alone_snr_db(Decibel(noise) + 1);
  layer.set_float_milliseconds((cost_us + 10) / 1000);
  layer.set_result_milliseconds(0.010);
}

// Four layers that lose 4, 1, 0.5 and 0.01 thousandths, and together what they
// sum to.
v1::Report FourLayers() {
  v1::Report report;
  AddLayer("a", 0.001, 5, &report);
  AddLayer("b", 0.004, 100, &report);
  AddLayer("c", 0.0005, 20, &report);
  AddLayer("d", 0.00001, 50, &report);
  report.add_outputs_compared()->set_snr_db(Decibel(0.00551));
  return report;
}

TEST(LayerSpaceTest, LayersThatWereMeasuredTogetherAreOneUnit) {
  v1::Report report = FourLayers();
  AddLayer("e", 0.002, 1, &report);
  AddLayer("f", 0.002, 2, &report);
  const LayerSpace space(report);
  ASSERT_EQ(space.units().size(), 5u);
  EXPECT_THAT(space.units()[4].layers, ElementsAre("e", "f"));
  EXPECT_NEAR(space.units()[4].noise, 0.002, 1e-9);
  EXPECT_NEAR(space.units()[4].float_cost_us, 3, 1e-9);
  EXPECT_THAT(space.LayersOf({1, 4}), ElementsAre("b", "e", "f"));
}

TEST(LayerSpaceTest, WhatCouldNotBeMeasuredStandsAlone) {
  v1::Report report = FourLayers();
  for (const char* name : {"x", "y"}) {
    AddLayer(name, 1, 1, &report);
    auto& layer = *report.mutable_sensitivity(report.sensitivity_size() - 1);
    layer.set_output_snr_db(std::numeric_limits<double>::quiet_NaN());
    layer.set_alone_snr_db(std::numeric_limits<double>::quiet_NaN());
  }
  const LayerSpace space(report);
  ASSERT_EQ(space.units().size(), 6u);
  EXPECT_EQ(space.units()[5].noise, 0);
}

TEST(LayerSpaceTest, PredictsWhatAddsUp) {
  const LayerSpace space(FourLayers());
  EXPECT_NEAR(space.PredictSnr({}), Decibel(0.00551), 0.05);
  EXPECT_NEAR(space.PredictSnr({1}), Decibel(0.00151), 0.05);
  EXPECT_NEAR(space.FloatCost({0, 2}), 25, 1e-9);
}

TEST(LayerSpaceTest, ChoicesBeginWithWhatIsWorthMost) {
  const LayerSpace space(FourLayers());
  const std::vector<Subset> choices = space.Choices();
  EXPECT_THAT(choices.front(), ElementsAre());
  EXPECT_THAT(choices.back(), ElementsAre(0, 1, 2, 3));
  // By noise b; by noise for its time a; by the least time a too.
  EXPECT_THAT(choices, ::testing::Contains(ElementsAre(0)));
  EXPECT_THAT(choices, ::testing::Contains(ElementsAre(1)));
  for (size_t i = 0; i < choices.size(); ++i) {
    for (size_t k = i + 1; k < choices.size(); ++k) {
      EXPECT_NE(choices[i], choices[k]);
    }
  }
}

TEST(LayerSpaceTest, LearnsTheNoiseThatNoChoiceRemoves) {
  LayerSpace space(FourLayers());
  // All of the measured layers in float, and still a thousandth of noise.
  space.Learn({0, 1, 2, 3}, Decibel(0.001));
  EXPECT_THAT(space.PredictSnr({0, 1, 2, 3}), DoubleNear(30, 0.5));
  EXPECT_NEAR(space.PredictSnr({}), Decibel(0.00551), 0.05);
  EXPECT_LT(space.PredictSnr({1}), Decibel(0.0018));
}

TEST(LayerSpaceTest, NothingToChooseWithoutSensitivity) {
  const LayerSpace space((v1::Report()));
  EXPECT_TRUE(space.units().empty());
}

}  // namespace
}  // namespace optfarm::tune
