// What a server that stands by reads of the leader's database.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "storage/postgres/follower.h"
#include "tests/storage/sample_job.h"
#include "tests/support/status_matchers.h"

namespace optfarm::storage {
namespace {

using ::optfarm::testing::IsOk;
using ::optfarm::testing::StatusIs;
using ::testing::HasSubstr;

class PostgresFollowerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    OPTFARM_MAKE_PLACE(place_);
    OPTFARM_ASSERT_OK_AND_ASSIGN(stores_, place_.OpenAll(kNow));
  }

  absl::Status Measure(const std::string& job, int number) {
    WriteBatch batch;
    MeasurementRecord record;
    record.job_id = job;
    record.task_id = job + "/benchmark/pi4";
    record.create_time = kNow + absl::Seconds(number);
    record.measurement.set_device(absl::StrCat("pi", number % 3));
    record.measurement.set_median_us(100 + number);
    batch.measurements.push_back(std::move(record));
    return stores_.store->Commit(batch);
  }

  EnginePlace place_{Engine::kPostgres};
  PostgresStores stores_;
};

TEST_F(PostgresFollowerTest, ReadsEachResultAsSoonAsItIsCommitted) {
  for (const char* job : {"one1", "two2"}) {
    WriteBatch batch;
    batch.new_jobs.push_back(SampleJob(job));
    ASSERT_THAT(stores_.store->Commit(batch), IsOk());
  }
  const auto reader = FollowPostgres(place_.path(), kResultsBytes);
  MeasurementFilter filter;
  filter.job_id = "one1";
  for (int i = 0; i < 20; ++i) {
    ASSERT_THAT(Measure(i % 2 == 0 ? "one1" : "two2", i), IsOk());
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto found,
                                 reader->QueryMeasurements(filter, {}));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto known,
                                 stores_.store->QueryMeasurements(filter, {}));
    ASSERT_EQ(found.size(), static_cast<size_t>(i / 2 + 1));
    ASSERT_EQ(known.size(), found.size());
    for (size_t k = 0; k < found.size(); ++k) {
      EXPECT_EQ(found[k].result_id, known[k].result_id);
      EXPECT_EQ(found[k].measurement.SerializeAsString(),
                known[k].measurement.SerializeAsString());
    }
  }
  // Of all jobs, from the numbers in memory.
  OPTFARM_ASSERT_OK_AND_ASSIGN(const SeriesList list,
                               reader->ListSeries({}, {}));
  size_t points = 0;
  for (const SeriesRecord& series : list.series) {
    points += series.points.size();
  }
  EXPECT_EQ(points, 20u);
  filter.project = "another";
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto none,
                               reader->QueryMeasurements(filter, {}));
  EXPECT_TRUE(none.empty());
  // What the leader lets go is gone here.
  RetentionPolicy policy;
  policy.jobs_before = absl::InfiniteFuture();
  ASSERT_THAT(stores_.store->Prune(policy), IsOk());
  OPTFARM_ASSERT_OK_AND_ASSIGN(const SeriesList left,
                               reader->ListSeries({}, {}));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const SeriesList known,
                               stores_.store->ListSeries({}, {}));
  EXPECT_EQ(left.series.size(), known.series.size());
}

TEST_F(PostgresFollowerTest, WritesNothing) {
  const auto reader = FollowPostgres(place_.path(), kResultsBytes);
  WriteBatch batch;
  batch.new_jobs.push_back(SampleJob("one1"));
  EXPECT_THAT(reader->Commit(batch), StatusIs(absl::StatusCode::kUnavailable,
                                              HasSubstr("no longer writes")));
  EXPECT_THAT(reader->GetJob("one1").status(),
              StatusIs(absl::StatusCode::kNotFound, ::testing::_));
}

TEST_F(PostgresFollowerTest, TheMarkOfTokensChangesWithThem) {
  TokenWatch watch(place_.path());
  std::set<std::string> marks;
  const auto is_new = [&] {
    const auto mark = watch.Mark();
    EXPECT_THAT(mark, IsOk());
    return marks.insert(mark.value_or("")).second;
  };
  EXPECT_TRUE(is_new());
  EXPECT_FALSE(is_new());
  for (const char* id : {"a", "b"}) {
    TokenRecord token;
    token.token_id = id;
    token.name = "name";
    token.secret_sha256 = absl::StrCat("secret of ", id);
    token.project = "default";
    token.create_time = kNow;
    token.expire_time = kNow + absl::Hours(1);
    ASSERT_THAT(stores_.tokens->Add(token), IsOk());
    EXPECT_TRUE(is_new());
    EXPECT_FALSE(is_new());
  }
  for (const char* id : {"b", "a"}) {
    ASSERT_THAT(stores_.tokens->Revoke(id, kNow), IsOk());
    EXPECT_TRUE(is_new());
    EXPECT_EQ(watch.tokens().List()->size(), 2u);
  }
  ASSERT_THAT(stores_.tokens->ForgetEnded(kNow + absl::Hours(2)), IsOk());
  EXPECT_FALSE(is_new());
  EXPECT_TRUE(watch.tokens().List()->empty());
  // A newer server may mean something else by them.
  const auto connection = PostgresConnection::Connect(place_.path());
  ASSERT_THAT(connection, IsOk());
  ASSERT_THAT((*connection)
                  ->Run("INSERT INTO schema_version VALUES (999, 'x', 0)",
                        absl::Minutes(1))
                  .status(),
              IsOk());
  EXPECT_THAT(watch.Mark(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                     HasSubstr("999")));
}

TEST_F(PostgresFollowerTest, AReplicaIsNoDatabaseForAServer) {
  ASSERT_THAT(PostgresConnection::Connect(place_.path()), IsOk());
  PostgresCluster& cluster = PostgresCluster::Get();
  cluster.Crash();
  cluster.StartAsReplica();
  EXPECT_THAT(PostgresConnection::Connect(place_.path()).status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("replica")));
  cluster.Crash();
  cluster.Start();
  EXPECT_THAT(PostgresConnection::Connect(place_.path()), IsOk());
}

}  // namespace
}  // namespace optfarm::storage
