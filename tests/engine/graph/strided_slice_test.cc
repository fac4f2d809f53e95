// StridedSlice's arithmetic, against what the same index gives in numpy.

#include "engine/graph/strided_slice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/support/status_matchers.h"

namespace optfarm::graph {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::HasSubstr;

StridedSliceSpec Spec(std::vector<int64_t> begin, std::vector<int64_t> end,
                      std::vector<int64_t> strides) {
  StridedSliceSpec spec;
  spec.begin = begin;
  spec.end = end;
  spec.strides = strides;
  return spec;
}

std::string Result(const char* input, const StridedSliceSpec& spec) {
  const auto plan = PlanStridedSlice(*PartialShape::Parse(input), spec);
  return plan.ok() ? plan->output.ToString()
                   : std::string(plan.status().message());
}

TEST(StridedSlice, PlainRanges) {
  EXPECT_EQ(Result("10", Spec({2}, {8}, {2})), "[3]");    // x[2:8:2]
  EXPECT_EQ(Result("10", Spec({2}, {9}, {2})), "[4]");    // x[2:9:2]
  EXPECT_EQ(Result("10", Spec({-3}, {20}, {1})), "[3]");  // x[-3:20]
  EXPECT_EQ(Result("10", Spec({8}, {2}, {-2})), "[3]");   // x[8:2:-2]
  EXPECT_EQ(Result("10", Spec({5}, {2}, {1})), "[0]");    // x[5:2]
  EXPECT_EQ(Result("4,5", Spec({1}, {3}, {1})), "[2,5]");
}

TEST(StridedSlice, Masks) {
  StridedSliceSpec spec = Spec({3}, {5}, {1});
  spec.begin_mask = 1;
  EXPECT_EQ(Result("10", spec), "[5]");  // x[:5]
  spec.end_mask = 1;
  EXPECT_EQ(Result("10", spec), "[10]");  // x[:]
  spec.strides = {-1};
  EXPECT_EQ(Result("10", spec), "[10]");  // x[::-1]

  spec = Spec({1, 0}, {2, 0}, {1, 1});
  spec.shrink_axis_mask = 1;
  spec.ellipsis_mask = 2;
  EXPECT_EQ(Result("4,5,6", spec), "[5,6]");  // x[1, ...]

  spec = Spec({0, 0, 2}, {0, 0, 3}, {1, 1, 1});
  spec.new_axis_mask = 1;
  spec.ellipsis_mask = 2;
  EXPECT_EQ(Result("4,5,6", spec), "[1,4,5,1]");  // x[newaxis, ..., 2:3]
}

TEST(StridedSlice, PartlyKnown) {
  StridedSliceSpec spec = Spec({0}, {1}, {1});
  EXPECT_EQ(Result("?,5", spec), "[?,5]");
  spec.shrink_axis_mask = 1;
  EXPECT_EQ(Result("?,5", spec), "[5]");
  spec.begin.reset();
  EXPECT_EQ(Result("4,5", spec), "[5]");
  spec.shrink_axis_mask = 0;
  EXPECT_EQ(Result("4,5", spec), "[?,5]");
}

TEST(StridedSlice, TellsWhatIsTaken) {
  const auto plan = PlanStridedSlice(*PartialShape::Parse("10,4"),
                                     Spec({-2, 3}, {0, -9}, {-3, -1}));
  ASSERT_TRUE(plan.ok());
  ASSERT_EQ(plan->axes.size(), 2u);
  EXPECT_EQ(plan->axes[0].begin, 8);
  EXPECT_EQ(plan->axes[0].size, 3);  // 8, 5, 2
  EXPECT_EQ(plan->axes[1].begin, 3);
  EXPECT_EQ(plan->axes[1].size, 4);  // 3, 2, 1, 0
}

TEST(StridedSlice, Errors) {
  StridedSliceSpec spec = Spec({11}, {12}, {1});
  spec.shrink_axis_mask = 1;
  EXPECT_THAT(Result("10", spec), HasSubstr("index 11"));
  EXPECT_THAT(Result("10", Spec({0}, {1}, {0})), HasSubstr("stride 0"));
  EXPECT_THAT(Result("10", Spec({0, 0}, {1, 1}, {1, 1})),
              HasSubstr("2 indices"));
  EXPECT_THAT(Result("10", Spec({0, 0}, {1}, {1})), HasSubstr("lengths"));
}

}  // namespace
}  // namespace optfarm::graph
