#include "device_agent/quiet_gate.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace optfarm::device_agent {
namespace {

constexpr absl::Duration kPause = absl::Seconds(2);

}  // namespace

std::string WhyWait(const v1::DeviceHealth& health, const QuietLimits& limits) {
  if (limits.max_celsius > 0 && health.has_temperature_mc()) {
    const double celsius = static_cast<double>(health.temperature_mc()) / 1000;
    if (celsius > limits.max_celsius) {
      return absl::StrFormat("cooling down, %.0f degrees", celsius);
    }
  }
  if (health.throttled()) return "the platform throttles";
  if (limits.max_load > 0 && health.has_load_average() &&
      health.load_average() > limits.max_load) {
    return absl::StrFormat("others keep %.1f processors busy",
                           health.load_average());
  }
  if (limits.min_battery_percent > 0 && health.has_battery_percent() &&
      health.battery_percent() < limits.min_battery_percent) {
    return absl::StrCat("battery at ", health.battery_percent(), " %");
  }
  return "";
}

v1::DeviceHealth HealthOf(const v1::Environment& environment) {
  v1::DeviceHealth health;
  if (environment.has_temperature_mc()) {
    health.set_temperature_mc(environment.temperature_mc());
  }
  if (environment.has_battery_percent()) {
    health.set_battery_percent(environment.battery_percent());
  }
  health.set_charging(environment.charging());
  health.set_load_average(environment.load_average());
  health.set_throttled(environment.throttled());
  return health;
}

std::string AwaitQuiet(const std::function<v1::DeviceHealth()>& ask,
                       const QuietLimits& limits, absl::Duration patience,
                       const std::function<void(absl::string_view)>& tell,
                       const std::function<absl::Time()>& now,
                       const std::function<void(absl::Duration)>& sleep) {
  const absl::Time deadline = now() + patience;
  while (true) {
    const std::string reason = WhyWait(ask(), limits);
    if (reason.empty() || now() >= deadline) return reason;
    tell(reason);
    sleep(std::min(kPause, deadline - now()));
  }
}

}  // namespace optfarm::device_agent
