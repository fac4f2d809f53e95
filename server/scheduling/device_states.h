// Notices when devices come into another state, so that it can be kept. The
// scheduler writes what is noted with its next change, and before anybody reads
// a history.

#ifndef OPTFARM_SERVER_SCHEDULING_DEVICE_STATES_H_
#define OPTFARM_SERVER_SCHEDULING_DEVICE_STATES_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "server/scheduling/device_view.h"
#include "storage/records.h"

namespace optfarm::server {

// THREADS: one thread at a time.
class DeviceStates {
 public:
  // What each device was in last.
  void Load(std::vector<storage::DeviceStateRecord> latest);

  // Notes how a device is, if that is another state than before. Another
  // reason alone counts where it tells of another event: while a device cools
  // down or is busy the words change all the time. Returns whether it did.
  bool Note(const std::string& device, const StateAndReason& state,
            absl::Time now);

  // The device is deleted.
  void Forget(const std::string& device);

  // What is to be written, oldest first; at most 10000, the newest.
  const std::vector<storage::DeviceStateRecord>& unwritten() const {
    return unwritten_;
  }
  // It is durable.
  void Written() { unwritten_.clear(); }

 private:
  struct Last {
    v1::Device::State state = v1::Device::STATE_UNSPECIFIED;
    std::string reason;
  };

  absl::flat_hash_map<std::string, Last> last_;
  std::vector<storage::DeviceStateRecord> unwritten_;
};

// A reason as those see it who do not see all projects: what failed on the
// device may be another project's, names and paths in its words too.
std::string PublicReason(const storage::DeviceStateRecord& state);

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SCHEDULING_DEVICE_STATES_H_
