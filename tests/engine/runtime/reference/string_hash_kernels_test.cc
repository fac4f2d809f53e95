// Hashes of texts and regular expressions.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/runtime/run_op.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

Tensor Texts(const std::vector<std::string>& texts) {
  return Tensor::FromValues<std::string>(
      Shape{static_cast<int64_t>(texts.size())}, texts);
}
Tensor Text(const std::string& text) {
  return Tensor::Scalar<std::string>(text);
}

// The buckets that TensorFlow's own tests expect.
TEST(StringHashTest, BucketsAreTensorFlows) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor old, Op("StringToHashBucket")
                                                     .Int("num_buckets", 10)
                                                     .In(Texts({"a", "b", "c"}))
                                                     .Run());
  EXPECT_THAT(ValuesOf<int64_t>(old), ElementsAre(8, 0, 7));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor fast,
                               Op("StringToHashBucketFast")
                                   .Int("num_buckets", 10)
                                   .In(Texts({"a", "b", "c", "d"}))
                                   .Run());
  EXPECT_THAT(ValuesOf<int64_t>(fast), ElementsAre(9, 2, 2, 5));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor strong,
                               Op("StringToHashBucketStrong")
                                   .Int("num_buckets", 10)
                                   .Ints("key", {98765, 132})
                                   .In(Texts({"a", "b", "c"}))
                                   .Run());
  EXPECT_THAT(ValuesOf<int64_t>(strong), ElementsAre(4, 2, 8));
}

// The vectors that SipHash was published with.
TEST(StringHashTest, SipHashIsAsPublished) {
  std::string fifteen;
  for (char c = 0; c < 15; ++c) fifteen.push_back(c);
  constexpr int64_t kBuckets = std::numeric_limits<int64_t>::max();
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor out,
      Op("StringToHashBucketStrong")
          .Int("num_buckets", kBuckets)
          .Ints("key", {0x0706050403020100, 0x0f0e0d0c0b0a0908})
          .In(Texts({"", fifteen}))
          .Run());
  EXPECT_THAT(ValuesOf<int64_t>(out),
              ElementsAre(0x726fdb47dd0e0e31 % kBuckets,
                          static_cast<int64_t>(0xa129ca6149be45e5u %
                                               uint64_t{kBuckets})));
}

TEST(StringHashTest, RefusesNoBuckets) {
  for (const char* op : {"StringToHashBucket", "StringToHashBucketFast"}) {
    EXPECT_THAT(Op(op).Int("num_buckets", 0).In(Text("a")).Run(),
                StatusIs(kInvalid, HasSubstr("num_buckets")));
  }
  EXPECT_THAT(Op("StringToHashBucketStrong")
                  .Int("num_buckets", 3)
                  .Ints("key", {1})
                  .In(Text("a"))
                  .Run(),
              StatusIs(kInvalid, HasSubstr("two numbers")));
}

TEST(StringPatternTest, ReplacesAllOrTheFirst) {
  for (bool is_global : {true, false}) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor out,
                                 Op("RegexReplace")
                                     .Bool("replace_global", is_global)
                                     .In(Texts({"a1b22", "none"}))
                                     .In(Text("([0-9]+)"))
                                     .In(Text("<\\1>"))
                                     .Run());
    EXPECT_THAT(ValuesOf<std::string>(out),
                ElementsAre(is_global ? "a<1>b<22>" : "a<1>b22", "none"));
  }
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor out, Op("StaticRegexReplace")
                                                     .Text("pattern", "b+")
                                                     .Text("rewrite", "x")
                                                     .In(Text("abba"))
                                                     .Run());
  EXPECT_THAT(ValuesOf<std::string>(out), ElementsAre("axa"));
}

TEST(StringPatternTest, MatchesTheWholeText) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor out,
                               Op("RegexFullMatch")
                                   .In(Texts({"abc", "abcd", ""}))
                                   .In(Text("a.c"))
                                   .Run());
  EXPECT_THAT(ValuesOf<bool>(out), ElementsAre(1, 0, 0));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor fixed,
      Op("StaticRegexFullMatch").Text("pattern", ".*b").In(Text("ab")).Run());
  EXPECT_THAT(ValuesOf<bool>(fixed), ElementsAre(1));
}

TEST(StringPatternTest, RefusesWhatIsNoExpression) {
  EXPECT_THAT(Op("RegexFullMatch").In(Text("a")).In(Text("(")).Run(),
              StatusIs(kInvalid, HasSubstr("'(' is no regular expression")));
  EXPECT_THAT(
      Op("StaticRegexFullMatch").Text("pattern", "*").In(Text("a")).Run(),
      StatusIs(kInvalid, HasSubstr("no regular expression")));
  EXPECT_THAT(
      Op("RegexReplace").In(Text("a")).In(Text("a")).In(Text("\\7")).Run(),
      StatusIs(kInvalid, HasSubstr("does not fit the pattern")));
}

}  // namespace
}  // namespace optfarm::runtime
