// What a report says beyond the results table, as text: what was tried at which
// price, how sure the accuracy is, packed sizes, layers alone, worst samples.

#ifndef OPTFARM_CLIENT_CLI_TABLES_REPORT_DETAILS_H_
#define OPTFARM_CLIENT_CLI_TABLES_REPORT_DETAILS_H_

#include <string>

namespace optfarm::v1 {
class Report;
}  // namespace optfarm::v1

namespace optfarm::client_cli {

// Sections with an empty line before each; those that the report has nothing
// for are left out.
std::string ReportDetails(const v1::Report& report);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_TABLES_REPORT_DETAILS_H_
