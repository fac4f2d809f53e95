// What Linux says about the machine it runs on.

#ifndef OPTFARM_DEVICE_AGENT_MACHINE_INFO_H_
#define OPTFARM_DEVICE_AGENT_MACHINE_INFO_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "optfarm/v1/devices.pb.h"

namespace optfarm::device_agent {

// Describes the machine whose files are below `root` ("/" for this one; a test
// may bring its own). What cannot be read is left empty or 0. The name,
// driver and build_version are left to the caller.
v1::DeviceInfo ReadMachineInfo(const std::string& root = "/");

// UNITS: degrees Celsius; of the hottest thermal zone. nullopt: none readable.
std::optional<double> ReadTemperature(const std::string& root = "/");

// Of /proc/cpuinfo's text: the processor's name, and those of its features
// that matter to kernels, sorted.
std::string CpuModel(absl::string_view cpuinfo);
std::vector<std::string> CpuFeatures(absl::string_view cpuinfo);

}  // namespace optfarm::device_agent

#endif  // OPTFARM_DEVICE_AGENT_MACHINE_INFO_H_
