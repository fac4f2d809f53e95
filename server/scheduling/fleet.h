// Who works for the server: the processes that call Synchronize and the devices
// that agents bring. Kept in memory; what must survive a restart goes into the
// batch of the call that told it.

#ifndef OPTFARM_SERVER_SCHEDULING_FLEET_H_
#define OPTFARM_SERVER_SCHEDULING_FLEET_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "optfarm/v1/work.pb.h"
#include "storage/metadata_store.h"

namespace optfarm::server {

// Checks everything about a call that can be checked without knowing the jobs.
// ERRORS: InvalidArgument naming the field.
absl::Status CheckSynchronizeRequest(const v1::SynchronizeRequest& request);

// What a change to the fleet replaced, so that it can be undone where it could
// not be made durable. By name; empty: there was none.
struct FleetBefore {
  std::map<std::string, std::optional<storage::DeviceRecord>> devices;
  std::map<std::string, absl::Time> devices_written;
  std::map<std::string, absl::Time> participants_written;
  std::map<std::string, std::optional<v1::Recipe>> recipes;
};

// THREADS: one thread at a time.
class Fleet {
 public:
  void Load(std::vector<storage::DeviceRecord> devices,
            std::vector<v1::Recipe> recipes);

  // Takes in who called and adds to `batch` what is new, or older there than a
  // minute. Of two agents that bring one device the later caller has it.
  // REQUIRES: the request has been checked.
  void TakeIn(const v1::SynchronizeRequest& request, absl::Time now,
              storage::WriteBatch& batch, FleetBefore& before);

  // Notes that a caller whose call has been taken in waits for its answer.
  void NoteStillThere(const v1::SynchronizeRequest& request, absl::Time now);

  // Notes how an attempt on a device ended. Several that failed in a row by the
  // farm's fault put it into quarantine, each time for longer.
  void NoteOutcome(const std::string& device, bool ok, absl::string_view reason,
                   absl::Time now, storage::WriteBatch& batch,
                   FleetBefore& before);

  // Makes what was changed as it was. That somebody called stays known.
  void Undo(FleetBefore before);

  // Neither an operator nor a quarantine forbids it.
  bool MayWork(const std::string& device, absl::Time now) const;

  // The tag of the jobs that alone may have the device now, which no job bears
  // if it is empty; none where all may.
  std::optional<std::string> ReservedFor(const std::string& device,
                                         absl::Time now) const;

  // Names of the devices that a job which asks so (see device_choice.h) can
  // ever get.
  const absl::btree_set<std::string>& DevicesFor(
      const std::string& asked) const;
  // Whether one of them has the engine.
  bool HasEngineFor(const std::string& asked, const std::string& engine) const;
  // All that have it.
  std::vector<std::string> DevicesWithEngine(const std::string& engine) const;

  // Logs that a device began or ceased to be missed (see MissingAlert).
  void LogAlert(const storage::DeviceRecord& device, absl::Duration alert_after,
                absl::Time now);

  // A known device as it is after an operator's change.
  // ERRORS: InvalidArgument.
  absl::StatusOr<storage::DeviceRecord> Changed(
      const v1::ChangeDeviceRequest& change, absl::Time now) const;
  void Replace(storage::DeviceRecord device);
  // REQUIRES: `device` is no reference into the fleet.
  void Forget(const std::string& device);

  // Those of a kind that have called since.
  int CountParticipants(v1::SynchronizeRequest::Kind kind,
                        absl::Time since) const;

  // Those that have called since, in any order.
  std::vector<storage::ParticipantRecord> Participants(absl::Time since) const;

  // Null when there is no such device.
  const storage::DeviceRecord* FindDevice(const std::string& name) const;
  std::vector<std::string> DeviceNames() const;
  // All that jobs may ask for (see device_choice.h).
  std::vector<std::string> WaysToAskForDevices() const;
  const std::map<std::string, storage::DeviceRecord>& devices() const {
    return devices_;
  }

  // Null when no worker offers it.
  const v1::Recipe* FindRecipe(const std::string& name) const;
  std::vector<std::string> RecipeNames() const;

  // Version of the worker that called last; empty before any did.
  const std::string& worker_version() const { return worker_version_; }

 private:
  struct Participant {
    storage::ParticipantRecord record;
    absl::Time written = absl::InfinitePast();
  };

  void TakeInDevice(const v1::SynchronizeRequest& request,
                    const v1::DeviceStatus& status, absl::Time now,
                    storage::WriteBatch& batch, FleetBefore& before);
  void KeepDevice(const std::string& name, FleetBefore& before) const;
  void Erase(const std::string& device);
  void ForgetSilent(absl::Time now);

  absl::flat_hash_map<std::string, Participant> participants_;
  // When those who are silent were forgotten last.
  absl::Time forgot_ = absl::InfinitePast();
  std::map<std::string, storage::DeviceRecord> devices_;
  // Names of devices by what jobs may ask for.
  absl::flat_hash_map<std::string, absl::btree_set<std::string>> by_way_;
  absl::flat_hash_map<std::string, absl::Time> devices_written_;
  // Devices whose alert has been logged.
  absl::flat_hash_set<std::string> missed_;
  std::map<std::string, v1::Recipe> recipes_;
  std::string worker_version_;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SCHEDULING_FLEET_H_
