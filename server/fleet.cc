#include "server/fleet.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "server/log_text.h"
#include "server/names.h"

namespace optfarm::server {
namespace {

using ::optfarm::storage::DeviceRecord;

constexpr absl::Duration kWriteInterval = absl::Minutes(1);
// A process that has been silent for longer is forgotten.
constexpr absl::Duration kForgetAfter = absl::Hours(1);
constexpr int kMaxHeld = 1024;
constexpr int kMaxDevices = 256;
constexpr int kMaxRecipes = 200;
constexpr size_t kMaxTextBytes = 500;
// In all. More is a client that makes names up.
constexpr size_t kMaxKnownDevices = 10000;

absl::Status TooMany(absl::string_view what, int count, int most) {
  return absl::InvalidArgumentError(
      absl::StrCat("synchronizing: ", count, " ", what,
                   " in one call; send at most ", most));
}

bool SameDevice(const DeviceRecord& a, const DeviceRecord& b) {
  return a.agent == b.agent && a.participant_id == b.participant_id &&
         a.ready == b.ready && a.disabled == b.disabled &&
         a.reason == b.reason &&
         a.info.SerializeAsString() == b.info.SerializeAsString();
}

template <typename Map>
std::vector<std::string> KeysOf(const Map& map) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : map) keys.push_back(key);
  return keys;
}

}  // namespace

absl::Status CheckSynchronizeRequest(const v1::SynchronizeRequest& request) {
  OPTFARM_RETURN_IF_ERROR(
      CheckName("participant_id", request.participant_id()));
  OPTFARM_RETURN_IF_ERROR(CheckName("name", request.name()));
  if (request.kind() != v1::SynchronizeRequest::WORKER &&
      request.kind() != v1::SynchronizeRequest::AGENT) {
    return absl::InvalidArgumentError(
        absl::StrCat("synchronizing: kind ", request.kind(),
                     " is unknown; say WORKER or AGENT"));
  }
  if (request.held_size() > kMaxHeld) {
    return TooMany("held tasks", request.held_size(), kMaxHeld);
  }
  if (request.devices_size() > kMaxDevices) {
    return TooMany("devices", request.devices_size(), kMaxDevices);
  }
  if (request.builtin_recipes_size() > kMaxRecipes) {
    return TooMany("recipes", request.builtin_recipes_size(), kMaxRecipes);
  }
  for (const v1::DeviceStatus& device : request.devices()) {
    OPTFARM_RETURN_IF_ERROR(CheckName("device", device.info().name()));
  }
  for (const v1::Recipe& recipe : request.builtin_recipes()) {
    OPTFARM_RETURN_IF_ERROR(CheckName("recipe", recipe.name()));
  }
  return absl::OkStatus();
}

void Fleet::Load(std::vector<DeviceRecord> devices,
                 std::vector<v1::Recipe> recipes) {
  for (DeviceRecord& device : devices) {
    // Its agent has to say again that it is ready.
    device.ready = false;
    const std::string name = device.info.name();
    devices_[name] = std::move(device);
  }
  for (v1::Recipe& recipe : recipes) {
    const std::string name = recipe.name();
    recipes_[name] = std::move(recipe);
  }
}

void Fleet::TakeIn(const v1::SynchronizeRequest& request, absl::Time now,
                   storage::WriteBatch& batch) {
  Participant& participant = participants_[request.participant_id()];
  storage::ParticipantRecord& record = participant.record;
  if (record.participant_id.empty()) {
    record.first_seen = now;
    LogInfo(
        request.kind() == v1::SynchronizeRequest::WORKER ? "worker " : "agent ",
        request.name(), " (", request.participant_id(), ") has joined");
    absl::erase_if(participants_, [&](const auto& entry) {
      return entry.first != request.participant_id() &&
             entry.second.record.last_seen < now - kForgetAfter;
    });
  }
  // Erasing may have moved it.
  Participant& caller = participants_[request.participant_id()];
  caller.record.participant_id = request.participant_id();
  caller.record.name = request.name();
  caller.record.kind = request.kind();
  caller.record.build_version =
      std::string(CutText(request.build_version(), kMaxTextBytes));
  caller.record.last_seen = now;
  if (now - caller.written >= kWriteInterval) {
    caller.written = now;
    batch.participants.push_back(caller.record);
  }
  if (request.kind() == v1::SynchronizeRequest::WORKER) {
    worker_version_ = caller.record.build_version;
  }
  for (const v1::Recipe& recipe : request.builtin_recipes()) {
    v1::Recipe& known = recipes_[recipe.name()];
    if (known.SerializeAsString() == recipe.SerializeAsString()) continue;
    known = recipe;
    batch.recipes.push_back(recipe);
  }
  if (request.kind() != v1::SynchronizeRequest::AGENT) return;
  for (const v1::DeviceStatus& status : request.devices()) {
    TakeInDevice(request, status, now, batch);
  }
}

void Fleet::TakeInDevice(const v1::SynchronizeRequest& request,
                         const v1::DeviceStatus& status, absl::Time now,
                         storage::WriteBatch& batch) {
  const std::string& name = status.info().name();
  if (devices_.size() >= kMaxKnownDevices && !devices_.contains(name)) {
    LogWarning("device ", name, " is one too many; ", kMaxKnownDevices,
               " are known");
    return;
  }
  DeviceRecord next;
  next.info = status.info();
  next.agent = request.name();
  next.participant_id = request.participant_id();
  next.ready = status.ready();
  next.disabled = status.disabled();
  next.reason = std::string(CutText(status.reason(), kMaxTextBytes));
  next.first_seen = next.last_seen = now;
  const auto found = devices_.find(name);
  bool changed = found == devices_.end();
  if (changed) {
    LogInfo("device ", name, " has joined, served by ", request.name());
  } else {
    next.first_seen = found->second.first_seen;
    changed = !SameDevice(found->second, next);
  }
  absl::Time& written = devices_written_.try_emplace(name).first->second;
  if (changed || now - written >= kWriteInterval) {
    written = now;
    batch.devices.push_back(next);
  }
  devices_[name] = std::move(next);
}

const DeviceRecord* Fleet::FindDevice(const std::string& name) const {
  const auto found = devices_.find(name);
  return found == devices_.end() ? nullptr : &found->second;
}

std::vector<std::string> Fleet::DeviceNames() const { return KeysOf(devices_); }

const v1::Recipe* Fleet::FindRecipe(const std::string& name) const {
  const auto found = recipes_.find(name);
  return found == recipes_.end() ? nullptr : &found->second;
}

std::vector<std::string> Fleet::RecipeNames() const { return KeysOf(recipes_); }

}  // namespace optfarm::server
