// What only C can do to the C API: NULL everywhere, and running out of memory.

#include "engine/api/c_api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>
#include <string>

#include "engine/api/guard.h"

namespace optfarm::api {
namespace {

using ::testing::HasSubstr;

// Deletes `status` and returns its code.
optfarm_code CodeOf(optfarm_status* status) {
  const optfarm_code code = optfarm_status_code(status);
  optfarm_status_delete(status);
  return code;
}

TEST(CApiTest, NullIsAnErrorAndNotACrash) {
  EXPECT_EQ(CodeOf(optfarm_model_load(nullptr, nullptr, nullptr)),
            OPTFARM_INVALID_ARGUMENT);
  EXPECT_EQ(CodeOf(optfarm_model_load_memory(nullptr, 1, nullptr, nullptr)),
            OPTFARM_INVALID_ARGUMENT);
  size_t count = 0;
  EXPECT_EQ(CodeOf(optfarm_model_input_count(nullptr, &count)),
            OPTFARM_INVALID_ARGUMENT);
  optfarm_tensor_info info;
  EXPECT_EQ(CodeOf(optfarm_model_output(nullptr, 0, &info)),
            OPTFARM_INVALID_ARGUMENT);
  EXPECT_EQ(CodeOf(optfarm_session_create(nullptr, nullptr, 0, nullptr, 0,
                                          nullptr, nullptr)),
            OPTFARM_INVALID_ARGUMENT);
  EXPECT_EQ(
      CodeOf(optfarm_session_run(nullptr, nullptr, 0, nullptr, 0, nullptr)),
      OPTFARM_INVALID_ARGUMENT);
  EXPECT_EQ(CodeOf(optfarm_tensor_create(OPTFARM_FLOAT, nullptr, 2, nullptr)),
            OPTFARM_INVALID_ARGUMENT);
  optfarm_tensor* tensor = nullptr;
  EXPECT_EQ(CodeOf(optfarm_tensor_create(OPTFARM_FLOAT, nullptr, 2, &tensor)),
            OPTFARM_INVALID_ARGUMENT);
  const int64_t two[] = {2};
  EXPECT_EQ(
      CodeOf(optfarm_tensor_copy(OPTFARM_FLOAT, two, 1, nullptr, 8, &tensor)),
      OPTFARM_INVALID_ARGUMENT);
  EXPECT_EQ(CodeOf(optfarm_tensor_strings(two, 1, nullptr, nullptr, &tensor)),
            OPTFARM_INVALID_ARGUMENT);
  EXPECT_EQ(tensor, nullptr);
}

TEST(CApiTest, ReadersAndDeletersTakeNull) {
  EXPECT_EQ(optfarm_tensor_data(nullptr), nullptr);
  EXPECT_EQ(optfarm_tensor_mutable_data(nullptr), nullptr);
  EXPECT_EQ(optfarm_tensor_rank(nullptr), 0);
  EXPECT_EQ(optfarm_tensor_dims(nullptr), nullptr);
  EXPECT_EQ(optfarm_tensor_byte_size(nullptr), 0);
  EXPECT_EQ(optfarm_session_input_count(nullptr), 0u);
  EXPECT_EQ(optfarm_session_output_name(nullptr, 0), nullptr);
  EXPECT_STREQ(optfarm_status_message(nullptr), "");
  optfarm_tensor_delete(nullptr);
  optfarm_model_delete(nullptr);
  optfarm_session_delete(nullptr);
  optfarm_status_delete(nullptr);
  optfarm_string_delete(nullptr);
  optfarm_session_options_init(nullptr);
}

TEST(CApiTest, ScalarsNeedNoDimensions) {
  const int32_t value = 7;
  optfarm_tensor* tensor = nullptr;
  ASSERT_EQ(optfarm_tensor_copy(OPTFARM_INT32, nullptr, 0, &value,
                                sizeof(value), &tensor),
            nullptr);
  EXPECT_EQ(optfarm_tensor_element_count(tensor), 1);
  EXPECT_EQ(*static_cast<const int32_t*>(optfarm_tensor_data(tensor)), 7);
  optfarm_tensor_delete(tensor);
}

TEST(CApiTest, BoolsBecomeZeroOrOne) {
  const unsigned char values[] = {0, 1, 7};
  const int64_t dims[] = {3};
  optfarm_tensor* tensor = nullptr;
  ASSERT_EQ(optfarm_tensor_borrow(OPTFARM_BOOL, dims, 1, values, 3, nullptr,
                                  nullptr, &tensor),
            nullptr);
  EXPECT_EQ(static_cast<const unsigned char*>(optfarm_tensor_data(tensor))[2],
            1);
  optfarm_tensor_delete(tensor);
}

TEST(CApiTest, NamesAndSizesOfTypes) {
  EXPECT_STREQ(optfarm_dtype_name(OPTFARM_QUINT8), "quint8");
  EXPECT_EQ(optfarm_dtype_size(OPTFARM_QUINT8), 1u);
  EXPECT_EQ(optfarm_dtype_size(OPTFARM_STRING), 0u);
  EXPECT_STREQ(optfarm_dtype_name(static_cast<optfarm_dtype>(77)), "unknown");
}

TEST(CApiTest, ZeroedOptionsAreTheDefaults) {
  const char graph[] =
      "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' "
      "value { type: DT_FLOAT } } }"
      "node { name: 'y' op: 'Relu' input: 'x' attr { key: 'T' "
      "value { type: DT_FLOAT } } }";
  optfarm_model* model = nullptr;
  optfarm_status* status =
      optfarm_model_load_memory(graph, strlen(graph), nullptr, &model);
  ASSERT_EQ(status, nullptr) << optfarm_status_message(status);
  const char* names[] = {"x", "y"};
  optfarm_session_options options = {};
  optfarm_session* session = nullptr;
  status =
      optfarm_session_create(model, names, 1, names + 1, 1, &options, &session);
  EXPECT_EQ(status, nullptr) << optfarm_status_message(status);
  EXPECT_STREQ(optfarm_session_output_name(session, 0), "y");
  EXPECT_EQ(optfarm_session_output_name(session, 1), nullptr);
  optfarm_session_delete(session);
  optfarm_model_delete(model);
}

TEST(GuardTest, NoExceptionGetsOut) {
  optfarm_status* memory =
      Guard([]() -> absl::Status { throw std::bad_alloc(); });
  EXPECT_EQ(optfarm_status_code(memory), OPTFARM_RESOURCE_EXHAUSTED);
  EXPECT_STREQ(optfarm_status_message(memory), "out of memory");
  // It is nobody's: deleting it twice is as good as once.
  optfarm_status_delete(memory);
  optfarm_status_delete(memory);
  optfarm_status* other =
      Guard([]() -> absl::Status { throw std::runtime_error("so"); });
  EXPECT_EQ(optfarm_status_code(other), OPTFARM_INTERNAL);
  EXPECT_THAT(optfarm_status_message(other), HasSubstr("so"));
  optfarm_status_delete(other);
  EXPECT_EQ(CodeOf(Guard([]() -> absl::Status { throw 1; })), OPTFARM_INTERNAL);
}

}  // namespace
}  // namespace optfarm::api
