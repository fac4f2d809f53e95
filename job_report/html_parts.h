// The page's part of an HTML report: its scripts and styles, which the build
// bundles from web/src.

#ifndef OPTFARM_JOB_REPORT_HTML_PARTS_H_
#define OPTFARM_JOB_REPORT_HTML_PARTS_H_

#include "absl/strings/string_view.h"

namespace optfarm::job_report {

// A report is `head`, the job as JSON, `tail`. It has its scripts and styles
// inside; `policy`, a Content-Security-Policy, allows these alone.
struct HtmlParts {
  absl::string_view head;
  absl::string_view tail;
  absl::string_view policy;
};

// Empty where the page was left out of the build (OPTFARM_WEB=OFF). Generated
// by web/build.mjs.
HtmlParts ReportHtmlParts();

}  // namespace optfarm::job_report

#endif  // OPTFARM_JOB_REPORT_HTML_PARTS_H_
