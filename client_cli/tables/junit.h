// A job's outcome as JUnit XML, which build servers show test by test: each
// task is a test case, and so is each gate.

#ifndef OPTFARM_CLIENT_CLI_TABLES_JUNIT_H_
#define OPTFARM_CLIENT_CLI_TABLES_JUNIT_H_

#include <string>

#include "optfarm/v1/jobs.pb.h"

namespace optfarm::client_cli {

// REQUIRES: the job has ended.
std::string JUnitXml(const v1::Job& job);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_TABLES_JUNIT_H_
