// Whether a device is in a state in which its numbers mean something: cool,
// idle, charged. Pure functions, and the wait for it.

#ifndef OPTFARM_DEVICE_AGENT_QUIET_GATE_H_
#define OPTFARM_DEVICE_AGENT_QUIET_GATE_H_

#include <functional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "optfarm/v1/devices.pb.h"
#include "optfarm/v1/measurement.pb.h"

namespace optfarm::device_agent {

struct QuietLimits {
  // UNITS: degrees Celsius; 0: any temperature will do.
  double max_celsius = 0;
  // UNITS: runnable processes, mean over the last minute; 0: any.
  double max_load = 0;
  // UNITS: percent; a battery below it must be charged first. 0: any.
  int min_battery_percent = 0;
};

// Why a benchmark should wait ("cooling down, 71 degrees"); "" when it need
// not. What a device does not tell is no reason to wait.
std::string WhyWait(const v1::DeviceHealth& health, const QuietLimits& limits);

v1::DeviceHealth HealthOf(const v1::Environment& environment);

// Asks again and again until there is no reason to wait or `patience` is over;
// returns the reason that is left, "" for none. `tell` hears of each reason.
std::string AwaitQuiet(const std::function<v1::DeviceHealth()>& ask,
                       const QuietLimits& limits, absl::Duration patience,
                       const std::function<void(absl::string_view)>& tell,
                       const std::function<absl::Time()>& now,
                       const std::function<void(absl::Duration)>& sleep);

}  // namespace optfarm::device_agent

#endif  // OPTFARM_DEVICE_AGENT_QUIET_GATE_H_
