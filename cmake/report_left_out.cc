// What a build without the web page has in place of the report's parts.

#include "job_report/html_parts.h"

namespace optfarm::job_report {

HtmlParts ReportHtmlParts() { return {}; }

}  // namespace optfarm::job_report
