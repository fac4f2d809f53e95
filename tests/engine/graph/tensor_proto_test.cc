// Damaged and odd TensorProtos.

#include "engine/graph/tensor_proto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "google/protobuf/text_format.h"
#include "tests/support/status_matchers.h"

namespace optfarm::graph {
namespace {

using ::optfarm::testing::IsOk;
using ::optfarm::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

tensorflow::TensorProto Proto(const std::string& text) {
  tensorflow::TensorProto proto;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &proto));
  return proto;
}

TEST(TensorProto, GoodOnesPass) {
  for (const char* text : {
           "dtype: DT_FLOAT float_val: 1 tensor_shape { }",
           "dtype: DT_FLOAT float_val: 1 tensor_shape { dim { size: 1000 } }",
           "dtype: DT_FLOAT tensor_shape { dim { size: 0 } }",
           "dtype: DT_INT32 tensor_content: '\\001\\000\\000\\000'"
           " tensor_shape { dim { size: 1 } }",
           "dtype: DT_STRING string_val: 'x' tensor_shape { }",
           "dtype: DT_HALF half_val: 3 tensor_shape { dim { size: 2 } }",
       }) {
    EXPECT_THAT(CheckTensorProto(Proto(text)), IsOk()) << text;
  }
}

TEST(TensorProto, ClaimsAreCheckedBeforeMemoryIsTaken) {
  const struct {
    const char* text;
    const char* message;
  } cases[] = {
      {"dtype: DT_FLOAT tensor_content: '0123456789' tensor_shape { "
       "dim { size: 1099511627776 } }",
       "10 bytes"},
      {"dtype: DT_FLOAT float_val: 1 tensor_shape { "
       "dim { size: 1099511627776 } }",
       "only 1 value"},
      {"dtype: DT_FLOAT tensor_shape { dim { size: 4294967296 } "
       "dim { size: 4294967296 } }",
       "too many elements"},
      {"dtype: DT_FLOAT tensor_shape { dim { size: -1 } }", "dimension -1"},
      {"dtype: DT_FLOAT tensor_shape { unknown_rank: true }", "no rank"},
      {"tensor_shape { }", "type"},
      {"dtype: DT_FLOAT_REF float_val: 1 tensor_shape { }", "type"},
      {"dtype: DT_INT32 tensor_content: '\\001\\000\\000' tensor_shape { "
       "dim { size: 1 } }",
       "3 bytes"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(CheckTensorProto(Proto(c.text)),
                StatusIs(kInvalid, HasSubstr(c.message)));
  }
}

TEST(TensorProto, ReadsIntegersInEveryForm) {
  EXPECT_THAT(*ReadIntegers(Proto("dtype: DT_INT32 int_val: [4, -1] "
                                  "tensor_shape { dim { size: 4 } }"),
                            10),
              ElementsAre(4, -1, -1, -1));
  EXPECT_THAT(*ReadIntegers(Proto("dtype: DT_INT64 tensor_shape { "
                                  "dim { size: 2 } }"),
                            10),
              ElementsAre(0, 0));
  EXPECT_THAT(*ReadIntegers(Proto("dtype: DT_INT16 tensor_content: "
                                  "'\\377\\377\\002\\000' tensor_shape { "
                                  "dim { size: 2 } }"),
                            10),
              ElementsAre(-1, 2));
  EXPECT_EQ(ReadIntegers(Proto("dtype: DT_INT32 int_val: 1 tensor_shape { "
                               "dim { size: 11 } }"),
                         10),
            std::nullopt);
  EXPECT_EQ(
      ReadIntegers(Proto("dtype: DT_FLOAT float_val: 1 tensor_shape { }"), 10),
      std::nullopt);
}

}  // namespace
}  // namespace optfarm::graph
