#include "server/scheduling/fleet.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "server/conventions/log_text.h"
#include "server/conventions/names.h"
#include "server/scheduling/device_choice.h"
#include "server/scheduling/device_view.h"

namespace optfarm::server {
namespace {

using ::optfarm::storage::DeviceRecord;

constexpr absl::Duration kWriteInterval = absl::Minutes(1);
// A process that has been silent for longer is forgotten.
constexpr absl::Duration kForgetAfter = absl::Hours(1);
constexpr absl::Duration kForgetInterval = absl::Minutes(1);
constexpr int kMaxHeld = 1024;
constexpr int kMaxDevices = 256;
constexpr int kMaxRecipes = 200;
constexpr size_t kMaxTextBytes = 500;
constexpr int kMaxTags = 16;
constexpr int kMaxEngines = 8;
// Attempts that fail in a row before a device gets no more.
constexpr int kQuarantineAfter = 3;
constexpr absl::Duration kFirstQuarantine = absl::Minutes(30);
constexpr absl::Duration kLongestQuarantine = absl::Hours(24);
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
         a.reason == b.reason && a.cooling == b.cooling &&
         a.unreachable == b.unreachable &&
         a.info.SerializeAsString() == b.info.SerializeAsString();
}

bool SameTags(const v1::DeviceInfo& a, const v1::DeviceInfo& b) {
  return absl::c_equal(a.tags(), b.tags());
}

bool HasEngine(const DeviceRecord& device, const std::string& engine) {
  return absl::c_any_of(device.info.engines(), [&](const v1::EngineInfo& info) {
    return info.name() == engine;
  });
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
    if (device.info().tags_size() > kMaxTags) {
      return TooMany("tags of a device", device.info().tags_size(), kMaxTags);
    }
    for (const std::string& tag : device.info().tags()) {
      OPTFARM_RETURN_IF_ERROR(CheckName("tag", tag));
    }
    if (device.info().engines_size() > kMaxEngines) {
      return TooMany("engines of a device", device.info().engines_size(),
                     kMaxEngines);
    }
    for (const v1::EngineInfo& engine : device.info().engines()) {
      OPTFARM_RETURN_IF_ERROR(CheckName("engine", engine.name()));
      if (engine.version().size() > kMaxTextBytes) {
        return TooMany("bytes of an engine's version",
                       static_cast<int>(engine.version().size()),
                       static_cast<int>(kMaxTextBytes));
      }
    }
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
    Replace(std::move(device));
  }
  for (v1::Recipe& recipe : recipes) {
    const std::string name = recipe.name();
    recipes_[name] = std::move(recipe);
  }
}

void Fleet::TakeIn(const v1::SynchronizeRequest& request, absl::Time now,
                   storage::WriteBatch& batch, FleetBefore& before) {
  ForgetSilent(now);
  Participant& participant = participants_[request.participant_id()];
  storage::ParticipantRecord& record = participant.record;
  if (record.participant_id.empty()) {
    record.first_seen = now;
    LogInfo(
        request.kind() == v1::SynchronizeRequest::WORKER ? "worker " : "agent ",
        request.name(), " (", request.participant_id(), ") has joined");
  }
  record.participant_id = request.participant_id();
  record.name = request.name();
  record.kind = request.kind();
  record.build_version =
      std::string(CutText(request.build_version(), kMaxTextBytes));
  record.last_seen = now;
  if (now - participant.written >= kWriteInterval) {
    before.participants_written.try_emplace(request.participant_id(),
                                            participant.written);
    participant.written = now;
    batch.participants.push_back(record);
  }
  if (request.kind() == v1::SynchronizeRequest::WORKER) {
    worker_version_ = record.build_version;
  }
  for (const v1::Recipe& recipe : request.builtin_recipes()) {
    const auto known = recipes_.find(recipe.name());
    std::optional<v1::Recipe> old;
    if (known != recipes_.end()) old = known->second;
    if (old.has_value() &&
        old->SerializeAsString() == recipe.SerializeAsString()) {
      continue;
    }
    before.recipes.try_emplace(recipe.name(), std::move(old));
    recipes_[recipe.name()] = recipe;
    batch.recipes.push_back(recipe);
  }
  if (request.kind() != v1::SynchronizeRequest::AGENT) return;
  for (const v1::DeviceStatus& status : request.devices()) {
    TakeInDevice(request, status, now, batch, before);
  }
}

void Fleet::ForgetSilent(absl::Time now) {
  // A clock that was set back does not put it off.
  if (absl::AbsDuration(now - forgot_) < kForgetInterval) return;
  forgot_ = now;
  absl::erase_if(participants_, [&](const auto& entry) {
    return entry.second.record.last_seen < now - kForgetAfter;
  });
}

void Fleet::KeepDevice(const std::string& name, FleetBefore& before) const {
  const DeviceRecord* known = FindDevice(name);
  before.devices.try_emplace(
      name, known == nullptr ? std::nullopt : std::make_optional(*known));
}

void Fleet::Undo(FleetBefore before) {
  for (auto& [name, device] : before.devices) {
    if (device.has_value()) {
      Replace(*std::move(device));
    } else {
      Erase(name);
    }
  }
  for (const auto& [name, time] : before.devices_written) {
    devices_written_[name] = time;
  }
  for (const auto& [id, time] : before.participants_written) {
    const auto caller = participants_.find(id);
    if (caller != participants_.end()) caller->second.written = time;
  }
  for (auto& [name, recipe] : before.recipes) {
    if (recipe.has_value()) {
      recipes_[name] = *std::move(recipe);
    } else {
      recipes_.erase(name);
    }
  }
}

void Fleet::NoteStillThere(const v1::SynchronizeRequest& request,
                           absl::Time now) {
  const auto caller = participants_.find(request.participant_id());
  if (caller == participants_.end()) return;
  caller->second.record.last_seen = now;
  for (const v1::DeviceStatus& status : request.devices()) {
    const auto device = devices_.find(status.info().name());
    if (device == devices_.end()) continue;
    // Another one may have taken it over since.
    DeviceRecord& record = device->second;
    if (record.participant_id == request.participant_id()) {
      record.last_seen = now;
    }
  }
}

int Fleet::CountParticipants(v1::SynchronizeRequest::Kind kind,
                             absl::Time since) const {
  int count = 0;
  for (const auto& [id, participant] : participants_) {
    count += participant.record.kind == kind &&
             participant.record.last_seen >= since;
  }
  return count;
}

void Fleet::TakeInDevice(const v1::SynchronizeRequest& request,
                         const v1::DeviceStatus& status, absl::Time now,
                         storage::WriteBatch& batch, FleetBefore& before) {
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
  next.cooling = status.cooling();
  next.unreachable = status.unreachable();
  next.heard = true;
  next.health = status.health();
  next.first_seen = next.last_seen = now;
  const auto found = devices_.find(name);
  bool changed = found == devices_.end();
  if (changed) {
    LogInfo("device ", name, " has joined, served by ", request.name());
  } else {
    const DeviceRecord& known = found->second;
    next.first_seen = known.first_seen;
    next.failures_in_a_row = known.failures_in_a_row;
    next.quarantined_until = known.quarantined_until;
    next.quarantine_reason = known.quarantine_reason;
    // Whoever reports is not retired.
    if (known.change.change() != v1::ChangeDeviceRequest::RETIRE) {
      next.change = known.change;
    }
    changed = !SameDevice(found->second, next);
  }
  KeepDevice(name, before);
  absl::Time& written =
      devices_written_.try_emplace(name, absl::InfinitePast()).first->second;
  if (changed || now - written >= kWriteInterval) {
    before.devices_written.try_emplace(name, written);
    written = now;
    batch.devices.push_back(next);
  }
  Replace(std::move(next));
}

void Fleet::NoteOutcome(const std::string& device, bool ok,
                        absl::string_view reason, absl::Time now,
                        storage::WriteBatch& batch, FleetBefore& before) {
  const auto found = devices_.find(device);
  if (found == devices_.end()) return;
  DeviceRecord& record = found->second;
  if (ok && record.failures_in_a_row == 0) return;
  KeepDevice(device, before);
  if (ok) {
    record.failures_in_a_row = 0;
    record.quarantined_until = absl::InfinitePast();
    record.quarantine_reason.clear();
  } else if (++record.failures_in_a_row >= kQuarantineAfter) {
    const int again = std::min(record.failures_in_a_row - kQuarantineAfter, 10);
    const absl::Duration term =
        std::min(kFirstQuarantine * (1 << again), kLongestQuarantine);
    record.quarantined_until = now + term;
    record.quarantine_reason = std::string(
        CutText(absl::StrCat(record.failures_in_a_row,
                             " attempts in a row failed", kLastFailure, reason),
                kMaxTextBytes));
    LogWarning("device ", device, " is in quarantine for ",
               absl::FormatDuration(term), ": ", record.quarantine_reason);
  }
  batch.devices.push_back(record);
}

bool Fleet::MayWork(const std::string& device, absl::Time now) const {
  const DeviceRecord* record = FindDevice(device);
  return record == nullptr ||
         (record->change.change() != v1::ChangeDeviceRequest::DISABLE &&
          now >= record->quarantined_until);
}

std::optional<std::string> Fleet::ReservedFor(const std::string& device,
                                              absl::Time now) const {
  const DeviceRecord* record = FindDevice(device);
  if (record == nullptr || !IsReserved(record->change, now)) {
    return std::nullopt;
  }
  return record->change.tag();
}

const absl::btree_set<std::string>& Fleet::DevicesFor(
    const std::string& asked) const {
  static const auto& none = *new absl::btree_set<std::string>;
  const auto found = by_way_.find(asked);
  return found == by_way_.end() ? none : found->second;
}

bool Fleet::HasEngineFor(const std::string& asked,
                         const std::string& engine) const {
  return absl::c_any_of(DevicesFor(asked), [&](const std::string& device) {
    return HasEngine(devices_.at(device), engine);
  });
}

std::vector<std::string> Fleet::DevicesWithEngine(
    const std::string& engine) const {
  std::vector<std::string> names;
  for (const auto& [name, record] : devices_) {
    if (HasEngine(record, engine)) names.push_back(name);
  }
  return names;
}

void Fleet::LogAlert(const DeviceRecord& device, absl::Duration alert_after,
                     absl::Time now) {
  const std::string& name = device.info.name();
  const std::string alert = MissingAlert(device, alert_after, now);
  if (alert.empty()) {
    if (missed_.erase(name) > 0) LogInfo("device ", name, " is back");
  } else if (missed_.insert(name).second) {
    LogWarning("device ", name, " ", alert);
  }
}

absl::StatusOr<DeviceRecord> Fleet::Changed(
    const v1::ChangeDeviceRequest& change, absl::Time now) const {
  DeviceRecord record = devices_.at(change.name());
  OPTFARM_ASSIGN_OR_RETURN(record.change, KeptChange(change, now));
  if (change.change() == v1::ChangeDeviceRequest::ENABLE) {
    record.change.Clear();
    record.failures_in_a_row = 0;
    record.quarantined_until = absl::InfinitePast();
    record.quarantine_reason.clear();
  }
  return record;
}

void Fleet::Replace(DeviceRecord device) {
  const std::string name = device.info.name();
  const auto known = devices_.find(name);
  if (known != devices_.end() && SameTags(known->second.info, device.info)) {
    known->second = std::move(device);
    return;
  }
  Erase(name);
  for (const std::string& way : WaysToAskFor(device.info)) {
    by_way_[way].insert(name);
  }
  devices_[name] = std::move(device);
}

void Fleet::Erase(const std::string& device) {
  const auto known = devices_.find(device);
  if (known == devices_.end()) return;
  for (const std::string& way : WaysToAskFor(known->second.info)) {
    // None: the tag was there twice.
    const auto found = by_way_.find(way);
    if (found == by_way_.end()) continue;
    found->second.erase(device);
    if (found->second.empty()) by_way_.erase(found);
  }
  devices_.erase(known);
}

void Fleet::Forget(const std::string& device) {
  Erase(device);
  devices_written_.erase(device);
  missed_.erase(device);
}

const DeviceRecord* Fleet::FindDevice(const std::string& name) const {
  const auto found = devices_.find(name);
  return found == devices_.end() ? nullptr : &found->second;
}

std::vector<storage::ParticipantRecord> Fleet::Participants(
    absl::Time since) const {
  std::vector<storage::ParticipantRecord> records;
  for (const auto& [id, participant] : participants_) {
    if (participant.record.last_seen >= since) {
      records.push_back(participant.record);
    }
  }
  return records;
}

std::vector<std::string> Fleet::DeviceNames() const { return KeysOf(devices_); }

std::vector<std::string> Fleet::WaysToAskForDevices() const {
  std::vector<std::string> ways = KeysOf(by_way_);
  absl::c_sort(ways);
  return ways;
}

const v1::Recipe* Fleet::FindRecipe(const std::string& name) const {
  const auto found = recipes_.find(name);
  return found == recipes_.end() ? nullptr : &found->second;
}

std::vector<std::string> Fleet::RecipeNames() const { return KeysOf(recipes_); }

}  // namespace optfarm::server
