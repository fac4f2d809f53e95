// Columns of a SELECT found by name: in which place, and that it is the place
// SQLite gives them.

#include "storage/sql/select_columns.h"

#include <gtest/gtest.h>

#include "storage/sqlite/database.h"
#include "tests/support/status_matchers.h"

namespace optfarm::storage {
namespace {

#define TEST_SELECT                                                      \
  "SELECT p.name, age, COUNT(*) AS persons, (SELECT MAX(age), 1 FROM p)" \
  " AS oldest, MIN(1, 2), last_name FROM "

constexpr SelectColumns kColumns(TEST_SELECT);

TEST(SelectColumnsTest, NamesAreThoseAfterDotOrAs) {
  EXPECT_EQ(kColumns["name"], 0);
  EXPECT_EQ(kColumns["age"], 1);
  EXPECT_EQ(kColumns["persons"], 2);
}

TEST(SelectColumnsTest, CommasAndFromInParenthesesDoNotCount) {
  EXPECT_EQ(kColumns["oldest"], 3);
  EXPECT_EQ(kColumns["last_name"], 5);
}

TEST(SelectColumnsTest, ColumnsAfterTheListDoNotCount) {
  constexpr SelectColumns kTwo("SELECT a, b FROM t ORDER BY c, d");
  constexpr SelectColumns kThree("SELECT a, b, c FROM t");
  static_assert(kThree.BeginsWith(kTwo));
  static_assert(!kTwo.BeginsWith(kThree));
  static_assert(!kThree.BeginsWith(SelectColumns("SELECT b, a FROM t")));
  EXPECT_EQ(kTwo["b"], 1);
}

TEST(SelectColumnsTest, PlacesAreThoseOfSqlite) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto db, SqliteDatabase::Open(":memory:"));
  static constexpr char kSql[] =
      "SELECT t.one, MAX(2, 1) AS two, (SELECT 3 FROM (SELECT 1)) AS three"
      " FROM (SELECT 1 AS one) AS t";
  constexpr SelectColumns kNumbers(kSql);
  SqlStatement row = db->Prepare(kSql);
  ASSERT_TRUE(row.Step()) << row.status();
  EXPECT_EQ(row.Int(kNumbers["one"]), 1);
  EXPECT_EQ(row.Int(kNumbers["two"]), 2);
  EXPECT_EQ(row.Int(kNumbers["three"]), 3);
}

}  // namespace
}  // namespace optfarm::storage
