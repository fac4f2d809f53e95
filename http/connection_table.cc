#include "http/connection_table.h"

#include <tuple>

namespace optfarm::http {
namespace {

// UNITS: connections that were broken off and whose threads still end.
constexpr int kMostLeaving = 64;

}  // namespace

int ConnectionTable::CountOf(bool health_only, const std::string* peer) const {
  int count = 0;
  for (const auto& [socket, one] : connections_) {
    count += !one.leaving && one.health_only == health_only &&
             (peer == nullptr || one.peer == *peer);
  }
  return count;
}

std::optional<int> ConnectionTable::FirstToGo(bool health_only,
                                              const std::string* peer) const {
  std::map<std::string, int> of_peer;
  for (const auto& [socket, one] : connections_) {
    if (!one.leaving) ++of_peer[one.peer];
  }
  std::optional<int> first;
  std::tuple<int, int64_t> rank;
  for (const auto& [socket, one] : connections_) {
    if (one.leaving || one.busy || one.health_only != health_only ||
        (peer != nullptr && one.peer != *peer)) {
      continue;
    }
    const std::tuple<int, int64_t> its{-of_peer[one.peer], one.since};
    if (first.has_value() && rank <= its) continue;
    first = socket;
    rank = its;
  }
  return first;
}

bool ConnectionTable::MakeRoom(bool health_only, const std::string* peer) {
  int leaving = 0;
  for (const auto& [socket, one] : connections_) leaving += one.leaving;
  const std::optional<int> first = FirstToGo(health_only, peer);
  if (!first.has_value() || leaving >= kMostLeaving) return false;
  connections_.at(*first).leaving = true;
  shut_(*first);
  return true;
}

ConnectionTable::Place ConnectionTable::Enter(int socket,
                                              const std::string& peer) {
  absl::MutexLock lock(&mutex_);
  bool full = true;
  if (CountOf(false, &peer) >= options_.max_per_peer) {
    full = MakeRoom(false, &peer);
  } else if (CountOf(false, nullptr) >= options_.max_connections) {
    full = MakeRoom(false, nullptr);
  }
  if (!full && CountOf(true, nullptr) >= options_.reserved &&
      !MakeRoom(true, nullptr)) {
    return Place::kNone;
  }
  Connection& one = connections_[socket];
  one = Connection();
  one.peer = peer;
  one.health_only = !full;
  one.since = ++counter_;
  return full ? Place::kFull : Place::kHealthOnly;
}

void ConnectionTable::SetBusy(int socket, bool busy) {
  absl::MutexLock lock(&mutex_);
  Connection& one = connections_.at(socket);
  one.busy = busy;
  one.since = ++counter_;
}

void ConnectionTable::Leave(int socket) {
  absl::MutexLock lock(&mutex_);
  connections_.erase(socket);
}

void ConnectionTable::ForEach(const std::function<void(int socket)>& act) {
  absl::MutexLock lock(&mutex_);
  for (const auto& [socket, one] : connections_) act(socket);
}

}  // namespace optfarm::http
