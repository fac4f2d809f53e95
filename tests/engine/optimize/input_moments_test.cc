#include "engine/optimize/rounding/input_moments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/support/status_matchers.h"

namespace optfarm::optimize {
namespace {

using ::optfarm::testing::StatusIs;
using runtime::Tensor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor Quantized(const std::vector<int64_t>& shape,
                 const std::vector<uint8_t>& values) {
  Tensor quantized = *Tensor::Allocate(tensorflow::DT_QUINT8,
                                       *runtime::Shape::FromDims(shape));
  std::copy(values.begin(), values.end(), quantized.data<uint8_t>());
  return quantized;
}

WindowShape Sliding(WindowShape::Kind kind, int64_t size, int64_t channels) {
  WindowShape shape;
  shape.kind = kind;
  shape.attrs.padding = runtime::Padding::kSame;
  shape.size_y = 1;
  shape.size_x = size;
  shape.channels = channels;
  return shape;
}

TEST(InputMomentsTest, AddsUpRowsOfAMatrix) {
  WindowShape shape;
  shape.channels = 2;
  InputMoments moments = MakeMoments(2, 2);
  OPTFARM_ASSERT_OK(AddWindows(Quantized({2, 2}, {11, 12, 13, 9}), 10, shape, 8,
                               0, &moments));
  EXPECT_EQ(moments.rows, 2);
  EXPECT_THAT(moments.sums, ElementsAre(4, 1));
  // (1, 2) and (3, -1), up to the diagonal.
  const std::vector<double>& products = moments.products[0].values;
  EXPECT_EQ(products[0], 10);
  EXPECT_EQ(products[2], -1);
  EXPECT_EQ(products[3], 5);
  // Less 4 * 4 / 2, 4 * 1 / 2 and 1 * 1 / 2.
  const QuadraticForm centered = moments.Centered(0);
  EXPECT_EQ(centered.values[0], 2);
  EXPECT_EQ(centered.values[2], -3);
  EXPECT_EQ(centered.values[3], 4.5);
}

TEST(InputMomentsTest, WhatLiesOutsideAPictureIsZero) {
  InputMoments moments = MakeMoments(3, 3);
  OPTFARM_ASSERT_OK(AddWindows(Quantized({1, 1, 3, 1}, {1, 2, 4}), 0,
                               Sliding(WindowShape::Kind::kConvolution, 3, 1),
                               8, 0, &moments));
  // Windows 0 1 2, 1 2 4, 2 4 0.
  EXPECT_EQ(moments.rows, 3);
  EXPECT_THAT(moments.sums, ElementsAre(3, 7, 6));
  EXPECT_EQ(moments.products[0].values[3], 1 * 2 + 2 * 4);
}

TEST(InputMomentsTest, ChannelsOfADepthwiseLayerStandTogether) {
  InputMoments moments = MakeMoments(4, 2);
  OPTFARM_ASSERT_OK(AddWindows(Quantized({1, 1, 2, 2}, {1, 10, 2, 20}), 0,
                               Sliding(WindowShape::Kind::kDepthwise, 2, 2), 8,
                               0, &moments));
  ASSERT_EQ(moments.products.size(), 2u);
  // Windows 1 2 and 2 0 of the first channel, ten times that of the second.
  EXPECT_THAT(moments.sums, ElementsAre(3, 2, 30, 20));
  EXPECT_EQ(moments.products[0].values[2], 2);
  EXPECT_EQ(moments.products[1].values[2], 200);
}

TEST(InputMomentsTest, TakesWindowsFromAllOverAPicture) {
  InputMoments moments = MakeMoments(1, 1);
  const Tensor quantized = Quantized({1, 1, 6, 1}, {1, 2, 4, 8, 16, 32});
  const WindowShape shape = Sliding(WindowShape::Kind::kConvolution, 1, 1);
  OPTFARM_ASSERT_OK(AddWindows(quantized, 0, shape, 2, 0, &moments));
  EXPECT_THAT(moments.sums, ElementsAre(1 + 8));
  OPTFARM_ASSERT_OK(AddWindows(quantized, 0, shape, 2, 1, &moments));
  EXPECT_THAT(moments.sums, ElementsAre(1 + 8 + 2 + 16));
}

TEST(InputMomentsTest, LargestSumsAreExact) {
  const std::vector<uint8_t> largest(kMostRows, 255);
  WindowShape shape;
  shape.channels = 1;
  InputMoments moments = MakeMoments(1, 1);
  OPTFARM_ASSERT_OK(AddWindows(Quantized({kMostRows, 1}, largest), 0, shape,
                               kMostRows, 0, &moments));
  EXPECT_EQ(moments.products[0].values[0], 256.0 * 255 * 255);
}

TEST(InputMomentsTest, RefusesValuesOfAnotherForm) {
  WindowShape shape;
  shape.channels = 3;
  InputMoments moments = MakeMoments(3, 3);
  for (const std::vector<int64_t>& dims :
       {std::vector<int64_t>{2, 2}, {1, 4}, {4}}) {
    EXPECT_THAT(
        AddWindows(Quantized(dims, {1, 2, 3, 4}), 0, shape, 8, 0, &moments),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 HasSubstr("quantized values of shape")));
  }
}

}  // namespace
}  // namespace optfarm::optimize
