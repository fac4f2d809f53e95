#include "engine/benchmark/stat_summarizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/benchmark/trace_file.h"

namespace optfarm::benchmark {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

runtime::NodeTiming Node(const std::string& name, const std::string& op,
                         int start_us, int micros, int64_t bytes) {
  runtime::NodeTiming node;
  node.name = name;
  node.op = op;
  node.start = absl::Microseconds(start_us);
  node.duration = absl::Microseconds(micros);
  node.output_bytes = bytes;
  node.outputs = {{tensorflow::DT_FLOAT, runtime::Shape{1, bytes / 4}}};
  return node;
}

// Two runs of three nodes; the second run is slower.
StatSummarizer TwoRuns(const StatSummarizerOptions& options = {}) {
  StatSummarizer summarizer(options);
  summarizer.AddRun({{Node("conv/a", "Conv2D", 0, 3000, 8000),
                      Node("relu", "Relu", 3001, 1000, 8000),
                      Node("conv/b", "Conv2D", 4002, 5000, 400)}});
  summarizer.AddRun({{Node("conv/a", "Conv2D", 0, 4000, 8000),
                      Node("relu", "Relu", 4001, 2000, 8000),
                      Node("conv/b", "Conv2D", 6002, 5000, 400)}});
  return summarizer;
}

constexpr char kNodeHeading[] =
    "\t             [node type]\t  [start]\t  [first]\t [avg ms]\t     [%]\t  "
    "[cdf%]\t  [mem KB]\t[times called]\t[Name]\n";
constexpr char kConvA[] =
    "\t                  Conv2D\t    0.000\t    3.000\t    3.500\t ";
constexpr char kTitleLine[] = "==============================";

StatSummarizerOptions Nothing() {
  return {false, 0, false, 10, false, 10, false, false};
}

TEST(StatSummarizerTest, RunOrderListsEveryNode) {
  StatSummarizerOptions options = Nothing();
  options.show_run_order = true;
  EXPECT_EQ(TwoRuns(options).Report(),
            std::string(kTitleLine) + " Run Order " + kTitleLine + "\n" +
                kNodeHeading + kConvA +
                "35.000%\t 35.000%\t     8.000\t        1\tconv/a\n"
                "\t                    Relu\t    3.501\t    1.000\t    1.500\t "
                "15.000%\t 50.000%\t     8.000\t        1\trelu\n"
                "\t                  Conv2D\t    5.002\t    5.000\t    5.000\t "
                "50.000%\t100.000%\t     0.400\t        1\tconv/b\n\n");
}

TEST(StatSummarizerTest, ByTimeAndByMemoryAreSortedAndLimited) {
  StatSummarizerOptions options = Nothing();
  options.show_time = options.show_memory = true;
  options.time_limit = 1;
  options.memory_limit = 2;
  const std::string report = TwoRuns(options).Report();
  const size_t memory = report.find(" Top by Memory Use ");
  ASSERT_NE(memory, std::string::npos);
  const std::string by_time = report.substr(0, memory);
  EXPECT_THAT(by_time, HasSubstr(" Top by Computation Time "));
  EXPECT_THAT(by_time, HasSubstr("conv/b"));
  EXPECT_THAT(by_time, Not(HasSubstr("conv/a")));
  const std::string by_memory = report.substr(memory);
  EXPECT_LT(by_memory.find("conv/a"), by_memory.find("relu"));
  EXPECT_THAT(by_memory, Not(HasSubstr("conv/b")));
}

TEST(StatSummarizerTest, TypesAreSummedSlowestFirst) {
  StatSummarizerOptions options = Nothing();
  options.show_type = true;
  EXPECT_EQ(TwoRuns(options).Report(),
            std::string("Number of nodes executed: 3\n") + kTitleLine +
                " Summary by node type " + kTitleLine +
                "\n\t             [Node type]\t  [count]\t  [avg ms]\t    "
                "[avg %]\t    [cdf %]\t  [mem KB]\t[times called]\n"
                "\t                  Conv2D\t        2\t     8.500\t    "
                "85.000%\t    85.000%\t     8.400\t        2\n"
                "\t                    Relu\t        1\t     1.500\t    "
                "15.000%\t   100.000%\t     8.000\t        1\n\n");
}

TEST(StatSummarizerTest, ShortSummaryIsThreeLines) {
  StatSummarizerOptions options = Nothing();
  options.show_summary = true;
  EXPECT_EQ(TwoRuns(options).Report(),
            "Timings (microseconds): count=2 first=9000 curr=11000 min=9000 "
            "max=11000 avg=10000 std=1000\n"
            "Memory (bytes): count=2 curr=16400(all same)\n"
            "3 nodes observed\n\n");
}

TEST(StatSummarizerTest, CallsInALoopAreCountedForEachRun) {
  StatSummarizer summarizer;
  summarizer.AddRun(
      {{Node("step", "Add", 0, 10, 4), Node("step", "Add", 20, 30, 4)}});
  ASSERT_EQ(summarizer.nodes().size(), 1u);
  EXPECT_EQ(summarizer.nodes()[0].times_called, 2);
  EXPECT_EQ(summarizer.run_micros().newest(), 40);
  EXPECT_EQ(summarizer.Types()[0].times_called, 2);
}

TEST(StatSummarizerTest, NothingRunPrintsNoPercentOfNothing) {
  EXPECT_THAT(StatSummarizer().Report(), HasSubstr("(microseconds): count=0"));
  StatSummarizer fast;
  fast.AddRun({{Node("x", "Add", 0, 0, 4)}});
  EXPECT_THAT(fast.Report(), Not(HasSubstr("nan")));
}

TEST(StatSummarizerTest, OutputSizesAreInRunOrder) {
  EXPECT_EQ(TwoRuns().OutputSizes(),
            "============ Node output tensor sizes in run order ========\n"
            "conv/a\t1\tfloat\t2\t1\t2000\n"
            "relu\t1\tfloat\t2\t1\t2000\n"
            "conv/b\t1\tfloat\t2\t1\t100\n");
}

TEST(StatTest, PrintsAsTensorFlowsTools) {
  Stat stat;
  EXPECT_EQ(stat.ToString(), "count=0");
  stat.Add(5);
  EXPECT_EQ(stat.ToString(), "count=1 curr=5");
  stat.Add(5);
  EXPECT_EQ(stat.ToString(), "count=2 curr=5(all same)");
  stat.Add(1651685);
  EXPECT_EQ(stat.ToString(),
            "count=3 first=5 curr=1651685 min=5 max=1651685 avg=550565 "
            "std=778609");
}

TEST(TraceFileTest, RunsFollowOneAnother) {
  const runtime::RunTrace trace{{Node("a \"b\"", "Relu", 2, 3, 8)}};
  const std::string json = TraceFileJson({trace, trace}, "m.pb");
  EXPECT_THAT(json, HasSubstr("{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":"
                              "1,\"tid\":0,\"args\":{\"name\":\"m.pb\"}}"));
  EXPECT_THAT(json, HasSubstr("{\"name\":\"a \\\"b\\\"\",\"cat\":\"Relu\","
                              "\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":2,"
                              "\"dur\":3,\"args\":{\"op\":\"Relu\",\"bytes\":8,"
                              "\"outputs\":\"float[1,2]\"}}"));
  // The second run begins after the first one's end at 5.
  EXPECT_THAT(json, HasSubstr("\"name\":\"run 2\",\"cat\":\"run\",\"ph\":\"X\","
                              "\"pid\":1,\"tid\":0,\"ts\":15,\"dur\":5"));
}

}  // namespace
}  // namespace optfarm::benchmark
