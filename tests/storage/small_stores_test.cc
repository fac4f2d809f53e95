// Tokens, webhooks and the audit log keep what they are given and let go of
// what they may.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "tests/storage/engines.h"
#include "tests/support/status_matchers.h"

namespace optfarm::storage {
namespace {

using ::optfarm::testing::IsOk;
using ::optfarm::testing::StatusIs;
using ::testing::_;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const absl::Time kNow = absl::FromUnixSeconds(1700000000);

class SmallStoresTest : public ::testing::TestWithParam<Engine> {
 protected:
  void SetUp() override {
    OPTFARM_MAKE_PLACE(place_);
    Reopen();
  }
  void Reopen() {
    stores_ = PostgresStores();
    OPTFARM_ASSERT_OK_AND_ASSIGN(stores_, place_.OpenAll(kNow));
  }

  EnginePlace place_{GetParam()};
  PostgresStores stores_;
};

TokenRecord Token(const std::string& id) {
  TokenRecord token;
  token.token_id = id;
  token.name = "name of " + id;
  token.secret_sha256 = "secret of " + id;
  token.scopes = {v1::Access::SUBMIT, v1::Access::READ};
  token.project = "project";
  token.create_time = kNow;
  token.expire_time = kNow + absl::Hours(1);
  return token;
}

TEST_P(SmallStoresTest, TokensComeBackNewestFirst) {
  ASSERT_THAT(stores_.tokens->Add(Token("one")), IsOk());
  ASSERT_THAT(stores_.tokens->Add(Token("two")), IsOk());
  TokenRecord same_secret = Token("three");
  same_secret.secret_sha256 = "secret of one";
  EXPECT_THAT(stores_.tokens->Add(same_secret),
              StatusIs(absl::StatusCode::kAlreadyExists, _));
  Reopen();
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto tokens, stores_.tokens->List());
  ASSERT_THAT(tokens, SizeIs(2));
  EXPECT_EQ(tokens[0].token_id, "two");
  EXPECT_EQ(tokens[1].name, "name of one");
  EXPECT_EQ(tokens[1].project, "project");
  EXPECT_THAT(tokens[1].scopes,
              ElementsAre(v1::Access::SUBMIT, v1::Access::READ));
  EXPECT_EQ(tokens[1].expire_time, kNow + absl::Hours(1));
  EXPECT_EQ(tokens[1].revoke_time, absl::InfinitePast());
}

TEST_P(SmallStoresTest, ATokenIsRevokedOnce) {
  ASSERT_THAT(stores_.tokens->Add(Token("one")), IsOk());
  EXPECT_THAT(stores_.tokens->Revoke("one", kNow), IsOk());
  EXPECT_THAT(stores_.tokens->Revoke("one", kNow + absl::Hours(9)), IsOk());
  EXPECT_THAT(stores_.tokens->Revoke("none", kNow),
              StatusIs(absl::StatusCode::kNotFound, _));
  EXPECT_EQ((*stores_.tokens->List())[0].revoke_time, kNow);
  ASSERT_THAT(stores_.tokens->ForgetEnded(kNow), IsOk());
  EXPECT_THAT(*stores_.tokens->List(), SizeIs(1));
  ASSERT_THAT(stores_.tokens->ForgetEnded(kNow + absl::Seconds(1)), IsOk());
  EXPECT_THAT(*stores_.tokens->List(), IsEmpty());
}

TEST_P(SmallStoresTest, WebhooksAreOpenUntilTheyAreClosed) {
  WebhookStore& webhooks = *stores_.webhooks;
  ASSERT_THAT(webhooks.Add({"job1", "https://a", 0, {}}, kNow), IsOk());
  ASSERT_THAT(webhooks.Add({"job2", "https://b", 0, {}}, kNow), IsOk());
  // The first address stays.
  ASSERT_THAT(webhooks.Add({"job1", "https://c", 0, {}}, kNow), IsOk());
  ASSERT_THAT(
      webhooks.Postpone({"job1", "", 3, kNow + absl::Minutes(1)}, "error 500"),
      IsOk());
  ASSERT_THAT(webhooks.Close("job2", "delivered", kNow), IsOk());
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto open, webhooks.ListOpen());
  ASSERT_THAT(open, SizeIs(1));
  EXPECT_EQ(open[0].url, "https://a");
  EXPECT_EQ(open[0].failures, 3);
  EXPECT_EQ(open[0].next_time, kNow + absl::Minutes(1));
  // What is forgotten may come again.
  ASSERT_THAT(webhooks.Forget(kNow + absl::Seconds(1)), IsOk());
  ASSERT_THAT(webhooks.Add({"job2", "https://d", 0, {}}, kNow), IsOk());
  EXPECT_THAT(*webhooks.ListOpen(), SizeIs(2));
}

TEST_P(SmallStoresTest, CallsAreListedByEveryFilter) {
  for (int i = 0; i < 12; ++i) {
    AuditRecord record;
    record.time = kNow + absl::Seconds(i);
    record.actor = i % 2 == 0 ? "ann" : "bob";
    record.project = i % 3 == 0 ? "p" : "q";
    record.method = i % 4 == 0 ? "JobService.SubmitJob" : "other";
    // Texts come from clients: not all are texts.
    record.message = std::string("a\0b\xff", 4);
    ASSERT_THAT(stores_.audit->Append(record), IsOk());
  }
  const auto seconds = [&](const AuditFilter& filter, const PageRequest& page) {
    std::vector<int64_t> found;
    const auto records = stores_.audit->List(filter, page);
    EXPECT_THAT(records, IsOk());
    for (const AuditRecord& record : *records) {
      found.push_back(absl::ToInt64Seconds(record.time - kNow));
    }
    return found;
  };
  EXPECT_THAT(seconds({"ann", "p", std::nullopt}, {}), ElementsAre(6, 0));
  EXPECT_THAT(seconds({std::nullopt, std::nullopt, "JobService.SubmitJob"}, {}),
              ElementsAre(8, 4, 0));
  AuditFilter times;
  times.from_time = kNow + absl::Seconds(3);
  times.until_time = kNow + absl::Seconds(6);
  EXPECT_THAT(seconds(times, {}), ElementsAre(5, 4, 3));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto newest,
                               stores_.audit->List({}, {0, 2}));
  EXPECT_THAT(seconds({}, {newest.back().number, 2}), ElementsAre(9, 8));
}

TEST_P(SmallStoresTest, OldCallsGoInSteps) {
  // More than one step takes.
  for (int i = 0; i < 2500; ++i) {
    AuditRecord record;
    record.time = kNow + absl::Seconds(i);
    record.method = "JobService.GetJob";
    ASSERT_THAT(stores_.audit->Append(record), IsOk());
  }
  ASSERT_THAT(stores_.audit->Forget(kNow + absl::Seconds(2400)), IsOk());
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto left,
                               stores_.audit->List({}, PageRequest{0, 1000}));
  EXPECT_EQ(left.size(), 100u);
  EXPECT_EQ(left.back().time, kNow + absl::Seconds(2400));
  // What is young stays, whatever is asked.
  AuditRecord young;
  young.time = absl::Now();
  ASSERT_THAT(stores_.audit->Append(young), IsOk());
  ASSERT_THAT(stores_.audit->Forget(absl::Now() + absl::Hours(1)), IsOk());
  EXPECT_THAT(*stores_.audit->List({}, {}), SizeIs(1));
}

OPTFARM_INSTANTIATE_ENGINES(SmallStoresTest);

}  // namespace
}  // namespace optfarm::storage
