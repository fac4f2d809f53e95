// Tells systemd how a daemon is, where it asks (Type=notify, WatchdogSec=): a
// datagram to the socket that it names in NOTIFY_SOCKET. Elsewhere these do
// nothing.

#ifndef OPTFARM_BASE_SERVICE_MANAGER_H_
#define OPTFARM_BASE_SERVICE_MANAGER_H_

#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

namespace optfarm {

// Started: what waits for this service may start. THREADS: all of these are
// safe.
void TellServiceReady();
// Still at work. A daemon that does not say so for WatchdogSec= is started
// again, so say it where work is done and not in a thread of its own.
void TellServiceAlive();
// On the way out, by a signal.
void TellServiceStopping();

// While it is there, a daemon that starts gets more time, as long as its
// process works: uses the processor or moves data. One that hangs is given up
// by the service manager after the time that it has. THREADS: it has one, where
// there is a service manager.
class ServiceStart {
 public:
  explicit ServiceStart(absl::Duration between_looks = absl::Seconds(10));
  ServiceStart(const ServiceStart&) = delete;
  ServiceStart& operator=(const ServiceStart&) = delete;
  ~ServiceStart();

 private:
  void Watch(absl::Duration between_looks);

  absl::Notification ended_;
  std::thread thread_;
};

}  // namespace optfarm

#endif  // OPTFARM_BASE_SERVICE_MANAGER_H_
