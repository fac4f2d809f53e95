// Looking names up within a time, whatever the system's resolver does.

#include "http/address_lookup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "tests/support/status_matchers.h"

namespace optfarm::http {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::HasSubstr;

// A resolver that answers when it is told to.
class Hanging {
 public:
  AskForAddresses Ask() {
    return [end = end_](const std::string&,
                        int) -> absl::StatusOr<std::vector<HostAddress>> {
      end->WaitForNotification();
      return std::vector<HostAddress>();
    };
  }
  void End() { end_->Notify(); }

 private:
  const std::shared_ptr<absl::Notification> end_ =
      std::make_shared<absl::Notification>();
};

TEST(AddressLookupTest, FindsAddresses) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto found,
      LookUpAddresses("127.0.0.1", 80, absl::Now() + absl::Seconds(30)));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].family, AF_INET);
}

TEST(AddressLookupTest, EndsAtItsDeadlineAndWhenItIsCancelled) {
  Hanging hanging;
  EXPECT_THAT(
      LookUpAddresses("a.test", 80, absl::Now() + absl::Milliseconds(100),
                      nullptr, hanging.Ask())
          .status(),
      StatusIs(absl::StatusCode::kDeadlineExceeded,
               HasSubstr("does not answer")));
  Cancellation cancellation;
  std::thread canceller([&] {
    absl::SleepFor(absl::Milliseconds(50));
    cancellation.Cancel();
  });
  EXPECT_THAT(LookUpAddresses("a.test", 80, absl::Now() + absl::Seconds(60),
                              &cancellation, hanging.Ask())
                  .status(),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("broken off")));
  canceller.join();
  hanging.End();
}

TEST(AddressLookupTest, LookupsThatHangAreBounded) {
  Hanging hanging;
  absl::Status last;
  for (int i = 0; i < 40; ++i) {
    last = LookUpAddresses("a.test", 80, absl::Now() + absl::Milliseconds(1),
                           nullptr, hanging.Ask())
               .status();
    if (absl::IsUnavailable(last)) break;
  }
  EXPECT_THAT(last, StatusIs(absl::StatusCode::kUnavailable,
                             HasSubstr("16 lookups hang")));
  hanging.End();
}

}  // namespace
}  // namespace optfarm::http
