#include "rpc/trace_parent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/escaping.h"
#include "tests/support/status_matchers.h"

namespace optfarm::rpc {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::HasSubstr;

constexpr char kTrace[] = "0af7651916cd43dd8448eb211c80319c";
constexpr char kSpan[] = "b7ad6b7169203331";

std::string Header(const std::string& version, const std::string& trace,
                   const std::string& span, const std::string& flags) {
  return version + "-" + trace + "-" + span + "-" + flags;
}

TEST(TraceParentTest, HasTraceSpanAndWhetherItIsRecorded) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const TraceParent parent,
      ParseTraceParent(Header("00", kTrace, kSpan, "01")));
  EXPECT_EQ(absl::BytesToHexString(parent.trace_id), kTrace);
  EXPECT_EQ(absl::BytesToHexString(parent.span_id), kSpan);
  EXPECT_TRUE(parent.sampled);
  EXPECT_FALSE(ParseTraceParent(Header("00", kTrace, kSpan, "00"))->sampled);
  // Flags that are not known yet.
  EXPECT_TRUE(ParseTraceParent(Header("00", kTrace, kSpan, "ff"))->sampled);
}

TEST(TraceParentTest, LaterVersionsMayHaveMore) {
  const std::string later = Header("cc", kTrace, kSpan, "01");
  EXPECT_TRUE(ParseTraceParent(later).ok());
  EXPECT_TRUE(ParseTraceParent(later + "-what.comes").ok());
  EXPECT_FALSE(ParseTraceParent(later + ".what").ok());
  EXPECT_FALSE(ParseTraceParent(later + "-\xff").ok());
  EXPECT_FALSE(ParseTraceParent(later + "-" + std::string(600, 'a')).ok());
}

TEST(TraceParentTest, WhatIsMalformedIsRefused) {
  const std::string zeros(32, '0');
  for (const std::string& text :
       {std::string(), std::string("00"), Header("ff", kTrace, kSpan, "01"),
        Header("0x", kTrace, kSpan, "01"), Header("00", zeros, kSpan, "01"),
        Header("00", kTrace, zeros.substr(0, 16), "01"),
        Header("00", "0AF7651916CD43DD8448EB211C80319C", kSpan, "01"),
        Header("00", kTrace, kSpan, "1"), Header("00", kTrace, kSpan, "0g"),
        Header("00", kTrace, kSpan, "01-x"),
        Header("00", std::string(kTrace).substr(1), kSpan, "01"),
        std::string("00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
        Header("00", kTrace, kSpan, "01 ")}) {
    EXPECT_THAT(ParseTraceParent(text),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("00-TRACE-SPAN-FLAGS")))
        << text;
  }
}

}  // namespace
}  // namespace optfarm::rpc
