// What one of several servers counts about its part in the farm.

#ifndef OPTFARM_SERVER_FORWARDING_FORWARDING_METRICS_H_
#define OPTFARM_SERVER_FORWARDING_FORWARDING_METRICS_H_

#include <cstdint>
#include <string>

namespace optfarm::server {

struct ForwardingCounts {
  bool leads = false;
  // Sent on to the leader, and not yet answered.
  int open_calls = 0;
  // Since this server began to stand by: sent on, and answered here.
  int64_t sent_on = 0;
  int64_t served = 0;
};

// In Prometheus' text format.
std::string ForwardingMetrics(const ForwardingCounts& counts);

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_FORWARDING_FORWARDING_METRICS_H_
