// Pauses grow and are jittered; what is worth trying again is tried again.

#include "rpc/retry.h"

#include <gtest/gtest.h>

#include <vector>

namespace optfarm::rpc {
namespace {

class RetryTest : public ::testing::Test {
 protected:
  RetryOptions Options() {
    RetryOptions options;
    options.clock = &clock_;
    options.seed = 1;
    return options;
  }

  absl::Duration Elapsed() { return clock_.Now() - absl::UnixEpoch(); }

  FakeClock clock_{absl::UnixEpoch()};
};

TEST(BackoffTest, GrowsUpToTheLongestAndStartsAnew) {
  BackoffOptions options;
  options.first = absl::Seconds(1);
  options.longest = absl::Seconds(10);
  options.factor = 2;
  options.jitter = 0;
  Backoff backoff(options, 1);
  std::vector<double> seconds;
  for (int i = 0; i < 6; ++i) {
    seconds.push_back(absl::ToDoubleSeconds(backoff.Next()));
  }
  EXPECT_EQ(seconds, (std::vector<double>{1, 2, 4, 8, 10, 10}));
  backoff.Reset();
  EXPECT_EQ(backoff.Next(), absl::Seconds(1));
}

TEST(BackoffTest, JitterStaysWithinItsPart) {
  BackoffOptions options;
  options.first = absl::Seconds(10);
  options.longest = absl::Seconds(10);
  options.jitter = 0.4;
  Backoff backoff(options, 7);
  absl::Duration least = absl::InfiniteDuration();
  absl::Duration most;
  for (int i = 0; i < 1000; ++i) {
    const absl::Duration pause = backoff.Next();
    least = std::min(least, pause);
    most = std::max(most, pause);
  }
  EXPECT_GE(least, absl::Seconds(6));
  EXPECT_LE(least, absl::Seconds(6.1));
  EXPECT_LE(most, absl::Seconds(10));
  EXPECT_GE(most, absl::Seconds(9.9));
}

TEST_F(RetryTest, TriesTransientErrorsAgain) {
  int calls = 0;
  const absl::Status status = Retry(Options(), [&]() -> Attempt {
    return {++calls < 4 ? absl::UnavailableError("gone") : absl::OkStatus()};
  });
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(calls, 4);
  EXPECT_GT(Elapsed(), absl::Milliseconds(300));
}

TEST_F(RetryTest, ReturnsOtherErrorsAtOnce) {
  int calls = 0;
  const absl::Status status = Retry(Options(), [&]() -> Attempt {
    ++calls;
    return {absl::ResourceExhaustedError("disk full")};
  });
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(Elapsed(), absl::ZeroDuration());
}

TEST_F(RetryTest, TriesAgainWhatTheCallerWaitsFor) {
  RetryOptions options = Options();
  options.max_attempts = 1 << 20;
  options.give_up_after = absl::InfiniteDuration();
  options.also = [](const absl::Status& status) {
    return absl::IsResourceExhausted(status);
  };
  int calls = 0;
  // For hours.
  const absl::Status status = Retry(options, [&]() -> Attempt {
    ++calls;
    return {Elapsed() < absl::Hours(5)
                ? absl::ResourceExhaustedError("the store is full")
                : absl::OkStatus()};
  });
  EXPECT_TRUE(status.ok());
  EXPECT_GT(calls, 100);
  EXPECT_TRUE(absl::IsNotFound(
      Retry(options, [&]() -> Attempt { return {absl::NotFoundError("")}; })));
}

TEST_F(RetryTest, GivesUpAfterTheMostAttemptsAndTime) {
  RetryOptions options = Options();
  options.max_attempts = 3;
  int calls = 0;
  const auto fail = [&]() -> Attempt {
    ++calls;
    return {absl::UnavailableError("gone")};
  };
  EXPECT_TRUE(absl::IsUnavailable(Retry(options, fail)));
  EXPECT_EQ(calls, 3);
  options.max_attempts = 1000;
  options.give_up_after = absl::Seconds(30);
  const absl::Time begin = clock_.Now();
  EXPECT_TRUE(absl::IsUnavailable(Retry(options, fail)));
  EXPECT_LE(clock_.Now() - begin, absl::Seconds(30));
}

TEST_F(RetryTest, ProgressStartsTheCountAnew) {
  RetryOptions options = Options();
  options.max_attempts = 2;
  int calls = 0;
  const absl::Status status = Retry(options, [&]() -> Attempt {
    return {++calls < 20 ? absl::UnavailableError("gone") : absl::OkStatus(),
            /*progress=*/true};
  });
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(calls, 20);
}

TEST_F(RetryTest, ACancellationEndsThePause) {
  RetryOptions options = Options();
  options.backoff.first = absl::Hours(1);
  options.backoff.longest = absl::Hours(1);
  options.give_up_after = absl::InfiniteDuration();
  options.cancelled = [&] { return Elapsed() > absl::Seconds(1); };
  const absl::Status status = Retry(
      options, []() -> Attempt { return {absl::UnavailableError("gone")}; });
  EXPECT_TRUE(absl::IsCancelled(status));
  EXPECT_LT(Elapsed(), absl::Seconds(2));
}

}  // namespace
}  // namespace optfarm::rpc
