// The gRPC door's own accepting of connections: real sockets on loopback.

#include "server/grpc_listener.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/numbers.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "tests/support/status_matchers.h"

namespace optfarm::server {
namespace {

class GrpcListenerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    OPTFARM_ASSERT_OK_AND_ASSIGN(listener_,
                                 GrpcListener::Listen("127.0.0.1:0", {}));
    listener_->Start([this](int, int socket) {
      absl::MutexLock lock(&mutex_);
      taken_.push_back(socket);
    });
  }
  void TearDown() override {
    listener_->Stop();
    for (const int fd : clients_) ::close(fd);
    absl::MutexLock lock(&mutex_);
    for (const int fd : taken_) ::close(fd);
  }

  // A new connection; its place among those that the listener handed on.
  size_t Connect() {
    const std::string& address = listener_->address();
    int port = 0;
    EXPECT_TRUE(
        absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
    sockaddr_in at = {};
    at.sin_family = AF_INET;
    at.sin_port = htons(static_cast<uint16_t>(port));
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    clients_.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(clients_.back(), reinterpret_cast<const sockaddr*>(&at),
                        sizeof(at)),
              0);
    absl::MutexLock lock(&mutex_);
    const size_t place = clients_.size() - 1;
    const auto is_taken = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return taken_.size() > place;
    };
    EXPECT_TRUE(
        mutex_.AwaitWithTimeout(absl::Condition(&is_taken), absl::Minutes(1)));
    return place;
  }
  int Taken(size_t place) {
    absl::MutexLock lock(&mutex_);
    return taken_.at(place);
  }
  void AwaitConnections(int count) {
    const absl::Time end = absl::Now() + absl::Minutes(1);
    while (listener_->connections() != count && absl::Now() < end) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    EXPECT_EQ(listener_->connections(), count);
  }

  std::unique_ptr<GrpcListener> listener_;
  std::vector<int> clients_;
  absl::Mutex mutex_;
  std::vector<int> taken_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(GrpcListenerTest, ConnectionsAreCountedUntilTheirEnd) {
  Connect();
  const size_t second = Connect();
  AwaitConnections(2);
  ::shutdown(clients_[second], SHUT_RDWR);
  AwaitConnections(1);
}

// What has half ended is known by a descriptor whose number the next one gets;
// its whole end must not be taken for that one's.
TEST_F(GrpcListenerTest, TheEndOfOneIsNotTakenForTheEndOfTheNext) {
  const size_t first = Connect();
  AwaitConnections(1);
  ::shutdown(clients_[first], SHUT_WR);
  AwaitConnections(0);
  Connect();
  AwaitConnections(1);
  ::shutdown(Taken(first), SHUT_RDWR);
  Connect();
  AwaitConnections(2);
}

}  // namespace
}  // namespace optfarm::server
