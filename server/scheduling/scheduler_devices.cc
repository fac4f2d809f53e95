// What the scheduler says of devices, and what operators change about them.

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/log.h"
#include "base/nearest_names.h"
#include "base/status_macros.h"
#include "server/conventions/names.h"
#include "server/scheduling/device_choice.h"
#include "server/scheduling/device_view.h"
#include "server/scheduling/scheduler.h"
#include "server/scheduling/scheduler_plan.h"

namespace optfarm::server {
namespace {

constexpr absl::Duration kStatesInterval = absl::Seconds(5);

absl::Status NoDevice(const std::string& name, const Fleet& fleet) {
  const std::string hint = NearestNamesHint(name, fleet.DeviceNames());
  return absl::NotFoundError(absl::StrCat(
      "there is no device ", Quoted(name),
      hint.empty() ? "; list the devices to see their names" : hint));
}

SchedulerNews DeviceIsFree(const std::string& name) {
  SchedulerNews news;
  news.free_devices.push_back(name);
  return news;
}

}  // namespace

v1::Device Scheduler::DescribeDevice(
    const storage::DeviceRecord& record, absl::Time now,
    const std::optional<std::string>& project) {
  std::string task_id;
  const TaskRef* task = index_.LeasedOnDevice(record.info.name());
  if (task != nullptr) {
    const LiveJob& job = jobs_.at(task->job_id);
    if (project.value_or(job.job.project) == job.job.project) {
      task_id = job.tasks[task->index].record.task_id;
    }
  }
  if (!project.has_value() || record.quarantine_reason.empty()) {
    return ViewDevice(record, task_id, options_, now);
  }
  // What failed may be another project's, names and paths in its words too.
  storage::DeviceRecord shown = record;
  shown.quarantine_reason =
      absl::StrCat(record.failures_in_a_row, " attempts in a row failed");
  return ViewDevice(shown, task_id, options_, now);
}

std::vector<std::string> Scheduler::JobsLeasedBy(
    absl::Span<const std::string> participant_ids) {
  std::vector<std::pair<absl::Time, std::string>> leased;
  {
    absl::MutexLock lock(&mutex_);
    for (const std::string& id : participant_ids) {
      for (const TaskRef& ref : index_.LeasedBy(id)) {
        leased.emplace_back(
            jobs_.at(ref.job_id).tasks[ref.index].record.attempt_start_time,
            ref.job_id);
      }
    }
  }
  std::sort(leased.rbegin(), leased.rend());
  absl::flat_hash_set<std::string> seen;
  std::vector<std::string> jobs;
  for (auto& [time, job_id] : leased) {
    if (seen.insert(job_id).second) jobs.push_back(std::move(job_id));
  }
  return jobs;
}

std::vector<v1::Device> Scheduler::Devices(
    absl::Time now, const std::optional<std::string>& project) {
  absl::MutexLock lock(&mutex_);
  std::vector<v1::Device> devices;
  for (const auto& [name, record] : fleet_.devices()) {
    devices.push_back(DescribeDevice(record, now, project));
  }
  return devices;
}

absl::StatusOr<v1::Device> Scheduler::FindDevice(
    const std::string& name, absl::Time now,
    const std::optional<std::string>& project) {
  absl::MutexLock lock(&mutex_);
  const storage::DeviceRecord* record = fleet_.FindDevice(name);
  if (record != nullptr) return DescribeDevice(*record, now, project);
  return NoDevice(name, fleet_);
}

std::map<v1::Device::State, int> Scheduler::CountDevices(absl::Time now) {
  std::map<v1::Device::State, int> counts;
  absl::MutexLock lock(&mutex_);
  for (const auto& [name, record] : fleet_.devices()) {
    ++counts[StateOfDevice(record, now).state];
  }
  return counts;
}

StateAndReason Scheduler::StateOfDevice(const storage::DeviceRecord& record,
                                        absl::Time now) {
  return StateOf(record, index_.LeasedOnDevice(record.info.name()) != nullptr,
                 options_.offline_after, now);
}

bool Scheduler::NoteState(const storage::DeviceRecord& record, absl::Time now) {
  const std::string& name = record.info.name();
  ++device_looks_;
  states_due_.Set(name, NextStateTime(record, options_, now));
  fleet_.LogAlert(record, options_.alert_after, now);
  const StateAndReason state = StateOfDevice(record, now);
  // A server that has just started has not heard of all of them yet.
  if (!record.heard && state.state == v1::Device::OFFLINE &&
      now - record.last_seen <= options_.offline_after) {
    return false;
  }
  return states_.Note(name, state, now);
}

void Scheduler::NoteStates(const std::set<std::string>& devices,
                           absl::Time now) {
  for (const std::string& name : devices) {
    const storage::DeviceRecord* record = fleet_.FindDevice(name);
    if (record != nullptr) NoteState(*record, now);
  }
}

void Scheduler::NoteAllStatesSoon() {
  for (const auto& [name, record] : fleet_.devices()) {
    states_due_.Set(name, absl::InfinitePast());
  }
}

// Silence, and what ends at a time, change a state without a call.
void Scheduler::NoteDueStates(Plan& plan) {
  // A clock that was set back does not put it off.
  if (absl::AbsDuration(plan.now - states_looked_) < kStatesInterval) return;
  states_looked_ = plan.now;
  for (const std::string& name : states_due_.PassedAt(plan.now)) {
    const storage::DeviceRecord* record = fleet_.FindDevice(name);
    OPTFARM_CHECK(record != nullptr);
    // Its quarantine, or its reservation, may have ended.
    if (NoteState(*record, plan.now)) plan.news.free_devices.push_back(name);
  }
}

void Scheduler::KeepStates() {
  storage::WriteBatch batch;
  batch.device_states = states_.unwritten();
  if (batch.empty()) return;
  const absl::Status kept = store_.Commit(batch);
  if (kept.ok()) {
    states_.Written();
  } else {
    LogWarning("keeping the states of devices: ", kept.message());
  }
}

absl::StatusOr<std::vector<storage::DeviceStateRecord>>
Scheduler::DeviceHistory(const std::string& name,
                         const storage::PageRequest& page, absl::Time now,
                         const std::optional<std::string>& project) {
  {
    absl::MutexLock lock(&mutex_);
    const storage::DeviceRecord* record = fleet_.FindDevice(name);
    if (record == nullptr) return NoDevice(name, fleet_);
    NoteState(*record, now);
    KeepStates();
  }
  OPTFARM_ASSIGN_OR_RETURN(std::vector<storage::DeviceStateRecord> states,
                           store_.ListDeviceStates(name, page));
  if (project.has_value()) {
    for (storage::DeviceStateRecord& state : states) {
      state.reason = PublicReason(state);
    }
  }
  return states;
}

absl::StatusOr<v1::Device> Scheduler::ChangeDevice(
    const v1::ChangeDeviceRequest& change, absl::Time now) {
  v1::Device device;
  {
    absl::MutexLock lock(&mutex_);
    if (fleet_.FindDevice(change.name()) == nullptr) {
      return NoDevice(change.name(), fleet_);
    }
    OPTFARM_ASSIGN_OR_RETURN(const storage::DeviceRecord next,
                             fleet_.Changed(change, now));
    storage::WriteBatch batch;
    batch.devices.push_back(next);
    OPTFARM_RETURN_IF_ERROR(
        Annotate(store_.Commit(batch), "changing the device"));
    fleet_.Replace(next);
    NoteState(next, now);
    device = DescribeDevice(next, now, std::nullopt);
  }
  LogInfo("device ", change.name(), ": ",
          v1::ChangeDeviceRequest::Change_Name(change.change()));
  if (listener_) listener_(DeviceIsFree(change.name()));
  return device;
}

absl::Status Scheduler::CheckUnused(const storage::DeviceRecord& record,
                                    absl::Time now) {
  const std::string& name = record.info.name();
  const absl::Duration silence = now - record.last_seen;
  if (record.change.change() != v1::ChangeDeviceRequest::RETIRE &&
      silence <= options_.offline_after) {
    return absl::FailedPreconditionError(absl::StrCat(
        "deleting the device ", name, ": its agent ", record.agent,
        " reported it ",
        absl::FormatDuration(absl::Trunc(silence, absl::Seconds(1))),
        " ago; stop the agent, or take the device out of its configuration, "
        "and retire it (optctl devices retire ",
        name, ")"));
  }
  // What jobs may ask for that only this device offers.
  absl::flat_hash_set<std::string> only_here;
  for (std::string& way : WaysToAskFor(record.info)) {
    if (fleet_.DevicesFor(way).size() == 1) only_here.insert(std::move(way));
  }
  const TaskRef* leased = index_.LeasedOnDevice(name);
  std::string job_id = leased == nullptr ? "" : leased->job_id;
  for (const auto& [id, job] : jobs_) {
    if (!job_id.empty()) break;
    for (const LiveTask& task : job.tasks) {
      if (!HasEnded(task.record.state) &&
          only_here.contains(task.record.device)) {
        job_id = id;
      }
    }
  }
  if (job_id.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("deleting the device ", name, ": the job ", job_id,
                   leased == nullptr ? " waits for it" : " is measured on it",
                   "; wait until it has ended, or cancel it"));
}

absl::StatusOr<v1::Device> Scheduler::DeleteDevice(const std::string& name,
                                                   absl::Time now) {
  v1::Device device;
  {
    absl::MutexLock lock(&mutex_);
    const storage::DeviceRecord* record = fleet_.FindDevice(name);
    if (record == nullptr) return NoDevice(name, fleet_);
    OPTFARM_RETURN_IF_ERROR(CheckUnused(*record, now));
    device = DescribeDevice(*record, now, std::nullopt);
    storage::WriteBatch batch;
    batch.deleted_devices.push_back(name);
    OPTFARM_RETURN_IF_ERROR(
        Annotate(store_.Commit(batch), "deleting the device"));
    fleet_.Forget(name);
    states_.Forget(name);
    states_due_.Erase(name);
  }
  LogInfo("device ", name, " is deleted");
  if (listener_) listener_(DeviceIsFree(name));
  return device;
}

}  // namespace optfarm::server
