// A device as users see it: its state and why, and whether it is missed.

#ifndef OPTFARM_SERVER_SCHEDULING_DEVICE_VIEW_H_
#define OPTFARM_SERVER_SCHEDULING_DEVICE_VIEW_H_

#include <string>

#include "absl/time/time.h"
#include "optfarm/v1/devices.pb.h"
#include "server/scheduling/scheduling_policy.h"
#include "storage/records.h"

namespace optfarm::server {

// What a quarantine's reason says before it quotes the last failure.
inline constexpr char kLastFailure[] = ", the last one: ";

struct StateAndReason {
  v1::Device::State state = v1::Device::STATE_UNSPECIFIED;
  // One sentence; may be empty.
  std::string reason;
};

// `busy`: it holds a task.
StateAndReason StateOf(const storage::DeviceRecord& record, bool busy,
                       absl::Duration offline_after, absl::Time now);

// When the state or the alert of a device changes next if nobody reports it and
// no task of it ends; absl::InfiniteFuture() when neither does.
absl::Time NextStateTime(const storage::DeviceRecord& record,
                         const SchedulingOptions& options, absl::Time now);

// `task_id`: the task it holds; empty: none.
v1::Device ViewDevice(const storage::DeviceRecord& record,
                      const std::string& task_id,
                      const SchedulingOptions& options, absl::Time now);

// One sentence when the device should have reported and has not for
// `alert_after`; empty otherwise.
std::string MissingAlert(const storage::DeviceRecord& record,
                         absl::Duration alert_after, absl::Time now);

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SCHEDULING_DEVICE_VIEW_H_
