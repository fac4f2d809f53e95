// A device's answers are compared with the worker's on the same sample.

#include "device_agent/numeric_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "base/files.h"
#include "engine/runtime/core/tensor.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::device_agent {
namespace {

using ::optfarm::testing::FreshFolder;
using ::optfarm::testing::StatusIs;
using ::testing::_;
using ::testing::DoubleNear;
using ::testing::HasSubstr;

constexpr char kRelu[] = R"(
node { name: "x" op: "Placeholder"
  attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "y" op: "Relu" input: "x"
  attr { key: "T" value { type: DT_FLOAT } } }
versions { producer: 24 }
)";

class NumericCheckTest : public ::testing::Test {
 protected:
  NumericCheckTest()
      : folder_(FreshFolder()), graph_(JoinPath(folder_, "graph.pbtxt")) {
    EXPECT_TRUE(WriteFileAtomically(graph_, kRelu).ok());
  }

  static void Add(const std::string& name, const std::vector<float>& values,
                  v1::CheckSample::NamedTensor* named) {
    tensorflow::TensorProto proto;
    proto.set_dtype(tensorflow::DT_FLOAT);
    proto.mutable_tensor_shape()->add_dim()->set_size(
        static_cast<int64_t>(values.size()));
    for (const float value : values) proto.add_float_val(value);
    named->set_name(name);
    named->set_tensor(proto.SerializeAsString());
  }
  absl::StatusOr<v1::NumericCheck> Check(const std::vector<float>& outputs,
                                         const std::string& fetch = "y") {
    v1::CheckSample sample;
    Add("x", {-1, 2, 4}, sample.add_inputs());
    Add(fetch, outputs, sample.add_outputs());
    const std::string path = JoinPath(folder_, "check.pb");
    EXPECT_TRUE(WriteFileAtomically(path, sample.SerializeAsString()).ok());
    return CheckNumbersOf(graph_, path);
  }

  const std::string folder_;
  const std::string graph_;
};

TEST_F(NumericCheckTest, EqualAnswersPass) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::NumericCheck check, Check({0, 2, 4}));
  EXPECT_TRUE(check.passed());
  EXPECT_EQ(check.max_abs_error(), 0);
  EXPECT_EQ(check.max_abs_value(), 4);
  EXPECT_EQ(check.outputs(), 1);
}

TEST_F(NumericCheckTest, RoundingPassesAndMoreDoesNot) {
  EXPECT_TRUE(Check({0, 2, 4.003F})->passed());
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::NumericCheck check, Check({0, 3, 4}));
  EXPECT_FALSE(check.passed());
  EXPECT_THAT(check.max_abs_error(), DoubleNear(1, 1e-6));
  EXPECT_THAT(check.message(), HasSubstr("1"));
  EXPECT_FALSE(
      Check({0, 2, std::numeric_limits<float>::quiet_NaN()})->passed());
}

TEST_F(NumericCheckTest, SaysWhatCannotBeCompared) {
  EXPECT_THAT(Check({0, 2}),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("'y' is")));
  EXPECT_FALSE(Check({0, 2, 4}, "nothing").ok());
  const std::string path = JoinPath(folder_, "damaged.pb");
  EXPECT_TRUE(WriteFileAtomically(path, "\xff\xff").ok());
  EXPECT_THAT(CheckNumbersOf(graph_, path),
              StatusIs(absl::StatusCode::kInvalidArgument, _));
}

}  // namespace
}  // namespace optfarm::device_agent
