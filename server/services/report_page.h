// "/report/JOB": one HTML file with all that the page shows of a job, which
// needs neither the server nor a network once somebody has it.

#ifndef OPTFARM_SERVER_SERVICES_REPORT_PAGE_H_
#define OPTFARM_SERVER_SERVICES_REPORT_PAGE_H_

#include "http/service_map.h"

namespace optfarm::server {

// Adds the page, which takes the tokens that JobService.GetJob takes. In a
// server without the web page it answers NotFound.
// REQUIRES: the backend is there.
void AddReportPage(http::ServiceMap& services);

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SERVICES_REPORT_PAGE_H_
