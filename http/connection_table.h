// Which connections there are, and which one goes when there is no room for
// another: an idle one first, of the peer that has the most. Those that carry
// requests stay; a few places are kept for questions about health.

#ifndef OPTFARM_HTTP_CONNECTION_TABLE_H_
#define OPTFARM_HTTP_CONNECTION_TABLE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace optfarm::http {

// THREADS: safe.
class ConnectionTable {
 public:
  struct Options {
    // UNITS: connections, of all peers and of one.
    int max_connections = 512;
    int max_per_peer = 256;
    // More that are answered about health alone.
    int reserved = 16;
  };

  enum class Place { kFull, kHealthOnly, kNone };

  // `shut` breaks off the connection of a socket, which leaves soon after; it
  // is called with the table's lock held.
  ConnectionTable(const Options& options, std::function<void(int socket)> shut)
      : options_(options), shut_(std::move(shut)) {}

  // Finds a place for a new connection, which is idle. kNone: there is none,
  // and the connection is not in the table.
  Place Enter(int socket, const std::string& peer);
  // A request has come, or is answered.
  void SetBusy(int socket, bool busy);
  // The connection has ended. REQUIRES: its number is not yet another's.
  void Leave(int socket);

  // Does something with each socket, under the lock.
  void ForEach(const std::function<void(int socket)>& act);

 private:
  struct Connection {
    std::string peer;
    bool health_only = false;
    bool busy = false;
    // Broken off, and about to leave.
    bool leaving = false;
    // Counts up: when it was last busy, or came.
    int64_t since = 0;
  };

  // The idle connection that goes first among those with this place; of
  // `peer` alone if that is given.
  std::optional<int> FirstToGo(bool health_only, const std::string* peer) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes room by breaking off an idle connection. False: all are busy.
  bool MakeRoom(bool health_only, const std::string* peer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int CountOf(bool health_only, const std::string* peer) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  const std::function<void(int socket)> shut_;
  absl::Mutex mutex_;
  // By socket.
  std::map<int, Connection> connections_ ABSL_GUARDED_BY(mutex_);
  int64_t counter_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace optfarm::http

#endif  // OPTFARM_HTTP_CONNECTION_TABLE_H_
