// The flags that describe a job's data become the message as it travels.

#include "client_cli/jobs/data_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/files.h"
#include "tests/support/status_matchers.h"

namespace optfarm::client_cli {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::HasSubstr;

class DataFlagsTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name) {
    const std::string path = JoinPath(::testing::TempDir(), name);
    EXPECT_TRUE(WriteFileAtomically(path, "not read here").ok());
    return path;
  }
  absl::StatusOr<optimize::LocalData> Read() {
    std::vector<std::string> remarks;
    return ReadDataFlags(flags_, &remarks);
  }

  DataFlags flags_;
};

TEST_F(DataFlagsTest, LayoutsGoToTheirInputsArray) {
  flags_.calibration = {"a=" + Write("a.npy"), "b:0=" + Write("b.npy")};
  flags_.labels = Write("labels.npy");
  flags_.layouts = {"samples", "b:0=constant"};
  OPTFARM_ASSERT_OK_AND_ASSIGN(const optimize::LocalData data, Read());
  ASSERT_EQ(data.dataset.sources_size(), 3);
  EXPECT_EQ(data.dataset.sources(0).layout(),
            v1::DataSource::SAMPLE_AXIS_FIRST);
  EXPECT_EQ(data.dataset.sources(1).layout(), v1::DataSource::CONSTANT);
  EXPECT_EQ(data.dataset.sources(2).layout(),
            v1::DataSource::LAYOUT_UNSPECIFIED);
}

TEST_F(DataFlagsTest, LayoutsAreLeftToTheShapeByDefault) {
  flags_.calibration = {"a=" + Write("a.npy")};
  OPTFARM_ASSERT_OK_AND_ASSIGN(const optimize::LocalData data, Read());
  EXPECT_EQ(data.dataset.sources(0).layout(),
            v1::DataSource::LAYOUT_UNSPECIFIED);
}

TEST_F(DataFlagsTest, LayoutsOfNothingAreErrorsThatSayWhatToGive) {
  flags_.calibration = {"a=" + Write("a.npy")};
  flags_.layouts = {"c=constant"};
  EXPECT_THAT(Read().status(),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("--layout: no --calibration feeds input 'c'; "
                                 "give --calibration=c=FILE.npy")));
  flags_.layouts = {"a=first"};
  EXPECT_THAT(Read().status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("'first' is neither 'samples' nor")));
  flags_.calibration.clear();
  flags_.layouts = {"constant"};
  EXPECT_THAT(Read().status(),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("no --calibration is an array")));
}

}  // namespace
}  // namespace optfarm::client_cli
