// A job as a comment on a pull request. The Python package's
// Report.to_markdown writes the same words.

#ifndef OPTFARM_JOB_REPORT_MARKDOWN_REPORT_H_
#define OPTFARM_JOB_REPORT_MARKDOWN_REPORT_H_

#include <string>

#include "absl/strings/string_view.h"
#include "optfarm/v1/jobs.pb.h"

namespace optfarm::job_report {

// Verdict, table, gates and warnings of a job that has its verdicts, ending in
// a newline. An empty title: the job's name or the model's, and the recipe's.
std::string MarkdownReport(const v1::Job& job, absl::string_view title);

}  // namespace optfarm::job_report

#endif  // OPTFARM_JOB_REPORT_MARKDOWN_REPORT_H_
