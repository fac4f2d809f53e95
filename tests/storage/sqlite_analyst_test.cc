// Analysts get answers, within bounds, and change nothing.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "storage/sqlite/analyst.h"
#include "tests/storage/results_store.h"
#include "tests/support/status_matchers.h"

namespace optfarm::storage {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::_;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class AnalystTest : public SqliteResultsTest {
 protected:
  void SetUp() override {
    SqliteResultsTest::SetUp();
    CommitMany(30);
  }
  absl::StatusOr<v1::QuerySqlResponse> Ask(const std::string& sql,
                                           SqlLimits limits = {}) {
    return RunReadOnlySql(path_, sql, limits);
  }
};

TEST_F(AnalystTest, AnswersWithColumnsAndTypedValues) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const v1::QuerySqlResponse answer,
      Ask("SELECT COUNT(*) AS n, MIN(median_us), MAX(device), NULL, x'00ff'"
          " FROM results; "));
  EXPECT_THAT(answer.columns(), ElementsAre("n", "MIN(median_us)",
                                            "MAX(device)", "NULL", "x'00ff'"));
  const auto& values = answer.rows(0).values();
  EXPECT_EQ(values[0].integer(), 30);
  EXPECT_GE(values[1].real(), 100);
  EXPECT_EQ(values[2].text(), "pi3");
  EXPECT_EQ(values[3].value_case(), v1::SqlValue::VALUE_NOT_SET);
  EXPECT_EQ(values[4].blob().size(), 2u);
}

TEST_F(AnalystTest, RefusesEverythingThatIsNotAQuestionAboutResults) {
  for (const char* sql : {"DELETE FROM measurements",
                          "UPDATE series SET device = 'x'",
                          "INSERT INTO graphs VALUES (999, 'x')",
                          "DROP TABLE samples",
                          "CREATE TABLE t (x)",
                          "CREATE TEMP TABLE t (x)",
                          "VACUUM",
                          "ATTACH 'other.db' AS o",
                          "PRAGMA query_only=OFF",
                          "PRAGMA journal_mode=DELETE",
                          "BEGIN IMMEDIATE",
                          "ANALYZE",
                          "SELECT load_extension('/tmp/x.so')",
                          "SELECT spec_proto FROM jobs",
                          "SELECT * FROM jobs",
                          "SELECT * FROM participants",
                          "SELECT * FROM sqlite_master",
                          "SELECT * FROM events",
                          "SELECT COUNT(*) FROM events",
                          "SELECT COUNT(*) FROM sqlite_schema",
                          "SELECT COUNT(*) FROM pragma_table_info('jobs')",
                          "SELECT * FROM pragma_table_info('jobs')",
                          "SELECT 1; DELETE FROM measurements",
                          "SELECT 1; SELECT 2",
                          "",
                          "--",
                          "SELEC 1",
                          "SELECT * FROM nothing",
                          "WITH x AS (SELECT 1) DELETE FROM measurements",
                          "REPLACE INTO graphs VALUES (1, 'x')"}) {
    const auto answer = Ask(sql);
    EXPECT_THAT(answer, StatusIs(absl::StatusCode::kInvalidArgument, _)) << sql;
  }
  EXPECT_THAT(*store_->QueryMeasurements({}, {}), SizeIs(30));
}

TEST_F(AnalystTest, StopsAtItsBounds) {
  SqlLimits limits;
  limits.max_rows = 7;
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto answer,
                               Ask("SELECT result_id FROM results", limits));
  EXPECT_EQ(answer.rows_size(), 7);
  EXPECT_TRUE(answer.truncated());
  limits.max_rows = 100;
  limits.max_bytes = 200;
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      answer, Ask("SELECT measured_sha256 FROM results", limits));
  EXPECT_TRUE(answer.truncated());
  EXPECT_LT(answer.rows_size(), 20);
  EXPECT_THAT(Ask("SELECT hex(zeroblob(1000))", limits),
              StatusIs(absl::StatusCode::kResourceExhausted, _));
  EXPECT_THAT(Ask("SELECT zeroblob(100000000)"),
              StatusIs(absl::StatusCode::kResourceExhausted, _));
  limits.max_time = absl::Milliseconds(20);
  EXPECT_THAT(
      Ask("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)"
          " SELECT COUNT(*) FROM c",
          limits),
      StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("20ms")));
}

}  // namespace
}  // namespace optfarm::storage
