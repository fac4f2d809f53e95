#include "server/scheduling/device_view.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "rpc/proto_time.h"
#include "server/conventions/names.h"
#include "server/scheduling/device_choice.h"

namespace optfarm::server {
namespace {

using ::optfarm::storage::DeviceRecord;

std::string ReservationText(const v1::ChangeDeviceRequest& change) {
  return absl::StrCat(
      change.tag().empty()
          ? "for no job"
          : absl::StrCat("for jobs with the tag ", Quoted(change.tag())),
      " until ",
      absl::FormatTime(absl::RFC3339_sec, rpc::FromTimestamp(change.until()),
                       absl::UTCTimeZone()),
      change.reason().empty() ? "" : ": ", change.reason());
}

}  // namespace

// What is said first wins: an operator knows better than the server, the server
// better than an agent that does not call.
StateAndReason StateOf(const DeviceRecord& record, bool busy,
                       absl::Duration offline_after, absl::Time now) {
  const bool by_operator =
      record.change.change() == v1::ChangeDeviceRequest::DISABLE;
  if (by_operator || record.disabled) {
    return {v1::Device::DISABLED,
            by_operator ? record.change.reason() : record.reason};
  }
  if (now - record.last_seen > offline_after) {
    return {v1::Device::OFFLINE,
            absl::StrCat("its agent ", record.agent, " does not call")};
  }
  if (busy) return {v1::Device::BUSY, record.reason};
  if (now < record.quarantined_until) {
    return {v1::Device::QUARANTINED, record.quarantine_reason};
  }
  if (record.ready && IsReserved(record.change, now)) {
    return {v1::Device::RESERVED, ReservationText(record.change)};
  }
  if (record.ready) return {v1::Device::AVAILABLE, record.reason};
  if (record.cooling) return {v1::Device::COOLING, record.reason};
  if (!record.heard) {
    return {v1::Device::OFFLINE, absl::StrCat("its agent ", record.agent,
                                              " has not called since the "
                                              "server started")};
  }
  // A task that the server took away takes the agent a moment to end.
  if (!record.unreachable && record.reason.empty()) {
    return {v1::Device::BUSY, "its agent ends a task"};
  }
  return {v1::Device::OFFLINE, record.reason};
}

absl::Time NextStateTime(const DeviceRecord& record,
                         const SchedulingOptions& options, absl::Time now) {
  absl::Time next = absl::InfiniteFuture();
  const auto consider = [&](absl::Time time) {
    if (time > now) next = std::min(next, time);
  };
  // Silence has to last longer than these.
  constexpr absl::Duration kLonger = absl::Nanoseconds(1);
  consider(record.last_seen + options.offline_after + kLonger);
  consider(record.last_seen + options.alert_after + kLonger);
  consider(record.quarantined_until);
  if (IsReserved(record.change, now)) {
    consider(rpc::FromTimestamp(record.change.until()));
  }
  return next;
}

v1::Device ViewDevice(const DeviceRecord& record, const std::string& task_id,
                      const SchedulingOptions& options, absl::Time now) {
  v1::Device device;
  *device.mutable_info() = record.info;
  device.set_agent(record.agent);
  *device.mutable_last_seen() = rpc::ToTimestamp(record.last_seen);
  *device.mutable_first_seen() = rpc::ToTimestamp(record.first_seen);
  *device.mutable_health() = record.health;
  device.set_failures_in_a_row(record.failures_in_a_row);
  const StateAndReason state =
      StateOf(record, !task_id.empty(), options.offline_after, now);
  device.set_state(state.state);
  device.set_state_reason(state.reason);
  if (state.state == v1::Device::BUSY) device.set_task_id(task_id);
  if (now < record.quarantined_until) {
    *device.mutable_quarantined_until() =
        rpc::ToTimestamp(record.quarantined_until);
  }
  if (IsReserved(record.change, now)) {
    *device.mutable_reserved_until() = record.change.until();
    device.set_reserved_for_tag(record.change.tag());
  }
  device.set_alert(MissingAlert(record, options.alert_after, now));
  return device;
}

std::string MissingAlert(const DeviceRecord& record, absl::Duration alert_after,
                         absl::Time now) {
  const v1::ChangeDeviceRequest::Change change = record.change.change();
  const bool expected = !record.disabled &&
                        change != v1::ChangeDeviceRequest::DISABLE &&
                        change != v1::ChangeDeviceRequest::RETIRE;
  if (!expected) return "";
  const absl::Duration silent = now - record.last_seen;
  if (silent > alert_after) {
    return absl::StrCat(
        "has not reported for ",
        absl::FormatDuration(absl::Trunc(silent, absl::Minutes(1))),
        "; see that agent ", record.agent, " runs there");
  }
  if (record.unreachable) {
    return absl::StrCat("its agent ", record.agent,
                        " cannot reach it: ", record.reason);
  }
  return "";
}

}  // namespace optfarm::server
