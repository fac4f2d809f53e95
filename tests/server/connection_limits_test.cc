// Who keeps a connection when there are too many.

#include "server/access/connection_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace optfarm::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ConnectionLimitsTest : public ::testing::Test {
 protected:
  bool Enter(int socket, const std::string& peer) {
    return limits_.Enter(socket, peer, absl::StrCat(peer, ":", socket));
  }
  bool EnterWithToken(int socket, const std::string& peer) {
    const bool entered = Enter(socket, peer);
    limits_.NoteToken(absl::StrCat(peer, ":", socket));
    return entered;
  }

  std::vector<int> shut_;
  // Seconds; what is not named has just said something.
  std::map<int, int> silent_;
  ConnectionLimits limits_{
      {.max_connections = 4, .max_per_peer = 3, .reserved = 1},
      [this](int socket) { shut_.push_back(socket); },
      [this](int socket) { return absl::Seconds(silent_[socket]); }};
};

TEST_F(ConnectionLimitsTest, APeersFirstWithoutATokenGoes) {
  EXPECT_TRUE(EnterWithToken(1, "a"));
  EXPECT_TRUE(Enter(2, "a"));
  EXPECT_TRUE(Enter(3, "a"));
  EXPECT_THAT(shut_, IsEmpty());
  EXPECT_TRUE(Enter(4, "a"));
  EXPECT_THAT(shut_, ElementsAre(2));
  // Its end is told later, and changes nothing.
  limits_.Leave(2);
  EXPECT_EQ(limits_.size(), 3);
  EXPECT_TRUE(Enter(5, "a"));
  EXPECT_THAT(shut_, ElementsAre(2, 3));
}

TEST_F(ConnectionLimitsTest, HoldersOfTokensStayWhileTheySpeak) {
  for (const int socket : {1, 2, 3}) {
    EXPECT_TRUE(EnterWithToken(socket, "a"));
  }
  EXPECT_FALSE(Enter(4, "a"));
  EXPECT_THAT(shut_, IsEmpty());
  silent_ = {{1, 31}, {2, 600}};
  EXPECT_TRUE(Enter(4, "a"));
  EXPECT_THAT(shut_, ElementsAre(2));
}

TEST_F(ConnectionLimitsTest, WhoHasTheMostGivesWay) {
  EXPECT_TRUE(Enter(1, "b"));
  EXPECT_TRUE(Enter(2, "a"));
  EXPECT_TRUE(Enter(3, "a"));
  EXPECT_TRUE(EnterWithToken(4, "c"));
  EXPECT_TRUE(Enter(5, "d"));
  EXPECT_THAT(shut_, ElementsAre(2));
}

TEST_F(ConnectionLimitsTest, OneWhoHasNoneGetsAReservedPlace) {
  EXPECT_TRUE(EnterWithToken(1, "a"));
  EXPECT_TRUE(EnterWithToken(2, "a"));
  EXPECT_TRUE(EnterWithToken(3, "b"));
  EXPECT_TRUE(EnterWithToken(4, "c"));
  EXPECT_FALSE(Enter(5, "c"));
  EXPECT_TRUE(Enter(6, "d"));
  // What came for a look at the health is the first to go again.
  EXPECT_TRUE(Enter(7, "e"));
  EXPECT_THAT(shut_, ElementsAre(6));
  limits_.Leave(6);
  EXPECT_EQ(limits_.size(), 5);
  limits_.Leave(1);
  limits_.Leave(7);
  EXPECT_EQ(limits_.size(), 3);
  limits_.Leave(99);
  EXPECT_EQ(limits_.size(), 3);
}

}  // namespace
}  // namespace optfarm::server
