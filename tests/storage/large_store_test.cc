// What a store has to do well when it is large: lists find their jobs by
// indexes, questions do not wait for each other, and logs stay small.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "base/files.h"
#include "storage/sql/job_query.h"
#include "storage/sql/readers.h"
#include "storage/sqlite/metadata_store.h"
#include "storage/sqlite/migrations.h"
#include "tests/support/status_matchers.h"

namespace optfarm::storage {
namespace {

using ::optfarm::testing::IsOk;

const absl::Time kNow = absl::FromUnixSeconds(1700000000);

class LargeStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    OPTFARM_ASSERT_OK_AND_ASSIGN(folder_, MakeTemporaryFolder("large"));
    path_ = JoinPath(folder_, "db");
  }
  void TearDown() override { EXPECT_THAT(RemoveAll(folder_), IsOk()); }

  std::string folder_;
  std::string path_;
};

TEST_F(LargeStoreTest, NoListReadsAllJobs) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto db, SqliteDatabase::Open(path_));
  ASSERT_THAT(MigrateSqlite(*db, AllSqliteMigrations(), kNow), IsOk());
  const auto queries = sql::AllJobQueries();
  ASSERT_EQ(queries.size(), 128u);
  // Statements are found by where their text is.
  std::deque<std::string> texts;
  // Without a filter the newest page is what comes first.
  for (const std::string& query : queries.subspan(1)) {
    const std::string& text =
        texts.emplace_back(absl::StrCat("EXPLAIN QUERY PLAN ", query));
    SqlStatement plan = db->Prepare(text.c_str());
    int steps = 0;
    for (; plan.Step(); ++steps) {
      const std::string step = plan.Text(3);
      EXPECT_FALSE(absl::StartsWith(step, "SCAN")) << step << ": " << query;
      EXPECT_FALSE(absl::StrContains(step, "INTEGER PRIMARY KEY"))
          << step << ": " << query;
    }
    EXPECT_THAT(plan.status(), IsOk());
    EXPECT_GT(steps, 0) << query;
  }
}

TEST_F(LargeStoreTest, AQuestionDoesNotWaitForAnother) {
  std::vector<std::unique_ptr<SqlDatabase>> connections;
  for (int i = 0; i < 2; ++i) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(connections.emplace_back(),
                                 SqliteDatabase::Open(path_));
  }
  SqlReaders readers(std::move(connections));
  auto first = std::make_unique<SqlReaders::Turn>(readers);
  SqlReaders::Turn second(readers);
  EXPECT_NE(&first->db(), &second.db());
  absl::Notification third;
  std::thread waiting([&] {
    SqlReaders::Turn turn(readers);
    third.Notify();
  });
  EXPECT_FALSE(third.WaitForNotificationWithTimeout(absl::Milliseconds(50)));
  first = nullptr;
  third.WaitForNotification();
  waiting.join();
}

TEST_F(LargeStoreTest, AnIdleStoreHasAnEmptyLog) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto store,
                               OpenSqliteMetadataStore(path_, kNow));
  WriteBatch batch;
  for (int i = 0; i < 300; ++i) {
    v1::Recipe recipe;
    recipe.set_name(absl::StrCat("recipe-", i));
    recipe.set_transform_string(std::string(4000, 'x'));
    batch.recipes.push_back(recipe);
  }
  ASSERT_THAT(store->Commit(batch), IsOk());
  const std::string log = path_ + "-wal";
  OPTFARM_ASSERT_OK_AND_ASSIGN(const uint64_t before, FileSize(log));
  EXPECT_GT(before, uint64_t{1} << 20);
  ASSERT_THAT(store->Prune({}), IsOk());
  OPTFARM_ASSERT_OK_AND_ASSIGN(const uint64_t after, FileSize(log));
  EXPECT_EQ(after, 0u);
  // Nothing is lost, and the next change is written.
  EXPECT_EQ(store->ListRecipes()->size(), 300u);
  EXPECT_THAT(store->Commit(batch), IsOk());
}

}  // namespace
}  // namespace optfarm::storage
