// A wire between a server and those who call it that can be cut: passes the
// bytes of TCP connections on, in both directions.

#ifndef OPTFARM_TESTS_INTEGRATION_CUT_PROXY_H_
#define OPTFARM_TESTS_INTEGRATION_CUT_PROXY_H_

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <set>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"

namespace optfarm::integration {

class CutProxy {
 public:
  // `target`: 127.0.0.1:PORT.
  explicit CutProxy(const std::string& target)
      : target_(Loopback(target)),
        listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const sockaddr_in any = Loopback("127.0.0.1:0");
    ::bind(listener_, reinterpret_cast<const sockaddr*>(&any), sizeof(any));
    ::listen(listener_, 128);
    acceptor_ = std::thread([this] { AcceptAll(); });
  }
  ~CutProxy() {
    ::shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    ::close(listener_);
    Cut();
    // The threads of connections end with them.
    absl::MutexLock lock(&mutex_);
    const auto none = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      return threads_ == 0;
    };
    mutex_.Await(absl::Condition(&none));
  }

  std::string address() const {
    sockaddr_in address = {};
    socklen_t size = sizeof(address);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    return absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  }

  // Breaks all connections off; new ones are taken. Returns how many.
  int Cut() {
    absl::MutexLock lock(&mutex_);
    for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
    return static_cast<int>(sockets_.size() / 2);
  }

 private:
  static sockaddr_in Loopback(const std::string& target) {
    int port = 0;
    EXPECT_TRUE(absl::SimpleAtoi(target.substr(target.rfind(':') + 1), &port));
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }

  void AcceptAll() {
    while (true) {
      const int near = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (near < 0) return;
      const int far = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (::connect(far, reinterpret_cast<const sockaddr*>(&target_),
                    sizeof(target_)) != 0) {
        ::close(far);
        ::close(near);
        continue;
      }
      {
        absl::MutexLock lock(&mutex_);
        sockets_.insert({near, far});
        ++threads_;
      }
      std::thread([this, near, far] { Serve(near, far); }).detach();
    }
  }

  void Serve(int near, int far) {
    std::thread back([near, far] { Pass(far, near); });
    Pass(near, far);
    back.join();
    absl::MutexLock lock(&mutex_);
    for (const int socket : {near, far}) {
      sockets_.erase(socket);
      ::close(socket);
    }
    --threads_;
  }

  // Until either end is gone; then neither is of use.
  static void Pass(int from, int to) {
    char bytes[16384];
    ssize_t n;
    while ((n = ::recv(from, bytes, sizeof(bytes), 0)) > 0) {
      for (ssize_t done = 0; done < n;) {
        const ssize_t sent = ::send(
            to, bytes + done, static_cast<size_t>(n - done), MSG_NOSIGNAL);
        if (sent <= 0) {
          n = 0;
          break;
        }
        done += sent;
      }
      if (n == 0) break;
    }
    ::shutdown(from, SHUT_RDWR);
    ::shutdown(to, SHUT_RDWR);
  }

  const sockaddr_in target_;
  const int listener_;
  std::thread acceptor_;
  absl::Mutex mutex_;
  std::set<int> sockets_ ABSL_GUARDED_BY(mutex_);
  int threads_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace optfarm::integration

#endif  // OPTFARM_TESTS_INTEGRATION_CUT_PROXY_H_
