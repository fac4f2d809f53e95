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

v1::StepTime StepOf(const std::string& key, double us) {
  v1::StepTime step;
  step.mutable_work()->set_key(key);
  step.mutable_work()->set_op("Conv2D");
  step.mutable_work()->add_nodes("conv1");
  step.mutable_work()->set_multiply_adds(1e9);
  step.mutable_work()->set_input_bytes(100);
  step.mutable_work()->set_weight_bytes(200);
  step.mutable_work()->set_output_bytes(300);
  step.set_median_us(us);
  return step;
}

TEST_P(TuneStoreTest, KeepsWhatStepsTookByMachine) {
  Add("t1", "p");
  const std::vector<MachineSteps> first = {
      {"pi4", {StepOf("a", 10), StepOf("b", 20)}},
      {"pixel7", {StepOf("a", 3)}}};
  ASSERT_THAT(store_->AddSteps("t1", 1, first, kStart), IsOk());
  // The same round again, after a restart.
  Reopen();
  ASSERT_THAT(store_->AddSteps("t1", 1, first, kStart), IsOk());
  ASSERT_THAT(store_->AddSteps("t1", 2, {{"pi4", {StepOf("a", 16)}}},
                               kStart + absl::Seconds(1)),
              IsOk());
  auto steps = store_->StepsOn("pi4", 10);
  ASSERT_THAT(steps, IsOk());
  ASSERT_EQ(steps->size(), 2u);
  // The newest first; half way to the new time.
  EXPECT_EQ((*steps)[0].work().key(), "a");
  EXPECT_DOUBLE_EQ((*steps)[0].median_us(), 13);
  EXPECT_EQ((*steps)[0].work().op(), "Conv2D");
  EXPECT_EQ((*steps)[0].work().multiply_adds(), 1e9);
  EXPECT_EQ((*steps)[0].work().output_bytes(), 300);
  EXPECT_EQ((*steps)[0].work().nodes_size(), 0);
  EXPECT_DOUBLE_EQ((*steps)[1].median_us(), 20);
  steps = store_->StepsOn("pi4", 1);
  ASSERT_THAT(steps, IsOk());
  EXPECT_EQ(steps->size(), 1u);
  EXPECT_EQ(store_->StepsOn("pixel7", 10)->size(), 1u);
  EXPECT_TRUE(store_->StepsOn("nobody", 10)->empty());
  EXPECT_EQ(store_->Get("t1")->measured_rounds, 2);

  ASSERT_THAT(store_->Forget(kStart + absl::Seconds(1)), IsOk());
  EXPECT_EQ(store_->StepsOn("pi4", 10)->size(), 1u);
  EXPECT_TRUE(store_->StepsOn("pixel7", 10)->empty());
}

TEST_P(TuneStoreTest, KeepsWhatATuneKnewOnce) {
  Add("t1", "p");
  EXPECT_FALSE(store_->Get("t1")->known_steps.has_value());
  v1::BenchmarkResult known;
  v1::Measurement& place = *known.add_measurements();
  place.set_device("pi4");
  place.set_threads(1);
  *place.add_steps() = StepOf("a", 10);
  ASSERT_THAT(store_->KeepKnownSteps("t1", known), IsOk());
  ASSERT_THAT(store_->KeepKnownSteps("t1", v1::BenchmarkResult()), IsOk());
  Reopen();
  const auto running = store_->ListRunning();
  ASSERT_THAT(running, IsOk());
  ASSERT_EQ(running->size(), 1u);
  ASSERT_TRUE((*running)[0].known_steps.has_value());
  EXPECT_EQ((*running)[0].known_steps->measurements(0).steps(0).median_us(),
            10);
}

}  // namespace
}  // namespace optfarm::storage
