// Tells systemd how a daemon is, where it asks (Type=notify, WatchdogSec=): a
// datagram to the socket that it names in NOTIFY_SOCKET. Elsewhere these do
// nothing.

#ifndef OPTFARM_BASE_SERVICE_MANAGER_H_
#define OPTFARM_BASE_SERVICE_MANAGER_H_

namespace optfarm {

// Started: what waits for this service may start. THREADS: all of these are
// safe.
void TellServiceReady();
// Still at work. A daemon that does not say so for WatchdogSec= is started
// again, so say it where work is done and not in a thread of its own.
void TellServiceAlive();
// On the way out, by a signal.
void TellServiceStopping();

}  // namespace optfarm

#endif  // OPTFARM_BASE_SERVICE_MANAGER_H_
