#include "engine/runtime/core/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <thread>
#include <vector>

namespace optfarm::runtime {
namespace {

TEST(ThreadPoolTest, EveryItemIsVisitedOnce) {
  for (int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    for (int64_t count : {0, 1, 7, 1000}) {
      std::vector<std::atomic<int>> visits(static_cast<size_t>(count));
      pool.ParallelFor(count, 3, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) ++visits[i];
      });
      for (const auto& v : visits) EXPECT_EQ(v, 1);
    }
  }
}

TEST(ThreadPoolTest, ManyCallersShareOnePool) {
  ThreadPool pool(3);
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        pool.ParallelFor(
            64, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, 4 * 200 * 64);
}

TEST(ThreadPoolTest, RangesDifferByOneItemAtMost) {
  ThreadPool pool(2);
  // Grains are reached, and each thread can have as many ranges as the other.
  for (int64_t count : {7, 10, 28, 1000}) {
    std::atomic<int64_t> least{count}, most{0}, ranges{0};
    pool.ParallelFor(count, 2, [&](int64_t begin, int64_t end) {
      const int64_t size = end - begin;
      int64_t seen = least;
      while (size < seen && !least.compare_exchange_weak(seen, size)) {
      }
      seen = most;
      while (size > seen && !most.compare_exchange_weak(seen, size)) {
      }
      ++ranges;
    });
    EXPECT_GE(least, 2) << count;
    EXPECT_LE(most - least, 1) << count;
    EXPECT_EQ(ranges % 2, 0) << count;
  }
}

TEST(ThreadPoolTest, CallersBeyondThoseItHelpsAreServed) {
  ThreadPool pool(2);
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 24; ++c) {
    callers.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        pool.ParallelFor(
            64, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, 24 * 50 * 64);
}

TEST(ThreadPoolTest, HelpersThatSleptWakeUp) {
  ThreadPool pool(2);
  for (int round = 0; round < 20; ++round) {
    // Both threads are needed: each waits for the other.
    std::atomic<int> here{0};
    pool.ParallelFor(2, 1, [&](int64_t, int64_t) {
      ++here;
      while (here < 2) std::this_thread::yield();
    });
    EXPECT_EQ(here, 2);
  }
}

TEST(ThreadPoolTest, WhatABodyThrowsIsTheCallers) {
  for (int threads : {1, 4}) {
    ThreadPool pool(threads);
    std::atomic<int> visits{0};
    EXPECT_THROW(pool.ParallelFor(64, 1,
                                  [&](int64_t begin, int64_t end) {
                                    ++visits;
                                    if (begin == 0) throw std::bad_alloc();
                                  }),
                 std::bad_alloc);
    EXPECT_GE(visits, 1);
    // The pool goes on.
    std::atomic<int64_t> sum{0};
    pool.ParallelFor(64, 1,
                     [&](int64_t begin, int64_t end) { sum += end - begin; });
    EXPECT_EQ(sum, 64);
  }
}

// A thread that is between looking whether to stop and looking for work when it
// is told to stop must not sleep for good.
TEST(ThreadPoolTest, EndsWhateverItsThreadsAreAboutToDo) {
  constexpr int kPools = 3000;
  std::atomic<int64_t> sum{0};
  for (int round = 0; round < kPools; ++round) {
    ThreadPool pool(2);
    // Its thread sees the last of this when it ends, or just before.
    for (int i = 0; i < round % 4; ++i) {
      pool.ParallelFor(2, 1,
                       [&](int64_t begin, int64_t end) { sum += end - begin; });
    }
  }
  EXPECT_EQ(sum, kPools / 4 * (1 + 2 + 3) * 2);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(ThreadPoolDeathTest, WorksWithoutThreadsOfItsOwn) {
  const auto run = [] {
    // Room for ordinary memory, not for stacks.
    const rlimit limit = {64 << 20, 64 << 20};
    setrlimit(RLIMIT_DATA, &limit);
    ThreadPool pool(200);
    std::atomic<int64_t> sum{0};
    pool.ParallelFor(64, 1,
                     [&](int64_t begin, int64_t end) { sum += end - begin; });
    std::exit(sum == 64 ? 0 : 1);
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(0), "");
}
#endif

}  // namespace
}  // namespace optfarm::runtime
