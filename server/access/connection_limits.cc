#include "server/access/connection_limits.h"

#include <utility>

namespace optfarm::server {

bool ConnectionLimits::Enter(int socket, const std::string& peer,
                             const std::string& name) {
  absl::MutexLock lock(&mutex_);
  const int of_peer = CountOf(peer);
  bool room = true;
  if (of_peer >= options_.max_per_peer) {
    room = MakeRoom(&peer);
  } else if (staying_ >= options_.max_connections) {
    room = MakeRoom(nullptr) ||
           (of_peer == 0 &&
            staying_ < options_.max_connections + options_.reserved);
  }
  if (!room) return false;
  Entry& entry = by_socket_[socket];
  entry.number = ++counter_;
  entry.connection = Connection();
  entry.connection.peer = peer;
  entry.connection.name = name;
  order_[entry.number] = socket;
  by_name_[name] = socket;
  ++of_peer_[peer];
  ++staying_;
  return true;
}

void ConnectionLimits::NoteToken(absl::string_view name) {
  absl::MutexLock lock(&mutex_);
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return;
  by_socket_.at(found->second).connection.has_token = true;
}

void ConnectionLimits::Leave(int socket) {
  absl::MutexLock lock(&mutex_);
  const auto found = by_socket_.find(socket);
  if (found == by_socket_.end()) return;
  const Connection& connection = found->second.connection;
  if (!connection.leaving) Uncount(connection);
  // A new connection may have come from the same port.
  const auto named = by_name_.find(connection.name);
  if (named != by_name_.end() && named->second == socket) {
    by_name_.erase(named);
  }
  order_.erase(found->second.number);
  by_socket_.erase(found);
}

int ConnectionLimits::size() const {
  absl::MutexLock lock(&mutex_);
  return staying_;
}

std::vector<int> ConnectionLimits::Sockets() const {
  absl::MutexLock lock(&mutex_);
  std::vector<int> sockets;
  for (const auto& [number, socket] : order_) sockets.push_back(socket);
  return sockets;
}

int ConnectionLimits::CountOf(const std::string& peer) const {
  const auto found = of_peer_.find(peer);
  return found == of_peer_.end() ? 0 : found->second;
}

void ConnectionLimits::Uncount(const Connection& connection) {
  --staying_;
  const auto found = of_peer_.find(connection.peer);
  if (--found->second == 0) of_peer_.erase(found);
}

std::optional<int> ConnectionLimits::FirstToGo(const std::string* peer) const {
  std::optional<int> first;
  int most = 0;
  for (const auto& [number, socket] : order_) {
    const Connection& one = by_socket_.at(socket).connection;
    if (one.leaving || one.has_token ||
        (peer != nullptr && one.peer != *peer)) {
      continue;
    }
    const int count = CountOf(one.peer);
    if (count <= most) continue;
    most = count;
    first = socket;
  }
  if (first.has_value()) return first;
  absl::Duration longest = options_.silent;
  for (const auto& [number, socket] : order_) {
    const Connection& one = by_socket_.at(socket).connection;
    if (one.leaving || (peer != nullptr && one.peer != *peer)) continue;
    const absl::Duration silence = silence_(socket);
    if (silence < longest) continue;
    longest = silence;
    first = socket;
  }
  return first;
}

bool ConnectionLimits::MakeRoom(const std::string* peer) {
  const std::optional<int> first = FirstToGo(peer);
  if (!first.has_value()) return false;
  Connection& one = by_socket_.at(*first).connection;
  one.leaving = true;
  Uncount(one);
  shut_(*first);
  return true;
}

}  // namespace optfarm::server
