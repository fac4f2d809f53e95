// Identities, placeholders, Switch and Merge, checks, Print.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "engine/runtime/reference/catalog.h"
#include "engine/runtime/reference/text/summary.h"
#include "tests/engine/runtime/run_op.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(SwitchTest, TheOtherSideIsDead) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto out, Op("Switch").In(Float(3)).In(Bool(true)).RunAll(2));
  EXPECT_FALSE(out[0].has_value());
  EXPECT_THAT(ValuesOf<float>(out[1]), ElementsAre(3));
}

TEST(MergeTest, TakesTheLivingInput) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto out,
                               Op("Merge").In(Tensor()).In(Float(3)).RunAll(2));
  EXPECT_THAT(ValuesOf<float>(out[0]), ElementsAre(3));
  EXPECT_THAT(ValuesOf<int32_t>(out[1]), ElementsAre(1));
}

TEST(PlaceholderTest, NeedsAFeed) {
  EXPECT_THAT(Op("Placeholder").Run(),
              StatusIs(kInvalid, HasSubstr("must be fed")));
}

TEST(CheckNumericsTest, SaysWhatItFound) {
  Op op("CheckNumerics");
  op.Text("message", "logits").In(Floats({2}, {NAN, 1}));
  EXPECT_THAT(op.Run(),
              StatusIs(kInvalid, HasSubstr("logits : Tensor had NaN values")));
}

TEST(AssertTest, ShowsTheData) {
  EXPECT_THAT(Op("Assert").In(Bool(false)).In(Floats({2}, {1, 2})).RunAll(0),
              StatusIs(kInvalid, HasSubstr("assertion failed: [1 2]")));
}

TEST(SummarizeTest, BracketsAndLimits) {
  EXPECT_EQ(Summarize(Float(-20.887871f), 3), "-20.8878708");
  EXPECT_EQ(Summarize(Float(0.5f), 3), "0.5");
  EXPECT_EQ(Summarize(Counted({4}), 3), "0 1 2...");
  EXPECT_EQ(Summarize(Counted({2, 2}), 4), "[0 1][2 3]");
  EXPECT_EQ(Summarize(Counted({2, 2}), 3), "[0 1][2]...");
  EXPECT_EQ(Summarize(Counted({2, 2}), -1), "[0 1][2 3]");
  EXPECT_EQ(Summarize(Bool(true), 3), "1");
  EXPECT_EQ(Summarize(Counted({0}), 3), "");
}

// Runs one Print kernel as often as asked and returns its lines.
std::vector<std::string> Printed(int64_t first_n, int runs) {
  tensorflow::NodeDef node;
  node.set_op("Print");
  graph::SetString(&node, "message", ";conv__print__;__min_max:");
  graph::SetInt(&node, "first_n", first_n);
  const auto kernel = AllKernels().Find("Print")->make(node);
  EXPECT_TRUE(kernel.ok());
  std::vector<std::string> lines;
  const std::function<void(absl::string_view)> print =
      [&](absl::string_view line) { lines.emplace_back(line); };
  ThreadPool pool(1);
  for (int i = 0; i < runs; ++i) {
    std::vector<Tensor> in = {Float(9), Float(-1.5f), Floats({2}, {2, 3})};
    std::vector<Tensor> out(1);
    KernelContext context(absl::MakeSpan(in), absl::MakeSpan(out), &pool,
                          &print);
    EXPECT_TRUE((*kernel)->Compute(&context).ok());
    EXPECT_THAT(ValuesOf<float>(out[0]), ElementsAre(9));
  }
  return lines;
}

TEST(PrintTest, WritesMessageAndData) {
  EXPECT_THAT(Printed(-1, 1),
              ElementsAre(";conv__print__;__min_max:[-1.5][2 3]"));
}

TEST(PrintTest, StopsAfterFirstN) {
  EXPECT_EQ(Printed(2, 5).size(), 2u);
  EXPECT_EQ(Printed(0, 5).size(), 0u);
  EXPECT_EQ(Printed(-1, 5).size(), 5u);
}

}  // namespace
}  // namespace optfarm::runtime
