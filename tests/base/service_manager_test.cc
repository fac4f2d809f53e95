#include "base/service_manager.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace optfarm {
namespace {

// What systemd listens on.
class ServiceManagerTest : public ::testing::Test {
 protected:
  ServiceManagerTest()
      : name_(absl::StrCat("@optfarm-test-", ::getpid())),
        fd_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name_.data() + 1, name_.size() - 1);
    EXPECT_EQ(::bind(fd_, reinterpret_cast<const sockaddr*>(&address),
                     static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) +
                                            name_.size())),
              0);
    ::setenv("NOTIFY_SOCKET", name_.c_str(), 1);
  }
  ~ServiceManagerTest() override {
    ::unsetenv("NOTIFY_SOCKET");
    ::close(fd_);
  }

  // "" when nothing has come.
  std::string Heard() const {
    char text[64];
    const ssize_t n = ::recv(fd_, text, sizeof(text), MSG_DONTWAIT);
    return n < 0 ? "" : std::string(text, static_cast<size_t>(n));
  }

  const std::string name_;
  const int fd_;
};

TEST_F(ServiceManagerTest, HearsWhatItIsTold) {
  TellServiceReady();
  EXPECT_EQ(Heard(), "READY=1");
  TellServiceAlive();
  EXPECT_EQ(Heard(), "WATCHDOG=1");
  TellServiceStopping();
  EXPECT_EQ(Heard(), "STOPPING=1");
}

TEST_F(ServiceManagerTest, WithoutOneNothingIsSaid) {
  ::unsetenv("NOTIFY_SOCKET");
  TellServiceReady();
  ::setenv("NOTIFY_SOCKET", name_.substr(1).c_str(), 1);
  TellServiceReady();
  ::setenv("NOTIFY_SOCKET", std::string(300, '/').c_str(), 1);
  TellServiceReady();
  EXPECT_EQ(Heard(), "");
}

// The numbers are those of the socket: nothing here depends on how long it all
// takes.
TEST_F(ServiceManagerTest, AStartThatWorksGetsMoreTime) {
  std::string heard;
  {
    const ServiceStart start(absl::Milliseconds(20));
    while (heard.empty()) heard = Heard();
  }
  EXPECT_EQ(heard, "EXTEND_TIMEOUT_USEC=120000");
}

TEST_F(ServiceManagerTest, AStartThatHangsDoesNot) {
  const ServiceStart start(absl::Milliseconds(100));
  // Pages of this program may still be read.
  bool heard = true;
  for (int i = 0; i < 100 && heard; ++i) {
    while (!Heard().empty()) continue;
    absl::SleepFor(absl::Milliseconds(500));
    heard = !Heard().empty();
  }
  EXPECT_FALSE(heard);
}

}  // namespace
}  // namespace optfarm
