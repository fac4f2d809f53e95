#include "http/connection_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace optfarm::http {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Place = ConnectionTable::Place;

class ConnectionTableTest : public ::testing::Test {
 protected:
  std::vector<int> shut_;
  ConnectionTable table_{
      {.max_connections = 4, .max_per_peer = 3, .reserved = 1},
      [this](int socket) { shut_.push_back(socket); }};
};

TEST_F(ConnectionTableTest, TheOldestIdleOneOfTheLargestPeerGoesFirst) {
  EXPECT_EQ(table_.Enter(1, "a"), Place::kFull);
  EXPECT_EQ(table_.Enter(2, "b"), Place::kFull);
  EXPECT_EQ(table_.Enter(3, "b"), Place::kFull);
  EXPECT_EQ(table_.Enter(4, "b"), Place::kFull);
  table_.SetBusy(2, true);
  EXPECT_EQ(table_.Enter(5, "c"), Place::kFull);
  EXPECT_THAT(shut_, ElementsAre(3));
  // One that was asked something lately is younger than one that never was.
  table_.SetBusy(2, false);
  EXPECT_EQ(table_.Enter(6, "c"), Place::kFull);
  EXPECT_THAT(shut_, ElementsAre(3, 4));
}

TEST_F(ConnectionTableTest, APeerThatHasItsShareGivesUpItsOwn) {
  for (const int socket : {1, 2, 3}) {
    EXPECT_EQ(table_.Enter(socket, "a"), Place::kFull);
  }
  EXPECT_EQ(table_.Enter(4, "a"), Place::kFull);
  EXPECT_THAT(shut_, ElementsAre(1));
  for (const int socket : {2, 3, 4}) table_.SetBusy(socket, true);
  EXPECT_EQ(table_.Enter(5, "a"), Place::kHealthOnly);
  EXPECT_EQ(table_.Enter(6, "b"), Place::kFull);
  EXPECT_THAT(shut_, ElementsAre(1));
}

TEST_F(ConnectionTableTest, WhenAllAreBusyAFewAreKeptForHealth) {
  for (const int socket : {1, 2, 3, 4}) {
    EXPECT_EQ(table_.Enter(socket, std::string(1, 'a' + socket)), Place::kFull);
    table_.SetBusy(socket, true);
  }
  EXPECT_EQ(table_.Enter(5, "x"), Place::kHealthOnly);
  EXPECT_THAT(shut_, IsEmpty());
  // Idle ones give way here too, busy ones do not.
  EXPECT_EQ(table_.Enter(6, "x"), Place::kHealthOnly);
  EXPECT_THAT(shut_, ElementsAre(5));
  table_.SetBusy(6, true);
  EXPECT_EQ(table_.Enter(7, "y"), Place::kNone);
  table_.Leave(1);
  EXPECT_EQ(table_.Enter(7, "y"), Place::kFull);
}

}  // namespace
}  // namespace optfarm::http
