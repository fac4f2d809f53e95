#include "job_report/markdown_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace optfarm::job_report {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

v1::Job JobWithVerdicts() {
  v1::Job job;
  job.set_job_id("j-1");
  job.set_state(v1::SUCCEEDED);
  job.mutable_spec()->mutable_model()->set_name("digits.pb");
  v1::Report& report = *job.mutable_report();
  report.set_recipe_name("int8");
  report.mutable_size_after()->set_file_bytes(1'191'957);
  report.mutable_float_accuracy()->set_samples(200);
  report.mutable_float_accuracy()->set_top1(97.5);
  v1::Measurement& measured = *job.add_measurements();
  measured.set_variant("float");
  measured.set_device("pi4");
  measured.set_threads(4);
  measured.set_median_us(12345);
  measured.set_file_size_bytes(812);
  measured.set_noisy(true);
  v1::ShippingVerdict& baseline = *job.add_verdicts();
  baseline.set_variant("float");
  baseline.set_device("pi4");
  baseline.set_threads(4);
  baseline.set_answer(v1::ShippingVerdict::BASELINE);
  baseline.set_text("baseline");
  v1::ShippingVerdict& verdict = *job.add_verdicts();
  verdict.set_variant("int8");
  verdict.set_answer(v1::ShippingVerdict::YES);
  verdict.set_text("yes: 2x faster");
  return job;
}

TEST(MarkdownReportTest, HasVerdictTableGatesAndWarnings) {
  v1::Job job = JobWithVerdicts();
  v1::GateResult& held = *job.add_gates();
  held.set_name("max_top1_drop");
  held.set_passed(true);
  held.set_message("0.5 of 1");
  for (int i = 0; i < 12; ++i) {
    job.mutable_report()->add_warnings(absl::StrCat("warning ", i));
  }
  EXPECT_EQ(MarkdownReport(job, ""),
            "### digits.pb \\(int8\\)\n\n"
            "✅ int8: yes: 2x faster\n\n"
            "| variant | device | threads | size | median | top-1 | verdict |\n"
            "|---|---|--:|--:|--:|--:|---|\n"
            "| float | pi4 | 4 | 812 B | 12.3 ms \\(noisy\\) | 97.50 % | "
            "baseline |\n"
            "| int8 | – | – | 1.19 MB | – | – | ✅ yes: 2x faster |\n\n"
            "<details><summary>1 gate held</summary>\n\n"
            "- max\\_top1\\_drop: 0.5 of 1\n\n</details>\n\n"
            "<details><summary>12 warnings</summary>\n\n"
            "- warning 0\n- warning 1\n- warning 2\n- warning 3\n- warning 4\n"
            "- warning 5\n- warning 6\n- warning 7\n- warning 8\n- warning 9\n"
            "- and 2 more\n\n</details>\n\n"
            "Job `j-1`\n");
}

TEST(MarkdownReportTest, AFailedJobSaysWhyAndListsMissedGates) {
  v1::Job job = JobWithVerdicts();
  job.set_state(v1::FAILED);
  job.mutable_failure()->set_message("a gate was missed");
  v1::GateResult& gate = *job.add_gates();
  gate.set_name("min_snr");
  gate.set_message("10 dB of 20 dB");
  EXPECT_THAT(MarkdownReport(job, "Nightly"),
              AllOf(HasSubstr("### Nightly\n\n❌ FAILED: a gate was missed\n"),
                    HasSubstr("- ❌ **min\\_snr**: 10 dB of 20 dB\n")));
}

TEST(MarkdownReportTest, NamesBecomeNeitherLinksNorMentionsNorCells) {
  v1::Job job;
  job.set_job_id("j`|1");
  job.set_state(v1::SUCCEEDED);
  job.mutable_spec()->set_name("@all <b>|[x](http://a)\n# www.b");
  const std::string text = MarkdownReport(job, "");
  EXPECT_THAT(text, HasSubstr("### @\u200ball &lt;b&gt;\\|\\[x\\]\\(http&#58;"
                              "//a\\) \\# www&#46;b\n\n✅ passed\n"));
  EXPECT_THAT(text, AllOf(Not(HasSubstr("<b>")), HasSubstr("Job `j1`\n")));
}

}  // namespace
}  // namespace optfarm::job_report
