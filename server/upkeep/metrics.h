// What the server counts about itself, in Prometheus' text format. It learns
// what happens from the scheduler's durable changes, and looks at the queue
// when it is asked.

#ifndef OPTFARM_SERVER_UPKEEP_METRICS_H_
#define OPTFARM_SERVER_UPKEEP_METRICS_H_

#include <map>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "optfarm/v1/devices.pb.h"
#include "server/scheduling/long_polls.h"
#include "server/scheduling/scheduler.h"
#include "storage/metadata_store.h"

namespace optfarm::server {

// THREADS: safe.
class Metrics {
 public:
  Metrics();
  ~Metrics();

  // A change became durable; writing it took `seconds`.
  void NoteCommit(const storage::WriteBatch& batch, absl::Duration time);

  // Everything counted so far, and how the queue, the devices and the held
  // calls are.
  std::string Text(const QueueNumbers& queue,
                   const std::map<v1::Device::State, int>& devices,
                   const LongPolls::Counts& polls);

 private:
  struct Families;

  const std::unique_ptr<Families> families_;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_UPKEEP_METRICS_H_
