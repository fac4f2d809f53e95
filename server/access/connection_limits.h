// Which connections the gRPC door has, and which one goes when there is no room
// for another: first those over which nobody has shown a token, of the peer
// that has the most; then those that have long been silent. A few places are
// kept for peers that have no connection yet: whoever asks for the server's
// health gets one.

#ifndef OPTFARM_SERVER_ACCESS_CONNECTION_LIMITS_H_
#define OPTFARM_SERVER_ACCESS_CONNECTION_LIMITS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace optfarm::server {

// THREADS: safe.
class ConnectionLimits {
 public:
  struct Options {
    // UNITS: connections, of all peers and of one.
    int max_connections = 20000;
    int max_per_peer = 5000;
    // More, each for a peer that has none.
    int reserved = 16;
    // A connection of a token's holder that has been silent for so long may go.
    absl::Duration silent = absl::Seconds(30);
  };

  // `shut` breaks off the connection of a socket, and `silence` says for how
  // long nothing has come over it or gone. Both are called with the lock held.
  ConnectionLimits(const Options& options, std::function<void(int socket)> shut,
                   std::function<absl::Duration(int socket)> silence)
      : options_(options),
        shut_(std::move(shut)),
        silence_(std::move(silence)) {}

  // Enters a connection, for which another may be broken off. `name` is how
  // gRPC calls its other end. False: there is no room, and it is not entered.
  bool Enter(int socket, const std::string& peer, const std::string& name);
  // Somebody with a token has called over the connection of that name. Names
  // that are not known are passed over.
  void NoteToken(absl::string_view name);
  // The connection has ended. REQUIRES: its number is not yet another's.
  void Leave(int socket);

  // Of those that have room.
  int size() const;
  // All that are entered.
  std::vector<int> Sockets() const;

 private:
  struct Connection {
    std::string peer;
    std::string name;
    bool has_token = false;
    // Broken off; counts no more.
    bool leaving = false;
  };

  int CountOf(const std::string& peer) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Breaks one off, of `peer` alone if that is given. False: all are in use.
  bool MakeRoom(const std::string* peer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Among those without a token the first that came, of the peer with the most;
  // otherwise the one that is silent for longest.
  std::optional<int> FirstToGo(const std::string* peer) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Uncount(const Connection& connection)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  const std::function<void(int socket)> shut_;
  const std::function<absl::Duration(int socket)> silence_;
  mutable absl::Mutex mutex_;
  // In the order in which they came, which is that of their numbers here.
  std::map<int64_t, int> order_ ABSL_GUARDED_BY(mutex_);
  struct Entry {
    int64_t number = 0;
    Connection connection;
  };
  std::unordered_map<int, Entry> by_socket_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, int> by_name_ ABSL_GUARDED_BY(mutex_);
  // Of those that are not leaving.
  absl::flat_hash_map<std::string, int> of_peer_ ABSL_GUARDED_BY(mutex_);
  int staying_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t counter_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_ACCESS_CONNECTION_LIMITS_H_
