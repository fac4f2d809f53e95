// Statements that were written for all engines are PostgreSQL's afterwards.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/postgres/dialect.h"

namespace optfarm::storage {
namespace {

using ::testing::ElementsAre;

TEST(PostgresDialectTest, ParametersAreNumberedAnewWithoutGaps) {
  const PostgresText text =
      ToPostgres("SELECT a FROM t WHERE b = ?7 AND (c = ?12 OR ?7 IS NULL)");
  EXPECT_EQ(text.sql,
            "SELECT a FROM t WHERE b = $1 AND (c = $2 OR $1 IS NULL)");
  EXPECT_THAT(text.parameters, ElementsAre(7, 12));
}

TEST(PostgresDialectTest, HintsOfAnotherEngineGo) {
  EXPECT_EQ(
      ToPostgres("SELECT 1 FROM a CROSS JOIN b USING (c) WHERE +d = 1").sql,
      "SELECT 1 FROM a JOIN b USING (c) WHERE d = 1");
  EXPECT_EQ(
      ToPostgres("SELECT a FROM t AS m INDEXED BY by_a WHERE a = 1 + 2").sql,
      "SELECT a FROM t AS m  WHERE a = 1 + 2");
}

TEST(PostgresDialectTest, ListsAreArrays) {
  const PostgresText text = ToPostgres(
      "SELECT a FROM t WHERE b IN (SELECT value FROM json_each(?3))"
      " AND c IN (SELECT d FROM u WHERE e = ?1)");
  EXPECT_EQ(text.sql,
            "SELECT a FROM t WHERE b = ANY($1)"
            " AND c IN (SELECT d FROM u WHERE e = $2)");
  EXPECT_THAT(text.parameters, ElementsAre(3, 1));
}

TEST(PostgresDialectTest, QuotedTextStays) {
  EXPECT_EQ(ToPostgres("SELECT ' ?1 INDEXED BY x +a', ?2").sql,
            "SELECT ' ?1 INDEXED BY x +a', $1");
}

}  // namespace
}  // namespace optfarm::storage
