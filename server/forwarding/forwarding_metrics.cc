#include "server/forwarding/forwarding_metrics.h"

#include "absl/strings/str_cat.h"

namespace optfarm::server {

std::string ForwardingMetrics(const ForwardingCounts& counts) {
  return absl::StrCat(
      "# HELP optfarm_leads Whether this server leads the farm's servers\n"
      "# TYPE optfarm_leads gauge\n"
      "optfarm_leads ",
      counts.leads ? 1 : 0,
      "\n# HELP optfarm_forwarded_calls_open Calls that the leader is being "
      "asked for others\n"
      "# TYPE optfarm_forwarded_calls_open gauge\n"
      "optfarm_forwarded_calls_open ",
      counts.open_calls,
      "\n# HELP optfarm_forwarded_calls_total Calls sent on to the leader "
      "since "
      "this server began to stand by\n"
      "# TYPE optfarm_forwarded_calls_total counter\n"
      "optfarm_forwarded_calls_total ",
      counts.sent_on,
      "\n# HELP optfarm_served_calls_total Calls answered here while the "
      "leader "
      "only let them in, since this server began to stand by\n"
      "# TYPE optfarm_served_calls_total counter\n"
      "optfarm_served_calls_total ",
      counts.served, "\n");
}

}  // namespace optfarm::server
