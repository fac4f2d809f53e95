// What one of several servers counts about its part in the farm.

#ifndef OPTFARM_SERVER_FORWARDING_FORWARDING_METRICS_H_
#define OPTFARM_SERVER_FORWARDING_FORWARDING_METRICS_H_

#include <cstdint>
#include <string>

namespace optfarm::server {

// In Prometheus' text format.
std::string ForwardingMetrics(bool leads, int open_calls, int64_t all_calls);

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_FORWARDING_FORWARDING_METRICS_H_
