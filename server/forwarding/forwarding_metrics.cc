#include "server/forwarding/forwarding_metrics.h"

#include "absl/strings/str_cat.h"

namespace optfarm::server {

std::string ForwardingMetrics(bool leads, int open_calls, int64_t all_calls) {
  return absl::StrCat(
      "# HELP optfarm_leads Whether this server leads the farm's servers\n"
      "# TYPE optfarm_leads gauge\n"
      "optfarm_leads ",
      leads ? 1 : 0,
      "\n# HELP optfarm_forwarded_calls_open Calls that the leader is being "
      "asked for others\n"
      "# TYPE optfarm_forwarded_calls_open gauge\n"
      "optfarm_forwarded_calls_open ",
      open_calls,
      "\n# HELP optfarm_forwarded_calls_total Calls sent on to the leader "
      "since "
      "this server began to stand by\n"
      "# TYPE optfarm_forwarded_calls_total counter\n"
      "optfarm_forwarded_calls_total ",
      all_calls, "\n");
}

}  // namespace optfarm::server
