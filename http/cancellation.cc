#include "http/cancellation.h"

#include <sys/socket.h>

namespace optfarm::http {

void Cancellation::Cancel() {
  absl::MutexLock lock(&mutex_);
  cancelled_ = true;
  for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
}

bool Cancellation::cancelled() const {
  absl::MutexLock lock(&mutex_);
  return cancelled_;
}

Cancellation::Watch::Watch(Cancellation* cancellation, int socket)
    : cancellation_(cancellation), socket_(socket) {
  if (cancellation_ == nullptr) return;
  absl::MutexLock lock(&cancellation_->mutex_);
  cancellation_->sockets_.insert(socket_);
  if (cancellation_->cancelled_) ::shutdown(socket_, SHUT_RDWR);
}

Cancellation::Watch::~Watch() {
  if (cancellation_ == nullptr) return;
  absl::MutexLock lock(&cancellation_->mutex_);
  cancellation_->sockets_.erase(socket_);
}

}  // namespace optfarm::http
