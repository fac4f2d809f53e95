// What only PostgreSQL can do to a store: go away in the middle, come back, be
// given to another server, be newer.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "storage/postgres/leader_watch.h"
#include "storage/postgres/lease.h"
#include "storage/postgres/migrate_artifacts.h"
#include "storage/postgres/migrations.h"
#include "tests/storage/sample_job.h"
#include "tests/support/status_matchers.h"

namespace optfarm::storage {
namespace {

using ::optfarm::testing::IsOk;
using ::optfarm::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

class PostgresFaultsTest : public ::testing::Test {
 protected:
  void SetUp() override { OPTFARM_MAKE_PLACE(place_); }

  absl::StatusOr<PostgresStores> Open(absl::Duration lease,
                                      std::atomic<int>* lost = nullptr) {
    PostgresOptions options;
    options.uri = place_.path();
    options.holder = "machine:1";
    options.lease = lease;
    options.on_lost = [lost](const std::string&) {
      if (lost != nullptr) ++*lost;
    };
    return OpenPostgresStores(std::move(options), kNow);
  }

  // Ends the connections of others to the database.
  void Disconnect() {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto connection,
                                 PostgresConnection::Connect(place_.path()));
    ASSERT_THAT(
        connection
            ->Run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                  " WHERE datname = current_database()"
                  " AND pid <> pg_backend_pid()",
                  absl::Minutes(1))
            .status(),
        IsOk());
  }

  absl::Status Run(const char* sql) {
    OPTFARM_ASSIGN_OR_RETURN(const auto connection,
                             PostgresConnection::Connect(place_.path()));
    return connection->Run(sql, absl::Minutes(1)).status();
  }

  EnginePlace place_{Engine::kPostgres};
};

WriteBatch BatchOf(const std::string& job) {
  WriteBatch batch;
  batch.new_jobs.push_back(SampleJob(job));
  return batch;
}

TEST_F(PostgresFaultsTest, LostConnectionsAreMadeAnewUnseen) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const PostgresStores stores,
                               Open(absl::Seconds(10)));
  for (int i = 0; i < 3; ++i) {
    const std::string id = absl::StrCat("job", i);
    Disconnect();
    EXPECT_THAT(stores.store->Commit(BatchOf(id)), IsOk());
    Disconnect();
    EXPECT_THAT(stores.store->GetJob(id), IsOk());
    EXPECT_THAT(stores.store->ListSeries({}, {}), IsOk());
  }
  EXPECT_THAT(*stores.store->LoadLiveJobs(), SizeIs(3));
}

// Connections end at any place in a transaction, COMMIT included: what was said
// to be written is there once, and what was refused is not.
TEST_F(PostgresFaultsTest, NothingIsLostOrDoubledWhereConnectionsEnd) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const PostgresStores stores,
                               Open(absl::Seconds(10)));
  ASSERT_THAT(stores.store->Commit(BatchOf("job")), IsOk());
  std::atomic<bool> done{false};
  std::thread vandal([&] {
    while (!done) {
      Disconnect();
      absl::SleepFor(absl::Milliseconds(15));
    }
  });
  int written = 0;
  for (int i = 0; i < 150; ++i) {
    WriteBatch batch;
    for (int event = 0; event < 4; ++event) {
      batch.events.emplace_back().job_id = "job";
      batch.events.back().event.mutable_progress()->set_fraction(i);
    }
    const absl::Status status = stores.store->Commit(batch);
    if (status.ok()) {
      written += 4;
    } else {
      EXPECT_THAT(status,
                  StatusIs(absl::StatusCode::kUnavailable, ::testing::_));
    }
  }
  done = true;
  vandal.join();
  EXPECT_GT(written, 0);
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto events, stores.store->ReadEvents("job", 0, 10'000, true));
  ASSERT_THAT(events, SizeIs(written));
  for (size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(events[i].sequence(), static_cast<int64_t>(i + 1));
    EXPECT_EQ(events[i].progress().fraction(),
              events[i / 4 * 4].progress().fraction());
  }
}

TEST_F(PostgresFaultsTest, SaysPlainlyThatTheDatabaseIsGoneAndGoesOnAfter) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const PostgresStores stores,
                               Open(absl::Seconds(10)));
  ASSERT_THAT(stores.store->Commit(BatchOf("job0")), IsOk());
  PostgresCluster::Get().Crash();
  EXPECT_THAT(stores.store->Commit(BatchOf("job1")),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("database")));
  EXPECT_THAT(stores.store->GetJob("job0"),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("database")));
  PostgresCluster::Get().Start();
  absl::SleepFor(absl::Seconds(1));
  EXPECT_THAT(stores.store->Commit(BatchOf("job1")), IsOk());
  EXPECT_THAT(*stores.store->LoadLiveJobs(), SizeIs(2));
}

TEST_F(PostgresFaultsTest, ASecondServerIsRefused) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(PostgresStores stores, Open(absl::Seconds(2)));
  EXPECT_THAT(Open(absl::Seconds(2)).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("machine:1"), HasSubstr("in use"))));
  ASSERT_THAT(stores.store->Commit(BatchOf("job")), IsOk());
  // Once the first has ended, at once.
  stores = PostgresStores();
  const absl::Time start = absl::Now();
  EXPECT_THAT(Open(absl::Hours(1)), IsOk());
  EXPECT_LT(absl::Now() - start, absl::Seconds(60));
}

TEST_F(PostgresFaultsTest, AServerThatComesBackLateCannotWrite) {
  std::atomic<int> lost{0};
  OPTFARM_ASSERT_OK_AND_ASSIGN(const PostgresStores paused,
                               Open(absl::Hours(1), &lost));
  // As if its lease had ended while it was paused.
  ASSERT_THAT(Run("UPDATE leader SET lease_until = 0"), IsOk());
  OPTFARM_ASSERT_OK_AND_ASSIGN(const PostgresStores next, Open(absl::Hours(1)));
  EXPECT_THAT(
      paused.store->Commit(BatchOf("job")),
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr("another server")));
  EXPECT_THAT(paused.store->Commit(BatchOf("job")), Not(IsOk()));
  EXPECT_EQ(lost, 1);
  EXPECT_THAT(next.store->Commit(BatchOf("job")), IsOk());
}

TEST_F(PostgresFaultsTest, ALeaseThatIsNotRenewedEnds) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const PostgresStores first,
                               Open(absl::Hours(1)));
  // A second from now, and its holder renews it in a quarter of an hour.
  ASSERT_THAT(Run("UPDATE leader SET lease_until = "
                  "(EXTRACT(EPOCH FROM clock_timestamp()) + 1) * 1000000"),
              IsOk());
  EXPECT_THAT(Open(absl::Hours(1)), IsOk());
}

// The lease of one of several servers.
PostgresLease::Options OneOfSeveral(const std::string& uri,
                                    const std::string& name,
                                    absl::Duration length,
                                    std::atomic<int>* lost) {
  PostgresLease::Options options;
  options.uri = uri;
  options.holder = name;
  options.address = name + ":7070";
  options.length = length;
  options.ends_by_itself = true;
  options.on_lost = [lost](const std::string&) { ++*lost; };
  return options;
}

TEST_F(PostgresFaultsTest, OneOfSeveralServersLeadsAndLeavesANote) {
  std::atomic<int> lost{0};
  ASSERT_THAT(PreparePostgres(place_.path(), kNow), IsOk());
  LeaderWatch watch(place_.path());
  EXPECT_FALSE(watch.Look()->leads);
  const auto take = [&](const std::string& name) {
    return PostgresLease::TryToTake(
        OneOfSeveral(place_.path(), name, absl::Hours(1), &lost));
  };
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto first, take("first"));
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->found_note(), "");
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto second, take("second"));
  EXPECT_EQ(second, nullptr);
  OPTFARM_ASSERT_OK_AND_ASSIGN(LeaderRecord leader, watch.Look());
  EXPECT_TRUE(leader.leads);
  EXPECT_EQ(leader.holder, "first");
  EXPECT_EQ(leader.address, "first:7070");
  EXPECT_EQ(leader.secret, first->secret());
  EXPECT_THAT(leader.secret, SizeIs(64));
  first->LeaveNote("I was here");
  const std::string secret = first->secret();
  first.reset();
  EXPECT_FALSE(watch.Look()->leads);
  OPTFARM_ASSERT_OK_AND_ASSIGN(second, take("second"));
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->found_note(), "I was here");
  EXPECT_NE(second->secret(), secret);
  EXPECT_EQ(watch.Look()->epoch, leader.epoch + 1);
  EXPECT_EQ(lost, 0);
}

TEST_F(PostgresFaultsTest, ALeaderWithoutTheDatabaseLeadsNoLonger) {
  std::atomic<int> lost{0};
  ASSERT_THAT(PreparePostgres(place_.path(), kNow), IsOk());
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto lease, PostgresLease::TryToTake(OneOfSeveral(
                            place_.path(), "first", absl::Seconds(2), &lost)));
  ASSERT_NE(lease, nullptr);
  // Renewed beyond its length.
  absl::SleepFor(absl::Seconds(3));
  EXPECT_EQ(lost, 0);
  PostgresCluster::Get().Crash();
  const absl::Time deadline = absl::Now() + absl::Seconds(30);
  while (lost == 0 && absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(10));
  }
  PostgresCluster::Get().Start();
  EXPECT_EQ(lost, 1);
  EXPECT_TRUE(lease->fence()->is_lost());
}

TEST_F(PostgresFaultsTest, RefusesTheDatabaseOfANewerServer) {
  ASSERT_THAT(Open(absl::Seconds(10)), IsOk());
  ASSERT_THAT(Run("INSERT INTO schema_version VALUES (999, 'x', 0)"), IsOk());
  EXPECT_THAT(
      Open(absl::Seconds(10)).status(),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("newer")));
}

TEST_F(PostgresFaultsTest, ArtifactsOfVersion6CountForTheirProject) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const PostgresStores stores,
                               Open(absl::Seconds(10)));
  WriteBatch batch = BatchOf("old1");
  v1::Artifact& artifact = batch.new_jobs[0].tasks[0].artifacts.emplace_back();
  artifact.mutable_digest()->set_sha256("made");
  artifact.mutable_digest()->set_size_bytes(7);
  batch.project_blobs.push_back({kDefaultProject, {"brought", 5}});
  ASSERT_THAT(stores.store->Commit(batch), IsOk());
  EXPECT_EQ(stores.store->GetProjectUsage(kDefaultProject, kNow)->bytes, 5);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto connection,
                               PostgresConnection::Connect(place_.path()));
  ASSERT_THAT(connection->Run("BEGIN", absl::Minutes(1)), IsOk());
  ASSERT_THAT(CountArtifactsOfVersion6(*connection), IsOk());
  ASSERT_THAT(connection->Run("COMMIT", absl::Minutes(1)), IsOk());
  EXPECT_EQ(stores.store->GetProjectUsage(kDefaultProject, kNow)->bytes, 12);
}

TEST_F(PostgresFaultsTest, AFailedStepLeavesNothingBehind) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto connection,
                               PostgresConnection::Connect(place_.path()));
  constexpr PostgresMigration kSteps[] = {
      {"good", "CREATE TABLE a (x BIGINT)"},
      {"bad", "CREATE TABLE b (x BIGINT); CREATE TABLE a (x BIGINT)"},
  };
  EXPECT_THAT(MigratePostgres(*connection, kSteps, kNow), Not(IsOk()));
  EXPECT_THAT(Run("SELECT * FROM a"), Not(IsOk()));
  EXPECT_THAT(MigratePostgres(*connection, absl::MakeSpan(kSteps, 1), kNow),
              IsOk());
  EXPECT_THAT(Run("SELECT * FROM a"), IsOk());
}

// Two at once: one makes the schema, and the other finds it.
TEST_F(PostgresFaultsTest, TheSchemaIsMadeOnce) {
  std::vector<std::thread> servers;
  for (int i = 0; i < 3; ++i) {
    servers.emplace_back([&] {
      const auto connection = PostgresConnection::Connect(place_.path());
      ASSERT_THAT(connection, IsOk());
      EXPECT_THAT(MigratePostgres(**connection, AllPostgresMigrations(), kNow),
                  IsOk());
    });
  }
  for (std::thread& server : servers) server.join();
}

TEST(PostgresAddressTest, WrongOnesAreRefusedWithoutTheirPasswords) {
  const auto open = [](const std::string& uri) {
    PostgresOptions options;
    options.uri = uri;
    return OpenPostgresStores(std::move(options), kNow).status();
  };
  EXPECT_THAT(
      open("postgresql://u:secret@/db?host=/nonexistent&connect_timeout=2"),
      StatusIs(absl::StatusCode::kUnavailable,
               AllOf(HasSubstr("/nonexistent/db"), Not(HasSubstr("secret")))));
  EXPECT_THAT(
      open("postgresql://u@h/db?nonsense=1"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("nonsense")));
}

// A page of jobs is found by an index, whatever is asked for.
TEST_F(PostgresFaultsTest, NoListReadsAllJobs) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const PostgresStores stores,
                               Open(absl::Seconds(10)));
  WriteBatch batch;
  for (int i = 0; i < 3000; ++i) {
    NewJob& job = batch.new_jobs.emplace_back();
    job.job.job_id = absl::StrCat("job", i);
    job.job.create_time = kNow;
    job.job.state = i % 100 == 0 ? v1::RUNNING : v1::SUCCEEDED;
    job.job.project = absl::StrCat("p", i % 50);
    job.job.spec.set_name(absl::StrCat("n", i % 70));
    job.job.spec.mutable_recipe()->set_name(absl::StrCat("r", i % 40));
    job.job.spec.mutable_model()->set_name(absl::StrCat("m", i));
  }
  ASSERT_THAT(stores.store->Commit(batch), IsOk());
  ASSERT_THAT(Run("ANALYZE"), IsOk());
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto connection,
                               PostgresConnection::Connect(place_.path()));
  for (const char* condition :
       {"state = 2", "project = 'p3'", "recipe_name = 'r3'", "name = 'n3'",
        "model_name = 'm3'", "job_id >= 'job12' AND job_id < 'job12' || '~'",
        "project = 'p3' AND state = 2", "project = 'p3' AND name = 'n3'"}) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        const PostgresResult plan,
        connection->Run(
            absl::StrCat("EXPLAIN SELECT job_number FROM jobs WHERE "
                         "job_number < 9000000000 AND ",
                         condition, " ORDER BY job_number DESC LIMIT 50")
                .c_str(),
            absl::Minutes(1)));
    for (int row = 0; row < plan.rows(); ++row) {
      EXPECT_THAT(plan.Text(row, 0), Not(HasSubstr("Seq Scan"))) << condition;
    }
  }
}

}  // namespace
}  // namespace optfarm::storage
