#include "server/services/transfer_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/support/status_matchers.h"

namespace optfarm::server {
namespace {

using ::optfarm::testing::IsOk;
using ::testing::HasSubstr;

class TransferWatchTest : public ::testing::Test {
 protected:
  absl::Status Begin(const std::string& project, const std::string& token) {
    auto begun = watch_.Begin(
        {project, token}, [this] { ++cancelled_; }, now_);
    if (begun.ok()) transfers_.push_back(*std::move(begun));
    return begun.status();
  }

  absl::Time now_ = absl::UnixEpoch();
  int cancelled_ = 0;
  TransferWatch watch_{{.max_transfers = 6,
                        .max_of_projects = 5,
                        .max_of_project = 3,
                        .max_of_token = 2,
                        .period = absl::Seconds(60),
                        .least_bytes = 600}};
  std::vector<std::unique_ptr<TransferWatch::Transfer>> transfers_;
};

TEST_F(TransferWatchTest, NobodyTakesThePlacesOfAll) {
  EXPECT_THAT(Begin("a", "1"), IsOk());
  EXPECT_THAT(Begin("a", "1"), IsOk());
  EXPECT_THAT(std::string(Begin("a", "1").message()),
              HasSubstr("2 transfers with this token"));
  EXPECT_THAT(Begin("a", "2"), IsOk());
  EXPECT_THAT(std::string(Begin("a", "3").message()),
              HasSubstr("3 transfers of this project"));
  EXPECT_THAT(Begin("b", "4"), IsOk());
  EXPECT_THAT(Begin("b", "4"), IsOk());
  EXPECT_THAT(std::string(Begin("c", "5").message()),
              HasSubstr("5 transfers of all projects"));
  // There is still room for a worker.
  EXPECT_THAT(Begin("", "w"), IsOk());
  const absl::Status full = Begin("", "w");
  EXPECT_TRUE(absl::IsUnavailable(full));
  EXPECT_THAT(std::string(full.message()), HasSubstr("6 transfers of all"));
  transfers_.clear();
  EXPECT_THAT(Begin("a", "1"), IsOk());
}

TEST_F(TransferWatchTest, ProgressIsBytesInEachPeriod) {
  ASSERT_THAT(Begin("a", "1"), IsOk());
  ASSERT_THAT(Begin("b", "2"), IsOk());
  transfers_[0]->Moved(599);
  transfers_[1]->Moved(600);
  now_ += absl::Seconds(59);
  watch_.CancelStalled(now_);
  EXPECT_EQ(cancelled_, 0);
  now_ += absl::Seconds(1);
  watch_.CancelStalled(now_);
  EXPECT_EQ(cancelled_, 1);
  EXPECT_TRUE(transfers_[0]->Stalled());
  // What moved before does not count for ever.
  transfers_[1]->Moved(1);
  now_ += absl::Seconds(60);
  watch_.CancelStalled(now_);
  EXPECT_TRUE(transfers_[1]->Stalled());
}

}  // namespace
}  // namespace optfarm::server
