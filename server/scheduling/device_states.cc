#include "server/scheduling/device_states.h"

#include <utility>

#include "absl/strings/string_view.h"

namespace optfarm::server {
namespace {

constexpr size_t kMaxUnwritten = 10000;

bool ReasonCounts(v1::Device::State state) {
  return state == v1::Device::OFFLINE || state == v1::Device::DISABLED ||
         state == v1::Device::QUARANTINED || state == v1::Device::RESERVED;
}

}  // namespace

void DeviceStates::Load(std::vector<storage::DeviceStateRecord> latest) {
  for (storage::DeviceStateRecord& record : latest) {
    last_[record.device] = {record.state, std::move(record.reason)};
  }
}

bool DeviceStates::Note(const std::string& device, const StateAndReason& state,
                        absl::Time now) {
  Last& last = last_[device];
  if (last.state == state.state &&
      (!ReasonCounts(state.state) || last.reason == state.reason)) {
    return false;
  }
  last = {state.state, state.reason};
  if (unwritten_.size() >= kMaxUnwritten) unwritten_.erase(unwritten_.begin());
  unwritten_.push_back({0, device, state.state, state.reason, now});
  return true;
}

void DeviceStates::Forget(const std::string& device) {
  last_.erase(device);
  std::erase_if(unwritten_, [&](const storage::DeviceStateRecord& state) {
    return state.device == device;
  });
}

std::string PublicReason(const storage::DeviceStateRecord& state) {
  if (state.state != v1::Device::QUARANTINED) return state.reason;
  return state.reason.substr(0, state.reason.find(kLastFailure));
}

}  // namespace optfarm::server
