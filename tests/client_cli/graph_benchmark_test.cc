// optctl graph benchmark and its link benchmark_model, as programs.

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/client_cli/tool_test.h"
#include "tests/engine/formats/onnx/onnx_model.h"

namespace optfarm::client_cli {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// softmax(x * w) of 2 numbers.
constexpr char kGraph[] = R"(
node { name: "input" op: "Placeholder"
  attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: -1 } dim { size: 2 } } } } }
node { name: "w" op: "Const"
  attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "value" value { tensor { dtype: DT_FLOAT
    tensor_shape { dim { size: 2 } dim { size: 2 } } float_val: 0.5 } } } }
node { name: "product" op: "MatMul" input: "input" input: "w"
  attr { key: "T" value { type: DT_FLOAT } } }
node { name: "output" op: "Softmax" input: "product"
  attr { key: "T" value { type: DT_FLOAT } } }
versions { producer: 24 }
)";

class GraphBenchmarkTest : public ToolTest {
 protected:
  // With few runs.
  int Benchmark(std::vector<std::string> words) {
    words.insert(words.begin(),
                 {"graph", "benchmark", "--graph=" + Write("m.pbtxt", kGraph),
                  "--max_num_runs=3", "--num_threads=1"});
    return Run("optctl", words);
  }
};

TEST_F(GraphBenchmarkTest, PrintsLinesTablesAndFlops) {
  EXPECT_EQ(
      Benchmark({"--show_flops", "--show_sizes", "--device_gflops=0.001"}), 0)
      << output_;
  EXPECT_THAT(output_,
              AllOf(HasSubstr("\nNum runs: [3]\n"), HasSubstr(" Run Order ="),
                    HasSubstr("Number of nodes executed: "),
                    HasSubstr("\nTimings (microseconds): count=3 "),
                    HasSubstr("\noutput\t1\tfloat\t2\t1\t2\n"),
                    HasSubstr("\nFLOPs estimate: 8\nFLOPs/second: "),
                    HasSubstr("needs at least 8.00 us for one run"),
                    HasSubstr("MEDIAN")));
}

TEST_F(GraphBenchmarkTest, ExplainsWhichFusionsTookWhichNodes) {
  EXPECT_EQ(Benchmark({"--explain"}), 0) << output_;
  EXPECT_THAT(output_, ContainsRegex("\nFUSION +BECAME +NODES\n"));
#ifdef OPTFARM_FAST_KERNELS
  EXPECT_THAT(output_, AllOf(ContainsRegex("\nmatmul +MatMul +product\n"),
                             ContainsRegex("\nsoftmax +Softmax +output\n"),
                             ContainsRegex("\nsoftmax: [^\n]*softmax")));
#endif
  EXPECT_EQ(Benchmark({}), 0);
  EXPECT_THAT(output_, Not(HasSubstr("FUSION")));
}

TEST_F(GraphBenchmarkTest, ExplainsFusionsToPrograms) {
  EXPECT_EQ(Benchmark({"--explain", "-o", "json"}), 0) << output_;
  EXPECT_THAT(output_, HasSubstr("\"fusion\": \"softmax\""));
  EXPECT_EQ(Benchmark({"-o", "json"}), 0) << output_;
  EXPECT_THAT(output_, Not(HasSubstr("\"fusions\"")));
}

TEST_F(GraphBenchmarkTest, SectionsCanBeLeftOut) {
  EXPECT_EQ(Benchmark({"--show_run_order=false", "--show_time=false",
                       "--show_memory=false", "--show_type=false"}),
            0);
  EXPECT_THAT(output_, AllOf(Not(HasSubstr("[node type]")),
                             Not(HasSubstr("[Node type]")),
                             HasSubstr("nodes observed")));
  EXPECT_EQ(Benchmark({"--profile_runs=0"}), 0);
  EXPECT_THAT(output_, Not(HasSubstr("nodes observed")));
}

TEST_F(GraphBenchmarkTest, JsonHasMeasurementProfileAndFlops) {
  EXPECT_EQ(Benchmark({"-o", "json", "--device_gflops=1"}), 0);
  // Standard error is in the same file: the JSON begins with its bracket.
  const size_t start = output_.find("[\n {");
  ASSERT_NE(start, std::string::npos) << output_;
  const auto json =
      nlohmann::json::parse(output_.substr(start), nullptr, false);
  ASSERT_TRUE(json.is_array()) << output_;
  EXPECT_EQ(json[0]["runs"], 3);
  EXPECT_EQ(json[0]["flops"]["total"], 8);
  EXPECT_EQ(json[0]["flops"]["ops"][0]["op"], "MatMul");
  EXPECT_EQ(json[0]["profile"]["runs"], 3);
  EXPECT_EQ(json[0]["profile"]["nodes"][0]["outputs"][0]["dtype"], "float");
  EXPECT_NEAR(json[0]["device_estimate"]["least_us"], 0.008, 1e-9);
}

TEST_F(GraphBenchmarkTest, ValuesComeFromRangesAndFiles) {
  EXPECT_EQ(Benchmark({"--input_layer=input", "--input_layer_shape=1,2",
                       "--input_layer_type=float", "--output_layer=output",
                       "--input_layer_value_range=input,0,255",
                       "--report_peak_memory_footprint", "--cpu_affinity=0",
                       "--memory_footprint_check_interval_ms=5"}),
            0)
      << output_;
  EXPECT_THAT(output_, HasSubstr("Peak memory seen, every 5 ms: "));
  const std::string raw = Write("x.raw", std::string(8, '\0'));
  EXPECT_EQ(Benchmark({"--input_layer_value_files=input:" + raw}), 0)
      << output_;
  EXPECT_THAT(output_, HasSubstr("fed values from x.raw"));
}

// In the graph 'x;y' is 'x_y'.
TEST_F(GraphBenchmarkTest, InputsHaveTheNamesOfTheModelsFile) {
  const std::string model = Write(
      "m.onnx", formats::OnnxBytes(absl::StrCat(
                    "input { ", formats::FloatValue("x;y", {2}), " } output { ",
                    formats::FloatValue("y", {2}),
                    " } node { op_type: 'Neg' input: 'x;y' output: 'y' }")));
  const std::string raw = Write("x.raw", std::string(8, '\0'));
  const std::vector<std::string> command = {"graph", "benchmark",
                                            "--graph=" + model, "--num_runs=1",
                                            "--max_secs=0.1"};
  for (const char* name : {"x;y", "x_y"}) {
    std::vector<std::string> with_file = command, with_range = command;
    with_file.push_back(absl::StrCat("--input=", name, "=", raw));
    EXPECT_EQ(Run("optctl", with_file), 0) << output_;
    EXPECT_THAT(output_, HasSubstr("values from x.raw"));
    with_range.push_back(
        absl::StrCat("--input_layer_value_range=", name, ",0,1"));
    EXPECT_EQ(Run("optctl", with_range), 0) << output_;
  }
}

TEST_F(GraphBenchmarkTest, RefusesRangesAndFilesThatDoNotFit) {
  const std::string raw = Write("x.raw", std::string(7, '\0'));
  EXPECT_NE(Benchmark({"--input_layer_value_files=input:" + raw}), 0);
  EXPECT_THAT(output_, HasSubstr("has 7 bytes, input 'input' takes 8"));
  EXPECT_NE(Benchmark({"--input_layer_value_files=input"}), 0);
  EXPECT_THAT(output_, HasSubstr("is not of the form NAME:FILE"));
  EXPECT_NE(Benchmark({"--input_layer_value_range=input,1"}), 0);
  EXPECT_THAT(output_, HasSubstr("is not of the form NAME,LOW,HIGH"));
  EXPECT_NE(Benchmark({"--input_layer_value_range=other,0,1"}), 0);
  EXPECT_THAT(output_, HasSubstr("which the model does not have"));
  EXPECT_NE(Benchmark({"--input_layer_value_range=input,2,1"}), 0);
  EXPECT_THAT(output_, HasSubstr("goes from 2 down to 1"));
  EXPECT_NE(Benchmark({"--cpu_affinity=99999"}), 0);
  EXPECT_THAT(output_, HasSubstr("'99999' is no CPU's number"));
}

TEST_F(GraphBenchmarkTest, WritesTraceAndReportFiles) {
  EXPECT_EQ(Benchmark({"--trace_file=" + Path("t.json"), "--benchmark_name=a/b",
                       "--output_prefix=" + Path("r_")}),
            0);
  const auto trace = nlohmann::json::parse(
      ReadFile(Path("t.json")).value_or(""), nullptr, false);
  ASSERT_TRUE(trace.is_object());
  EXPECT_GE(trace["traceEvents"].size(), 3u + 3 * 3);
  EXPECT_TRUE(Exists(Path("r_a__b")));
  EXPECT_TRUE(Exists(Path("r_a__b_MatMul")));
  EXPECT_NE(
      Benchmark({"--benchmark_name=a/b", "--output_prefix=" + Path("r_")}), 0);
  EXPECT_THAT(output_, HasSubstr("file exists"));
}

TEST_F(GraphBenchmarkTest, TakesInputsAndOutputsAsErrorsAboutTheGraphTell) {
  EXPECT_EQ(
      Benchmark({"--inputs=input:5x2", "--outputs=product", "--show_sizes"}), 0)
      << output_;
  EXPECT_THAT(output_, HasSubstr("\nproduct\t1\tfloat\t2\t5\t2\n"));
  EXPECT_EQ(Benchmark({"--inputs=input:5x2", "--input_layer=input"}), 2);
  EXPECT_THAT(output_, HasSubstr("not both"));
}

TEST_F(GraphBenchmarkTest, UnknownSizesAndWrongListsAreRefused) {
  EXPECT_EQ(Benchmark({"--input_layer=input", "--input_layer_shape=-1,2"}), 2);
  EXPECT_THAT(output_, HasSubstr("give the size to benchmark with"));
  EXPECT_EQ(Benchmark({"--input_layer=a,b", "--input_layer_type=float"}), 2);
  EXPECT_THAT(output_, HasSubstr("2 names"));
  EXPECT_EQ(Run("optctl", {"graph", "benchmark", "--graph=" + Path("m.pbtxt"),
                           "--max_num_runs=0", "--max_time=-1"}),
            2);
  EXPECT_THAT(output_, HasSubstr("never end"));
}

TEST_F(GraphBenchmarkTest, OriginalNameHasOriginalDefaults) {
  const std::string graph = "--graph=" + Write("m.pbtxt", kGraph);
  EXPECT_EQ(Run("benchmark_model", {graph}), 255);
  EXPECT_THAT(output_, HasSubstr("1,224,224,3"));
  EXPECT_EQ(Run("benchmark_model",
                {graph, "--input_layer", "input:0", "--input_layer_shape",
                 "1,2", "--max_num_runs", "2", "--max_time", "-1"}),
            0)
      << output_;
  EXPECT_THAT(output_,
              AllOf(HasSubstr("Output layers: [output:0]"),
                    HasSubstr("max 2 iterations, max -1 seconds with detailed"),
                    HasSubstr("Average inference timings in us: Warmup: "),
                    HasSubstr("nodes observed"), Not(HasSubstr("MEDIAN"))));
  EXPECT_EQ(Run("benchmark_model", {"--graph=" + Path("none.pb")}), 255);
  EXPECT_EQ(Run("benchmark_model", {"--unknown"}), 255);
}

}  // namespace
}  // namespace optfarm::client_cli
