// What adb and Android's own tools print, as values. Pure functions; whatever
// does not look as expected is left out.

#ifndef OPTFARM_DEVICE_AGENT_ADB_OUTPUT_H_
#define OPTFARM_DEVICE_AGENT_ADB_OUTPUT_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "optfarm/v1/devices.pb.h"

namespace optfarm::device_agent {

// One line of `adb devices -l`.
struct AdbDevice {
  std::string serial;
  // "device" when it can be used; "unauthorized", "offline", "recovery", ...
  std::string state;
  // "Pixel_7"; may be empty.
  std::string model;
};
std::vector<AdbDevice> ParseAdbDevices(absl::string_view text);

// A device's name in the farm: its serial with what no name may hold replaced
// by '-'; "" when nothing is left.
std::string NameOfSerial(absl::string_view serial);

// Takes what `dumpsys battery` says into `health`.
void ReadBattery(absl::string_view dumpsys, v1::DeviceHealth* health);

// Takes what `dumpsys thermalservice` says into `health`: the platform's status
// and the hottest sensor of those it trusts.
void ReadThermal(absl::string_view dumpsys, v1::DeviceHealth* health);

// The command that describes a phone to ParsePhone, for its own shell.
extern const char kDescribePhone[];

// What kDescribePhone printed. `abi` receives the first of the phone's ABIs.
v1::DeviceInfo ParsePhone(absl::string_view text, std::string* abi);

}  // namespace optfarm::device_agent

#endif  // OPTFARM_DEVICE_AGENT_ADB_OUTPUT_H_
