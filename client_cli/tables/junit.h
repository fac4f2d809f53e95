// A job's outcome as JUnit XML, which build servers show test by test: each
// task is a test case, and so are each gate and each verdict.

#ifndef OPTFARM_CLIENT_CLI_TABLES_JUNIT_H_
#define OPTFARM_CLIENT_CLI_TABLES_JUNIT_H_

#include <string>

#include "optfarm/v1/jobs.pb.h"

namespace optfarm::client_cli {

// A failed task and a failed gate fail or break the build. A verdict does not,
// because bounds are what builds depend on: a "yes" passes, and any other is
// skipped with its text. REQUIRES: the job has ended and has its verdicts.
std::string JUnitXml(const v1::Job& job);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_TABLES_JUNIT_H_
