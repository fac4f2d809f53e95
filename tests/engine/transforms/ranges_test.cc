// insert_logging, the log of ranges, and freeze_requantization_ranges.

#include "base/files.h"
#include "engine/transforms/freezing/freeze_ranges.h"
#include "engine/transforms/freezing/range_log.h"
#include "tests/engine/transforms/transform_testing.h"
#include "tests/support/test_data.h"

namespace optfarm::transforms::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A quantized result that is requantized to its own range.
Graph Requantized() {
  GraphBuilder b;
  b.Placeholder("q", {2}, tensorflow::DT_QINT32);
  b.Floats("min", {}, {-1});
  b.Floats("max", {}, {1});
  const tensorflow::AttrValue qint32 = TypeAttr(tensorflow::DT_QINT32);
  b.Node("range", "RequantizationRange", {"q", "min", "max"},
         {{"Tinput", qint32}});
  b.Node("codes", "Requantize", {"q", "min", "max", "range:0", "range:1"},
         {{"Tinput", qint32}, {"out_type", TypeAttr(tensorflow::DT_QUINT8)}});
  b.Node("out", "Dequantize", {"codes", "codes:1", "codes:2"},
         {{"T", TypeAttr(tensorflow::DT_QUINT8)},
          {"mode", StringAttr("MIN_FIRST")}});
  return b.Build();
}

TEST(InsertLoggingTest, PrintsEveryOutputThatIsRead) {
  Graph graph = Requantized();
  MustApply(&graph,
            "insert_logging(op=RequantizationRange, show_name=true, "
            "message=\"__requant_min_max:\")",
            "q", "out");
  EXPECT_EQ(Show(graph, "range__print__"), "Print(range, range, range:1)");
  EXPECT_EQ(Show(graph, "codes"),
            "Requantize(q, min, max, range__print__, range:1)");
  const graph::Node& print = graph.node(graph.Find("range__print__"));
  EXPECT_EQ(print.FindAttr("message")->s(),
            ";range__print__;__requant_min_max:");
  EXPECT_EQ(print.FindAttr("U")->list().type_size(), 2);
  EXPECT_EQ(print.FindAttr("first_n")->i(), -1);
  EXPECT_EQ(print.FindAttr("summarize")->i(), 1024);
}

TEST(InsertLoggingTest, ListsOnlyTheTypesItPrints) {
  GraphBuilder b;
  b.Placeholder("x", {4});
  b.Ints("axis", {}, {0});
  b.Node("halves", "Split", {"axis", "x"}, FloatT({{"num_split", IntAttr(2)}}));
  b.Node("out", "Relu", {"halves:1"}, FloatT());
  Graph graph = b.Build();
  MustApply(&graph, "insert_logging(prefix=hal, show_op=true)", "x", "out");
  EXPECT_EQ(Show(graph, "halves__print__"), "Print(halves, halves:1)");
  const graph::Node& print = graph.node(graph.Find("halves__print__"));
  EXPECT_EQ(print.FindAttr("U")->list().type_size(), 1);
  EXPECT_EQ(print.FindAttr("message")->s(), ";Split;");
}

TEST(InsertLoggingTest, SaysWhatItCannotLog) {
  Graph graph = Requantized();
  EXPECT_THAT(
      Skipped(MustApply(&graph, "insert_logging(op=Dequantize)", "q", "out")),
      ElementsAre(HasSubstr("out: nothing reads it")));
}

TEST(RangeLogTest, ReadsRecordsOfAllStyles) {
  const RangeLog log = ParseRangeLog(
      "I0108 21:45:42.261883    1972 logging_ops.cc:79] "
      ";conv/eightbit/requant_range__print__;__requant_min_max:[-20.887871]"
      "[22.274715]\n"
      ";conv/eightbit/requant_range__print__;__requant_min_max:[-1][2.5]\r\n"
      "01-08 21:45:42.261 I/native (1972): ;fc__print__;__requant_min_max:"
      "[-3e-2][4] and more\n");
  ASSERT_THAT(log, SizeIs(2));
  EXPECT_THAT(log.at("conv/eightbit/requant_range"),
              ElementsAre(ObservedRange{-20.887871f, 22.274715f},
                          ObservedRange{-1, 2.5}));
  EXPECT_THAT(log.at("fc"), ElementsAre(ObservedRange{-0.03f, 4}));
}

TEST(RangeLogTest, PassesOverWhatIsNoRecord) {
  for (const char* line :
       {"", "hello", ";a__print__;other:[1][2]",
        ";a__print__;__requant_min_max:", ";a__print__;__requant_min_max:[1]",
        ";a__print__;__requant_min_max:[1][2][3]",
        ";a__print__;__requant_min_max:[x][2]",
        ";a__print__;__requant_min_max:[1]][2]", ";a;__requant_min_max:[1][2]",
        ";__print__;__requant_min_max:[1][2]"}) {
    EXPECT_FALSE(ParseRangeRecord(line).has_value()) << line;
  }
}

TEST(RangeLogTest, PrintsWhatItReads) {
  const RangeLog log = {{"a", {{-0.1f, 1.0f / 3.0f}, {1e-30f, 3e38f}}},
                        {"b/c", {{0, 1}}}};
  EXPECT_EQ(ParseRangeLog(PrintRangeLog(log)), log);
  EXPECT_EQ(PrintRangeRecord({"n", {-1, 2.5}}),
            ";n__print__;__requant_min_max:[-1][2.5]");
}

TEST(FreezeRangesTest, TakesPercentilesAsTheReferenceDoes) {
  struct Row {
    int n, min_index, max_index;
  };
  for (const Row& row : {Row{1, 0, 0}, Row{10, 1, 9}, Row{20, 1, 19},
                         Row{100, 5, 95}, Row{1000, 50, 950}}) {
    std::vector<ObservedRange> ranges;
    for (int i = row.n - 1; i >= 0; --i) {
      ranges.push_back({static_cast<float>(i), static_cast<float>(i)});
    }
    const ObservedRange range = RangeOfPercentiles(ranges, {});
    EXPECT_EQ(range.min, row.min_index) << row.n;
    EXPECT_EQ(range.max, row.max_index) << row.n;
  }
}

TEST(FreezeRangesTest, PutsConstantsInPlaceOfTheRange) {
  Graph graph = Requantized();
  OPTFARM_ASSERT_OK_AND_ASSIGN(const FreezeResult result,
                               FreezeRanges(&graph, {{"range", {{-3, 4}}}}));
  EXPECT_EQ(result.frozen, 1);
  EXPECT_EQ(Show(graph, "codes"),
            "Requantize(q, min, max, range/frozen_min, range/frozen_max)");
  EXPECT_EQ(Show(graph, "range"), "none");
  EXPECT_THAT(FloatsOf(graph, "range/frozen_min"), ElementsAre(-3));
  EXPECT_THAT(FloatsOf(graph, "range/frozen_max"), ElementsAre(4));
}

TEST(FreezeRangesTest, RefusesLogsThatDoNotFit) {
  const auto freeze = [](const RangeLog& log, const FreezeOptions& options) {
    Graph graph = Requantized();
    const absl::Status status = FreezeRanges(&graph, log, options).status();
    EXPECT_EQ(Show(graph, "range"), "RequantizationRange(q, min, max)");
    return status;
  };
  EXPECT_THAT(freeze({}, {}), StatusIs(absl::StatusCode::kInvalidArgument,
                                       HasSubstr("No min/max range logs")));
  EXPECT_THAT(freeze({{"range", {{0, 1}}}, {"gone", {{0, 1}}}}, {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("aren't present in the graph"),
                             HasSubstr("gone"))));
  EXPECT_THAT(freeze({{"codes", {{0, 1}}}}, {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("RequantizationRange op: codes, but is: "
                                 "Requantize")));
  EXPECT_THAT(freeze({{"range", {{0, NAN}}}}, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("nan")));
  EXPECT_THAT(freeze({{"range", {{0, 1}}}}, {.min_percentile = 100}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("min_percentile")));
}

TEST(FreezeRangesTest, ReadsTheLogFromTheBaseFolder) {
  PipelineOptions options;
  options.base_folder = FreshFolder();
  OPTFARM_ASSERT_OK(
      WriteFileAtomically(JoinPath(options.base_folder, "log.txt"),
                          ";range__print__;__requant_min_max:[-1][2]\n"));
  Graph graph = Requantized();
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const PipelineReport report,
      Apply(&graph,
            "freeze_requantization_ranges(min_max_log_file=\"log.txt\")", "q",
            "out", options));
  EXPECT_THAT(Skipped(report.steps[0].report), IsEmpty());
  EXPECT_THAT(FloatsOf(graph, "range/frozen_max"), ElementsAre(2));
  EXPECT_THAT(
      Apply(&graph, "freeze_requantization_ranges(min_max_log_file=\"no.txt\")",
            "q", "out", options),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("no.txt")));
}

}  // namespace
}  // namespace optfarm::transforms::testing
