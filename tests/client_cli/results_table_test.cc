// The table a job ends with, as golden text.

#include "client_cli/tables/results_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_split.h"
#include "engine/verdict/job_verdicts.h"
#include "optfarm/v1/jobs.pb.h"

namespace optfarm::client_cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

v1::Measurement MakeMeasurement(const std::string& variant, int threads,
                                double median_us, int64_t bytes) {
  v1::Measurement m;
  m.set_variant(variant);
  m.set_threads(threads);
  m.set_device("pi4");
  m.mutable_before()->set_cpu_model("Intel(R) Core(TM) i5 CPU @ 2.40GHz");
  m.set_file_size_bytes(bytes);
  m.set_first_us(median_us * 2);
  m.set_median_us(median_us);
  m.set_mad_us(median_us / 100);
  m.set_peak_memory_bytes(14'000'000);
  m.set_runs(50);
  return m;
}

OutputFormat Wide() {
  OutputFormat format;
  format.wide = true;
  return format;
}

class ResultsTableTest : public ::testing::Test {
 protected:
  ResultsTableTest() {
    report_.set_recipe_name("int8");
    report_.mutable_size_before()->set_file_bytes(1'900'000);
    report_.mutable_size_after()->set_file_bytes(500'000);
    report_.mutable_float_accuracy()->set_top1(47.7);
    report_.mutable_float_accuracy()->set_top5(71.0);
    report_.mutable_optimized_accuracy()->set_top1(47.4);
    report_.mutable_optimized_accuracy()->set_top5(70.7);
    report_.add_outputs_compared()->set_top1_agreement(0.93);
    measurements_ = {MakeMeasurement("int8", 1, 2000, 500'000),
                     MakeMeasurement("float", 4, 1200, 1'900'000),
                     MakeMeasurement("float", 1, 4000, 1'900'000),
                     MakeMeasurement("int8", 4, 1900, 500'000)};
  }

  // As the server sends it.
  v1::Job Results() {
    v1::Job job;
    job.set_state(v1::SUCCEEDED);
    *job.mutable_report() = report_;
    job.mutable_measurements()->Add(measurements_.begin(), measurements_.end());
    verdict::AddVerdicts(job);
    return job;
  }

  v1::Report report_;
  std::vector<v1::Measurement> measurements_;
};

TEST_F(ResultsTableTest, PrintsOneRowForEachVariantDeviceAndThreadCount) {
  EXPECT_EQ(
      MakeResultsTable(Results(), Wide()).ToText(),
      "VARIANT  DEVICE  PROCESSOR      THREADS     SIZE    FIRST   MEDIAN   "
      "SPREAD   MEMORY  SPEED-UP  TOP-1  TOP-5  VERDICT\n"
      "float    pi4     Intel Core i5        1  1.90 MB  8.00 ms  4.00 ms  "
      "40.0 us  14.0 MB     1.00x  47.7%  71.0%  baseline\n"
      "int8     pi4     Intel Core i5        1   500 kB  4.00 ms  2.00 ms  "
      "20.0 us  14.0 MB     2.00x  47.4%  70.7%  yes: 0.26x size, 2.00x "
      "faster, "
      "-0.3 points\n"
      "float    pi4     Intel Core i5        4  1.90 MB  2.40 ms  1.20 ms  "
      "12.0 us  14.0 MB     1.00x  47.7%  71.0%  baseline\n"
      "int8     pi4     Intel Core i5        4   500 kB  3.80 ms  1.90 ms  "
      "19.0 us  14.0 MB     0.63x  47.4%  70.7%  no: 1.58x slower than float "
      "here\n");
}

TEST_F(ResultsTableTest, ShowsAgreementWhereThereWereNoLabels) {
  report_.clear_float_accuracy();
  report_.clear_optimized_accuracy();
  const std::string text = MakeResultsTable(Results(), Wide()).ToText();
  EXPECT_THAT(text, HasSubstr("AGREEMENT"));
  EXPECT_THAT(text, HasSubstr("93.0%"));
  EXPECT_THAT(text, Not(HasSubstr("TOP-1")));
}

TEST_F(ResultsTableTest, ShowsSizeAndAccuracyWhenNothingWasMeasured) {
  measurements_.clear();
  EXPECT_EQ(MakeResultsTable(Results(), Wide()).ToText(),
            "VARIANT  DEVICE  PROCESSOR  THREADS     SIZE  FIRST  MEDIAN  "
            "SPREAD  MEMORY  SPEED-UP  TOP-1  TOP-5  VERDICT\n"
            "float    -       -                -  1.90 MB      -       -       "
            "-       -         -  47.7%  71.0%  baseline\n"
            "int8     -       -                -   500 kB      -       -       "
            "-       -         -  47.4%  70.7%  unclear: speed not measured; "
            "0.26x size, -0.3 points\n");
}

size_t LongestLine(const std::string& text) {
  size_t longest = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    longest = std::max(longest, line.size());
  }
  return longest;
}

TEST_F(ResultsTableTest, FitsIntoEightyColumnsUnlessItMayBeWide) {
  EXPECT_EQ(MakeResultsTable(Results(), OutputFormat::kTable).ToText(),
            "VARIANT  DEVICE  THREADS     SIZE   MEDIAN  SPEED  TOP-1  "
            "VERDICT\n"
            "float    pi4           1  1.90 MB  4.00 ms  1.00x  47.7%  "
            "baseline\n"
            "int8     pi4           1   500 kB  2.00 ms  2.00x  47.4%  yes\n"
            "float    pi4           4  1.90 MB  1.20 ms  1.00x  47.7%  "
            "baseline\n"
            "int8     pi4           4   500 kB  1.90 ms  0.63x  47.4%  no\n");
  for (v1::Measurement& m : measurements_) {
    m.set_device("the-lab's-oldest-phone-with-a-long-name");
    m.set_threads(m.threads() * 100);
    m.set_median_us(m.median_us() * 100'000);
    m.set_file_size_bytes(m.file_size_bytes() * 1000);
    if (m.variant() == "int8") m.set_variant("weights8-per-channel");
  }
  report_.set_recipe_name("weights8-per-channel");
  report_.clear_float_accuracy();
  report_.clear_optimized_accuracy();
  const std::string text =
      MakeResultsTable(Results(), OutputFormat::kTable).ToText();
  EXPECT_LE(LongestLine(text), 80u) << text;
  EXPECT_THAT(text, AllOf(HasSubstr("the-lab's-.."), HasSubstr("AGREE")));
}

TEST_F(ResultsTableTest, TheMainVerdictIsTheWorst) {
  v1::Job job = Results();
  ASSERT_NE(MainVerdict(job), nullptr);
  EXPECT_EQ(VerdictLine(*MainVerdict(job)),
            "int8 on pi4, 4 threads: no: 1.58x slower than float here");
  job.mutable_verdicts(3)->set_answer(v1::ShippingVerdict::UNCLEAR);
  EXPECT_EQ(MainVerdict(job)->threads(), 4);
  job.mutable_verdicts(3)->set_answer(v1::ShippingVerdict::YES);
  EXPECT_EQ(MainVerdict(job)->threads(), 1);
  job.clear_verdicts();
  EXPECT_EQ(MainVerdict(job), nullptr);
}

TEST_F(ResultsTableTest, RepeatsTheServersVerdicts) {
  v1::Job job = Results();
  job.mutable_verdicts(1)->set_answer(v1::ShippingVerdict::UNCLEAR);
  job.mutable_verdicts(1)->set_text("unclear: says the server");
  job.mutable_verdicts(1)->set_speedup(7);
  EXPECT_THAT(
      MakeResultsTable(job, Wide()).ToText(),
      AllOf(HasSubstr("unclear: says the server\n"), HasSubstr("7.00x")));
  EXPECT_THAT(MakeResultsTable(job, OutputFormat::kCsv).ToCsv(),
              HasSubstr(",unclear,unclear: says the server\n"));
  job.clear_verdicts();
  EXPECT_TRUE(MakeResultsTable(job, OutputFormat::kCsv).rows().empty());
}

TEST_F(ResultsTableTest, CsvHasStableFieldNamesWithUnits) {
  EXPECT_THAT(
      MakeResultsTable(Results(), OutputFormat::kCsv).ToCsv(),
      HasSubstr("variant,device,processor,threads,file_size_bytes,first_us,"
                "median_us,mad_us,peak_memory_bytes,speedup,top1_percent,"
                "top5_percent,top1_agreement,runs,noisy,verdict,verdict_text\n"
                "float,pi4,Intel(R) Core(TM) i5 CPU @ 2.40GHz,1,1900000,8000,"
                "4000,40,14000000,1,47.7,71,,50,false,baseline,baseline\n"));
}

}  // namespace
}  // namespace optfarm::client_cli
