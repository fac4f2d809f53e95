#include "client_cli/jobs/class_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client_cli/tables/report_details.h"

namespace optfarm::client_cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

v1::Report ReportWithClasses() {
  v1::Report report;
  report.mutable_float_accuracy();
  v1::SampleComparison& worst = *report.add_worst_samples();
  worst.set_sample("cat/7.jpg");
  worst.set_snr_db(12);
  worst.set_float_class(0);
  worst.set_optimized_class(1);
  worst.set_label(0);
  return report;
}

v1::Dataset DataOf(const std::vector<std::string>& paths, bool has_labels) {
  v1::Dataset data;
  v1::DataSource& samples = *data.add_sources();
  samples.set_role(v1::DataSource::SAMPLES);
  for (const std::string& path : paths) samples.add_files()->set_path(path);
  if (has_labels) {
    v1::DataSource& labels = *data.add_sources();
    labels.set_role(v1::DataSource::LABELS);
    labels.add_files()->set_path("labels.txt");
  }
  return data;
}

TEST(ClassNamesTest, AreTheLinesThatFoldersAreNamedAfter) {
  v1::Dataset data = DataOf({"cat/7.jpg", "dog/1.jpg"}, true);
  EXPECT_THAT(ClassNames(ReportWithClasses(), data, "0:cat\r\n1:dog\n\n"),
              ElementsAre("cat", "dog"));
  data.set_labels_offset(1);
  EXPECT_THAT(ClassNames(ReportWithClasses(), data, "cat\ndog\n"),
              ElementsAre("", "cat", "dog"));
}

TEST(ClassNamesTest, AreTheSortedFoldersWithoutAFile) {
  EXPECT_THAT(ClassNames(ReportWithClasses(),
                         DataOf({"dog/1.jpg", "cat/7.jpg"}, false), ""),
              ElementsAre("cat", "dog"));
}

TEST(ClassNamesTest, AreNotKnownWhereLabelsAreNumbers) {
  const v1::Report report = ReportWithClasses();
  EXPECT_THAT(ClassNames(report, DataOf({"0/1.jpg", "1/7.jpg"}, false), ""),
              IsEmpty());
  EXPECT_THAT(ClassNames(report, DataOf({"1.jpg"}, true), "3\n4\n"), IsEmpty());
  EXPECT_THAT(ClassNames(v1::Report(), DataOf({"a/1.jpg"}, false), ""),
              IsEmpty());
}

TEST(ClassNamesTest, StandInTheTableOfSamples) {
  EXPECT_THAT(ReportDetails(ReportWithClasses(), {"cat", "dog"}),
              HasSubstr("WORST SAMPLE      SNR  FLOAT  RESULT  LABEL\n"
                        "cat/7.jpg     12.0 dB  cat    dog     cat\n"));
  // A class without a name keeps its number.
  EXPECT_THAT(ReportDetails(ReportWithClasses(), {"cat"}),
              HasSubstr("cat    1       cat\n"));
}

}  // namespace
}  // namespace optfarm::client_cli
