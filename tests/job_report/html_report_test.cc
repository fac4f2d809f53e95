#include "job_report/html_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "job_report/html_parts.h"
#include "tests/support/status_matchers.h"

namespace optfarm::job_report {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class HtmlReportTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (ReportHtmlParts().head.empty()) {
      EXPECT_THAT(Report().status(), StatusIs(absl::StatusCode::kUnimplemented,
                                              HasSubstr("page")));
      GTEST_SKIP() << "built without the page: OPTFARM_WEB";
    }
  }

  v1::DataFile& AddFile(v1::DataSource::Role role, const std::string& path,
                        const std::string& bytes) {
    const std::string name = absl::StrCat("digest-of-", path);
    files_[name] = bytes;
    v1::DataSource* source = nullptr;
    auto& data = *job_.mutable_spec()->mutable_calibration();
    for (v1::DataSource& one : *data.mutable_sources()) {
      if (one.role() == role) source = &one;
    }
    if (source == nullptr) source = data.add_sources();
    source->set_role(role);
    v1::DataFile& file = *source->add_files();
    file.set_path(path);
    file.mutable_digest()->set_sha256(name);
    file.mutable_digest()->set_size_bytes(static_cast<int64_t>(bytes.size()));
    return file;
  }

  absl::StatusOr<std::string> Report() {
    return HtmlReport(
        job_, [this](const v1::Digest& digest) -> absl::StatusOr<std::string> {
          read_.push_back(digest.sha256());
          const auto found = files_.find(digest.sha256());
          if (found == files_.end()) return absl::NotFoundError("evicted");
          return found->second;
        });
  }

  v1::Job job_;
  std::map<std::string, std::string> files_;
  std::vector<std::string> read_;
};

TEST_F(HtmlReportTest, HasTheJobBetweenThePagesParts) {
  job_.set_job_id("j-17");
  const std::string report = Report().value_or("");
  EXPECT_THAT(report, AllOf(StartsWith(std::string(ReportHtmlParts().head)),
                            HasSubstr("\"job_id\":\"j-17\""),
                            EndsWith(std::string(ReportHtmlParts().tail))));
  EXPECT_THAT(report, Not(HasSubstr("src=\"http")));
  EXPECT_THAT(read_, IsEmpty());
}

TEST_F(HtmlReportTest, NamesCannotEndTheirElement) {
  job_.set_job_id("</script><b>");
  EXPECT_THAT(Report().value_or(""),
              AllOf(Not(HasSubstr("</script><b>")), HasSubstr("\\u003c")));
}

TEST_F(HtmlReportTest, HasLogsAndThePicturesThatChangedMost) {
  AddFile(v1::DataSource::SAMPLES, "a/1.png", "the picture");
  AddFile(v1::DataSource::SAMPLES, "a/2.png", "another");
  AddFile(v1::DataSource::SAMPLES, "b/3.png", "a third");
  AddFile(v1::DataSource::LABELS, "labels.txt", "cat\ndog\n");
  v1::SampleComparison& worst = *job_.mutable_report()->add_worst_samples();
  worst.set_sample("a/1.png");
  worst.set_label_name("a cat");
  v1::Artifact& log = *job_.add_tasks()->add_artifacts();
  log.set_name("task.log");
  log.mutable_digest()->set_sha256("gone");
  const std::string report = Report().value_or("");
  EXPECT_THAT(read_, ElementsAre("digest-of-a/1.png", "gone"));
  EXPECT_THAT(report, AllOf(HasSubstr(absl::Base64Escape("the picture")),
                            HasSubstr("\"label_name\":\"a cat\""),
                            Not(HasSubstr("\"gone\":\""))));
  EXPECT_THAT(report,
              AllOf(Not(HasSubstr("a/2.png")), Not(HasSubstr("b/3.png"))));
}

TEST_F(HtmlReportTest, FilesThatDoNotFitAreLeftOut) {
  for (int i = 0; i < 5; ++i) {
    const std::string path = absl::StrCat(i, ".png");
    AddFile(v1::DataSource::SAMPLES, path, std::string(300'000, 'p'));
    job_.mutable_report()->add_worst_samples()->set_sample(path);
  }
  const std::string report = Report().value_or("");
  EXPECT_THAT(read_, ElementsAre("digest-of-0.png", "digest-of-1.png",
                                 "digest-of-2.png"));
  EXPECT_LE(report.size(), kMostHtmlBytes);
  EXPECT_GT(report.size(), 1'200'000u);
}

TEST_F(HtmlReportTest, AFileThatLiesAboutItsSizeDoesNotGetIn) {
  AddFile(v1::DataSource::SAMPLES, "a/1.png", std::string(2'000'000, 'p'))
      .mutable_digest()
      ->set_size_bytes(3);
  job_.mutable_report()->add_worst_samples()->set_sample("a/1.png");
  const std::string report = Report().value_or("");
  EXPECT_LT(report.size(), 1'000'000u);
  EXPECT_FALSE(report.empty());
}

TEST_F(HtmlReportTest, LayersAreShortenedUntilTheJobFits) {
  for (int i = 0; i < 2000; ++i) {
    job_.mutable_report()->add_layers_compared()->set_name(
        absl::StrCat(i, std::string(2000, 'n')));
  }
  const absl::StatusOr<std::string> report = Report();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_LE(report->size(), kMostHtmlBytes);
  EXPECT_THAT(*report, AllOf(HasSubstr("499nnn"), Not(HasSubstr("500nnn"))));
  job_.mutable_spec()->set_name(std::string(3'000'000, 'n'));
  EXPECT_THAT(Report().status(), StatusIs(absl::StatusCode::kResourceExhausted,
                                          HasSubstr("bytes")));
}

}  // namespace
}  // namespace optfarm::job_report
