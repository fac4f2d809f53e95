#include "server/delivery/event_hub.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "tests/support/status_matchers.h"

namespace optfarm::server {
namespace {

using ::optfarm::testing::IsOk;
using ::testing::HasSubstr;

// Stays in OnNews until it is let go.
class SlowWatcher : public JobWatcher {
 public:
  void OnNews() override {
    absl::MutexLock lock(&mutex_);
    ++news_;
    mutex_.Await(absl::Condition(&free_));
  }
  void OnClose() override { closed.Notify(); }

  void Free() {
    absl::MutexLock lock(&mutex_);
    free_ = true;
  }
  // Waits until it has heard so often.
  void Await(int news) {
    absl::MutexLock lock(&mutex_);
    const auto heard = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return news_ >= news;
    };
    mutex_.Await(absl::Condition(&heard));
  }
  int news() {
    absl::MutexLock lock(&mutex_);
    return news_;
  }

  absl::Notification closed;

 private:
  absl::Mutex mutex_;
  int news_ ABSL_GUARDED_BY(mutex_) = 0;
  bool free_ ABSL_GUARDED_BY(mutex_) = false;
};

TEST(EventHubTest, WhoMakesEventsDoesNotWaitForWhoWatches) {
  EventHub hub({});
  const auto slow = std::make_shared<SlowWatcher>();
  ASSERT_THAT(hub.Subscribe("a", "job", slow), IsOk());
  hub.Notify({"job"});
  slow->Await(1);
  // It hangs in OnNews, and this returns all the same: a hundred news are one.
  for (int i = 0; i < 100; ++i) hub.Notify({"job", "other"});
  EXPECT_EQ(slow->news(), 1);
  slow->Free();
  slow->Await(2);
  hub.Unsubscribe("job", slow.get());
}

TEST(EventHubTest, AProjectLeavesRoomForOthers) {
  EventHub hub({.max_watchers = 3, .max_of_project = 2});
  std::vector<std::shared_ptr<SlowWatcher>> watchers;
  const auto subscribe = [&](const std::string& project) {
    watchers.push_back(std::make_shared<SlowWatcher>());
    return hub.Subscribe(project, "job", watchers.back());
  };
  EXPECT_THAT(subscribe("a"), IsOk());
  EXPECT_THAT(subscribe("a"), IsOk());
  const absl::Status refused = subscribe("a");
  EXPECT_TRUE(absl::IsUnavailable(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("2 of them"));
  EXPECT_THAT(subscribe("b"), IsOk());
  EXPECT_TRUE(absl::IsUnavailable(subscribe("b")));
  hub.Unsubscribe("job", watchers[0].get());
  hub.Unsubscribe("job", watchers[0].get());
  EXPECT_THAT(subscribe("a"), IsOk());
  hub.Close();
  EXPECT_TRUE(watchers[1]->closed.HasBeenNotified());
  EXPECT_TRUE(absl::IsUnavailable(subscribe("c")));
}

}  // namespace
}  // namespace optfarm::server
