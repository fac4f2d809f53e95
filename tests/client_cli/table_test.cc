// Golden texts of the three forms of a table, and of the units in it.

#include "client_cli/tables/table.h"

#include <gtest/gtest.h>

#include <limits>
#include <sstream>
#include <utility>

namespace optfarm::client_cli {
namespace {

Table SampleTable() {
  Table table({{"name", "NAME"},
               {"median_us", "MEDIAN", Table::Align::kRight},
               {"noisy", "NOISY"}});
  table.AddRow(
      {Cell::Text("float"), Cell(4210.5, "4.21 ms"), Cell(false, "no")});
  table.AddRow({Cell::Text("a, \"b\"\x1b[2J"), Cell(), Cell(true, "yes")});
  return table;
}

TEST(TableTest, TextAlignsNumbersToTheRightAndKeepsControlCharactersOut) {
  EXPECT_EQ(SampleTable().ToText(),
            "NAME         MEDIAN  NOISY\n"
            "float       4.21 ms  no\n"
            "a, \"b\"?[2J        -  yes\n");
}

TEST(TableTest, CsvQuotesWhatNeedsItAndLeavesUnknownValuesEmpty) {
  EXPECT_EQ(SampleTable().ToCsv(),
            "name,median_us,noisy\n"
            "float,4210.5,false\n"
            "\"a, \"\"b\"\"\x1b[2J\",,true\n");
}

TEST(TableTest, CsvHasNoFormulas) {
  RowWriter rows({"x"}, OutputFormat::kCsv);
  for (const char* text : {"=HYPERLINK(\"x\")", "+1+1", "-cmd|' /C calc'!A0",
                           "@SUM(A1)", "\tx", "-0.5", "+3e2", "-", "a=b", ""}) {
    rows.Text(text);
  }
  EXPECT_EQ(std::move(rows).Finish(),
            "x\n"
            "\"'=HYPERLINK(\"\"x\"\")\"\n'+1+1\n'-cmd|' /C calc'!A0\n"
            "'@SUM(A1)\n'\tx\n-0.5\n+3e2\n'-\na=b\n\n");
}

TEST(TableTest, JsonHasOneObjectARowWithFieldsInColumnOrder) {
  EXPECT_EQ(
      SampleTable().ToJson(),
      "[\n"
      "  {\"name\": \"float\", \"median_us\": 4210.5, \"noisy\": false},\n"
      "  {\"name\": \"a, \\\"b\\\"\\u001b[2J\", \"median_us\": null, "
      "\"noisy\": true}\n"
      "]\n");
}

TEST(TableTest, EmptyTableIsAnEmptyArrayAndAHeading) {
  const Table table({Table::Column{"name", "NAME"}});
  EXPECT_EQ(table.ToJson(), "[]\n");
  EXPECT_EQ(table.ToCsv(), "name\n");
  EXPECT_EQ(table.ToText(), "NAME\n");
}

TEST(TableTest, NumbersThatJsonCannotSayAreNull) {
  Table table({Table::Column{"x", "X"}});
  table.AddRow({Cell(std::numeric_limits<double>::infinity(), "inf")});
  table.AddRow({Cell(0.1, "0.1")});
  EXPECT_EQ(table.ToJson(), "[\n  {\"x\": null},\n  {\"x\": 0.1}\n]\n");
  EXPECT_EQ(table.ToCsv(), "x\n\n0.1\n");
}

TEST(TableTest, InvalidUtf8IsReplacedInJson) {
  EXPECT_EQ(JsonString("a\xff"), "\"a\xEF\xBF\xBD\"");
}

TEST(TableTest, WideCharactersOfUtf8CountAsOnePosition) {
  Table table({{"a", "A"}, {"b", "B"}});
  table.AddRow({Cell::Text("\xC3\xA9\xC3\xA9"), Cell::Text("x")});
  table.AddRow({Cell::Text("abc"), Cell::Text("y")});
  EXPECT_EQ(table.ToText(), "A    B\n\xC3\xA9\xC3\xA9   x\nabc  y\n");
}

TEST(TableTest, FoldsALongTextWhereTheTerminalIsNarrow) {
  Table table({{"name", "NAME"},
               {.name = "text", .title = "TEXT", .folds = true},
               {"count", "COUNT", Table::Align::kRight}});
  table.AddRow({Cell::Text("a"), Cell::Text("some words that do not fit here"),
                Cell::Integer(7)});
  table.AddRow({Cell::Text("bc"), Cell::Text("short"), Cell::Integer(12)});
  EXPECT_EQ(table.ToText(true, /*wide=*/false, /*width=*/34),
            "NAME  TEXT                COUNT\n"
            "a     some words that do      7\n"
            "      not fit here\n"
            "bc    short                  12\n");
  const std::string whole = table.ToText(true, /*wide=*/false);
  EXPECT_THAT(whole, ::testing::HasSubstr("some words that do not fit here"));
  // Neither a wide terminal nor -o wide changes anything.
  EXPECT_EQ(table.ToText(true, /*wide=*/false, /*width=*/80), whole);
  EXPECT_EQ(table.ToText(true, /*wide=*/true, /*width=*/34), whole);
}

TEST(RowWriterTest, RowsAreWrittenAsATableWritesThem) {
  for (const OutputFormat format : {OutputFormat::kCsv, OutputFormat::kJson}) {
    RowWriter rows({"name", "median_us", "noisy"}, format);
    rows.Text("float");
    rows.Number(4210.5);
    std::ostringstream first;
    rows.MoveTo(first);
    rows.Bool(false);
    rows.Text("a, \"b\"\x1b[2J");
    rows.Unknown();
    rows.Bool(true);
    EXPECT_EQ(first.str() + std::move(rows).Finish(),
              SampleTable().ToFormat(format));
  }
}

TEST(RowWriterTest, NumbersHaveNineDigits) {
  RowWriter rows({"x"}, OutputFormat::kCsv);
  rows.Number(1 / 3.0);
  rows.Number(1e20);
  rows.Integer(-12345678901234);
  EXPECT_EQ(std::move(rows).Finish(),
            "x\n0.333333333\n1e+20\n-12345678901234\n");
}

}  // namespace
}  // namespace optfarm::client_cli
