// Where the operator says that traces go.

#include "server/delivery/collector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace optfarm::server {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

TEST(CollectorTest, TracesGoBelowTheEndpoint) {
  for (const auto& [endpoint, target] :
       std::vector<std::pair<std::string, std::string>>{
           {"http://localhost:4318", "/v1/traces"},
           {"http://localhost:4318/", "/v1/traces"},
           {"https://otel.example.com/tenant/a/", "/tenant/a/v1/traces"},
           {"http://localhost:4318/v1/traces", "/v1/traces"}}) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const http::Url url, TracesUrl(endpoint));
    EXPECT_EQ(url.target, target) << endpoint;
  }
  EXPECT_EQ(TracesUrl("https://otel.example.com")->port, 443);
}

TEST(CollectorTest, WhatIsNoEndpointIsRefused) {
  for (const char* endpoint :
       {"localhost:4318", "grpc://localhost:4317", "http://", "http://a b/",
        "http://localhost:4318/?key=secret", "http://user:pass@localhost/"}) {
    EXPECT_THAT(TracesUrl(endpoint),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("give http"), Not(HasSubstr("secret")),
                               Not(HasSubstr("pass")))))
        << endpoint;
  }
}

TEST(CollectorTest, HeadersComeLineByLine) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto headers,
      ParseHeaderLines("# for the lab's collector\n\n"
                       "Authorization: Bearer a:b=\r\n  X-Scope-OrgID:7"));
  EXPECT_THAT(headers, ElementsAre(Pair("Authorization", "Bearer a:b="),
                                   Pair("X-Scope-OrgID", "7")));
}

TEST(CollectorTest, AWrongLineIsNamedAndItsValueIsNot) {
  for (const auto& [text, says] :
       std::vector<std::pair<std::string, std::string>>{
           {"secret", "line 1 has no colon"},
           {"A: secret\n: secret", "line 2 does not begin"},
           {"\nA B: secret", "line 2 does not begin"},
           {"Content-Type: secret", "line 1 sets Content-Type"},
           {"host: secret", "line 1 sets host"},
           {"A:", "line 1 gives A no value"},
           {"A: secret\x01", "line 1 gives A no value"}}) {
    EXPECT_THAT(ParseHeaderLines(text),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr(says), Not(HasSubstr("secret")))))
        << text;
  }
}

}  // namespace
}  // namespace optfarm::server
