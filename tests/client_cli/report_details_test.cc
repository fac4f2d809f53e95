#include "client_cli/tables/report_details.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "optfarm/v1/report.pb.h"

namespace optfarm::client_cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

v1::SearchStep Step(const std::string& description, int64_t bytes, double snr) {
  v1::SearchStep step;
  step.set_description(description);
  step.set_bytes(bytes);
  step.set_milliseconds(2.5);
  step.set_agreement(-1);
  step.set_snr_db(snr);
  return step;
}

TEST(ReportDetailsTest, IsEmptyForAnEmptyReport) {
  EXPECT_EQ(ReportDetails(v1::Report()), "");
}

TEST(ReportDetailsTest, SaysWhereTheResultRunsAndWhatToTakeElsewhere) {
  v1::Report report;
  v1::RuntimeSupport& ours = *report.add_runtimes();
  ours.set_title("Optfarm's runtime");
  ours.set_file_format("pb");
  ours.set_runs(true);
  v1::RuntimeSupport& old = *report.add_runtimes();
  old.set_title("TensorFlow 1.4");
  old.set_file_format("pb");
  old.add_problems(
      "QuantizedConv2DWithBiasAndReluAndRequantize came after TensorFlow 1.4");
  old.set_recipe("int8-tf14");
  v1::RuntimeSupport& lite = *report.add_runtimes();
  lite.set_title("TensorFlow Lite");
  lite.set_file_format("tflite");
  lite.add_problems("DecodeWav is not written");
  EXPECT_EQ(ReportDetails(report),
            "\nRUNTIME            FILE     RUNS  OTHERWISE\n"
            "Optfarm's runtime  .pb      yes\n"
            "TensorFlow 1.4     .pb      no    take recipe int8-tf14\n"
            "                                  "
            "QuantizedConv2DWithBiasAndReluAndRequanti...\n"
            "TensorFlow Lite    .tflite  no    DecodeWav is not written\n");
}

TEST(ReportDetailsTest, WorstSamplesShowNamesOfClassesAndNumbersOfOthers) {
  v1::Report report;
  v1::SampleComparison& worst = *report.add_worst_samples();
  worst.set_sample("cat/7.jpg");
  worst.set_snr_db(12);
  worst.set_float_class(0);
  worst.set_optimized_class(1);
  worst.set_label(0);
  EXPECT_THAT(ReportDetails(report),
              HasSubstr("WORST SAMPLE      SNR  FLOAT  RESULT  LABEL\n"
                        "cat/7.jpg     12.0 dB      0       1      0\n"));
  worst.set_float_class_name("cat");
  worst.set_label_name("cat");
  EXPECT_THAT(ReportDetails(report),
              HasSubstr("WORST SAMPLE      SNR  FLOAT  RESULT  LABEL\n"
                        "cat/7.jpg     12.0 dB  cat    1       cat\n"));
}

TEST(ReportDetailsTest, ShowsWhatEachChainCosts) {
  v1::Report report;
  *report.add_search() = Step("everything quantized", 1000000, 12.34);
  *report.add_search() = Step("3 layers in float", 2000000, 31);
  report.mutable_search(1)->set_taken(true);
  EXPECT_THAT(ReportDetails(report),
              AllOf(HasSubstr("everything quantized"), HasSubstr("12.3 dB"),
                    HasSubstr("misses a bound"), HasSubstr("2.50 ms"),
                    HasSubstr("taken")));
}

TEST(ReportDetailsTest, ShowsTheMostSensitiveLayersFirst) {
  v1::Report report;
  for (int i = 0; i < 20; ++i) {
    v1::LayerSensitivity& layer = *report.add_sensitivity();
    layer.set_name("layer" + std::to_string(i));
    layer.set_output_snr_db(60 - i);
    layer.set_alone_snr_db(std::numeric_limits<double>::quiet_NaN());
    layer.set_float_bytes_more(3072);
  }
  EXPECT_THAT(ReportDetails(report),
              AllOf(HasSubstr("layer19"), Not(HasSubstr("layer0 ")),
                    HasSubstr("41.0 dB"), HasSubstr("and 8 more")));
}

TEST(ReportDetailsTest, ShowsIntervalsAndPackedSizes) {
  v1::Report report;
  v1::PairedAccuracy& paired = *report.mutable_paired_accuracy();
  paired.set_samples(200);
  paired.set_change(-0.5);
  paired.set_change_low(-2.43);
  paired.set_change_high(1.44);
  report.mutable_size_before()->set_gzip_bytes(1000);
  report.mutable_size_before()->set_zstd_bytes(800);
  report.mutable_size_after()->set_gzip_bytes(250);
  report.mutable_size_after()->set_zstd_bytes(200);
  EXPECT_THAT(ReportDetails(report),
              AllOf(HasSubstr("-0.50 points"), HasSubstr("-2.43 to +1.44"),
                    HasSubstr("zstd"), HasSubstr("0.250")));
}

}  // namespace
}  // namespace optfarm::client_cli
