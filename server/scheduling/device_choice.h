// Which devices a job asks for, and which jobs a device may work for.

#ifndef OPTFARM_SERVER_SCHEDULING_DEVICE_CHOICE_H_
#define OPTFARM_SERVER_SCHEDULING_DEVICE_CHOICE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "optfarm/v1/devices.pb.h"

namespace optfarm::server {

// The tag in "any:TAG", which asks for one device that bears it, whichever is
// free first. None: `asked` is a device's name.
std::optional<absl::string_view> PoolOf(absl::string_view asked);

// ERRORS: InvalidArgument for what is neither a device's name nor any:TAG.
absl::Status CheckAskedDevice(absl::string_view asked);

// All by which a job may ask for this device: its name, and any:TAG for each of
// its tags.
std::vector<std::string> WaysToAskFor(const v1::DeviceInfo& device);

// `change` as it is kept: a reservation with its end, reason cut to size.
// ERRORS: InvalidArgument for an unknown change, a reservation without a
// duration or for longer than 30 days, or a tag that no job can bear.
absl::StatusOr<v1::ChangeDeviceRequest> KeptChange(
    const v1::ChangeDeviceRequest& change, absl::Time now);

// `change` reserves the device still.
bool IsReserved(const v1::ChangeDeviceRequest& change, absl::Time now);

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SCHEDULING_DEVICE_CHOICE_H_
