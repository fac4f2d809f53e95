// Tunes are kept as far as they have come.

#include "storage/tune_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/storage/engines.h"
#include "tests/support/status_matchers.h"

namespace optfarm::storage {
namespace {

using ::optfarm::testing::IsOk;
using ::optfarm::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const absl::Time kStart = absl::FromUnixSeconds(1'700'000'000);

class TuneStoreTest : public ::testing::TestWithParam<Engine> {
 protected:
  void SetUp() override {
    OPTFARM_MAKE_PLACE(place_);
    Reopen();
  }

  void Reopen() {
    stores_ = PostgresStores();
    auto stores = place_.OpenAll(kStart);
    ASSERT_THAT(stores, IsOk());
    stores_ = *std::move(stores);
    store_ = stores_.tunes.get();
  }
  TuneRecord Add(const std::string& id, const std::string& project,
                 const std::string& request_id = "") {
    TuneRecord record;
    record.client_request_id = request_id;
    record.spec_digest = "digest of " + id;
    record.token_id = "token";
    record.scopes = 6;
    record.spec.add_devices("pi4");
    record.spec.mutable_job()->mutable_model()->set_name("model.pb");
    record.tune.set_tune_id(id);
    record.tune.set_project(project);
    record.tune.set_state(v1::TUNE_RUNNING);
    EXPECT_THAT(store_->Add(record), IsOk());
    return record;
  }
  void End(TuneRecord record, int64_t seconds) {
    record.tune.set_state(v1::TUNE_SUCCEEDED);
    record.tune.mutable_end_time()->set_seconds(absl::ToUnixSeconds(kStart) +
                                                seconds);
    EXPECT_THAT(store_->Update(record), IsOk());
  }
  static std::vector<std::string> Ids(
      const absl::StatusOr<std::vector<TuneRecord>>& records) {
    EXPECT_THAT(records, IsOk());
    std::vector<std::string> ids;
    for (const TuneRecord& record : *records) {
      ids.push_back(record.tune.tune_id());
    }
    return ids;
  }

  EnginePlace place_{GetParam()};
  PostgresStores stores_;
  TuneStore* store_ = nullptr;
};

OPTFARM_INSTANTIATE_ENGINES(TuneStoreTest);

TEST_P(TuneStoreTest, EverythingIsThereAfterARestart) {
  TuneRecord record = Add("t1", "alpha", "request");
  record.finish_round = 3;
  record.tune.set_progress("int8, 1 of 6");
  ASSERT_THAT(store_->Update(record), IsOk());
  Reopen();
  const absl::StatusOr<TuneRecord> found = store_->Get("t1");
  ASSERT_THAT(found, IsOk());
  EXPECT_EQ(found->number, record.number);
  EXPECT_EQ(found->client_request_id, "request");
  EXPECT_EQ(found->spec_digest, "digest of t1");
  EXPECT_EQ(found->token_id, "token");
  EXPECT_EQ(found->scopes, 6u);
  EXPECT_EQ(found->finish_round, 3);
  EXPECT_EQ(found->spec.SerializeAsString(), record.spec.SerializeAsString());
  EXPECT_EQ(found->tune.SerializeAsString(), record.tune.SerializeAsString());
  EXPECT_EQ(store_->FindClientRequest("request").value()->tune.tune_id(), "t1");
  EXPECT_FALSE(store_->FindClientRequest("other").value().has_value());
}

TEST_P(TuneStoreTest, UnknownAndRepeatedOnesAreErrors) {
  Add("t1", "alpha", "request");
  EXPECT_THAT(store_->Get("t2"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("'t2'")));
  TuneRecord again;
  again.tune.set_tune_id("t1");
  EXPECT_THAT(store_->Add(again),
              StatusIs(absl::StatusCode::kAlreadyExists, ::testing::_));
  again.tune.set_tune_id("t2");
  again.client_request_id = "request";
  EXPECT_THAT(store_->Add(again),
              StatusIs(absl::StatusCode::kAlreadyExists, ::testing::_));
}

TEST_P(TuneStoreTest, ListsByProjectAndPage) {
  Add("t1", "alpha");
  Add("t2", "beta");
  const TuneRecord third = Add("t3", "alpha");
  EXPECT_THAT(Ids(store_->List({}, {})), ElementsAre("t3", "t2", "t1"));
  EXPECT_THAT(Ids(store_->List("alpha", {})), ElementsAre("t3", "t1"));
  EXPECT_THAT(Ids(store_->List({}, {third.number, 1})), ElementsAre("t2"));
  EXPECT_THAT(Ids(store_->List("gamma", {})), ElementsAre());
}

TEST_P(TuneStoreTest, ForgetsOnlyThoseThatEndedBefore) {
  End(Add("t1", "alpha"), 0);
  End(Add("t2", "alpha"), 10);
  Add("t3", "alpha");
  EXPECT_THAT(Ids(store_->ListRunning()), ElementsAre("t3"));
  EXPECT_THAT(store_->Forget(absl::InfinitePast()), IsOk());
  EXPECT_THAT(Ids(store_->List({}, {})), ElementsAre("t3", "t2", "t1"));
  EXPECT_THAT(store_->Forget(kStart + absl::Seconds(5)), IsOk());
  EXPECT_THAT(Ids(store_->List({}, {})), ElementsAre("t3", "t2"));
}

}  // namespace
}  // namespace optfarm::storage
