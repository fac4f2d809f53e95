// What a report says beyond the results table, as text: what was tried at which
// price, how sure the accuracy is, packed sizes, layers alone, worst samples.

#ifndef OPTFARM_CLIENT_CLI_TABLES_REPORT_DETAILS_H_
#define OPTFARM_CLIENT_CLI_TABLES_REPORT_DETAILS_H_

#include <string>
#include <vector>

namespace optfarm::v1 {
class Report;
}  // namespace optfarm::v1

namespace optfarm::client_cli {

// Sections with an empty line before each; those that the report has nothing
// for are left out. `class_names`: of the model's classes by number, as far as
// they are known.
std::string ReportDetails(const v1::Report& report,
                          const std::vector<std::string>& class_names = {});

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_TABLES_REPORT_DETAILS_H_
