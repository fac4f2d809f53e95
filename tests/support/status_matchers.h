// gtest matchers for absl::Status and absl::StatusOr.

#ifndef OPTFARM_TESTS_SUPPORT_STATUS_MATCHERS_H_
#define OPTFARM_TESTS_SUPPORT_STATUS_MATCHERS_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace optfarm::testing {

inline const absl::Status& StatusOf(const absl::Status& status) {
  return status;
}
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

// EXPECT_THAT(DoIt(), IsOk());
MATCHER(IsOk, "is OK") {
  *result_listener << StatusOf(arg).ToString();
  return StatusOf(arg).ok();
}

// EXPECT_THAT(DoIt(), StatusIs(absl::StatusCode::kNotFound, HasSubstr("x")));
MATCHER_P2(StatusIs, code, message, "has the code and the message") {
  *result_listener << StatusOf(arg).ToString();
  return StatusOf(arg).code() == code &&
         ::testing::ExplainMatchResult(
             message, std::string(StatusOf(arg).message()), result_listener);
}

}  // namespace optfarm::testing

#define OPTFARM_ASSERT_OK(expression) \
  ASSERT_THAT((expression), ::optfarm::testing::IsOk())
#define OPTFARM_ASSERT_OK_AND_ASSIGN_IMPL_(result, declaration, expression) \
  auto result = (expression);                                               \
  ASSERT_TRUE(result.ok()) << result.status();                              \
  declaration = *std::move(result)
#define OPTFARM_TEST_CONCAT_IMPL_(a, b) a##b
#define OPTFARM_TEST_CONCAT_(a, b) OPTFARM_TEST_CONCAT_IMPL_(a, b)
#define OPTFARM_ASSERT_OK_AND_ASSIGN(declaration, expression) \
  OPTFARM_ASSERT_OK_AND_ASSIGN_IMPL_(                         \
      OPTFARM_TEST_CONCAT_(test_result_, __LINE__), declaration, expression)

#endif  // OPTFARM_TESTS_SUPPORT_STATUS_MATCHERS_H_
