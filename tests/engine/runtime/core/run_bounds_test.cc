// A run that is to end ends within a kernel too, and what kernels take for
// their work counts before it is taken.

#include "engine/runtime/core/run_bounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "absl/synchronization/notification.h"
#include "base/clock.h"
#include "engine/runtime/core/counted_vector.h"
#include "engine/runtime/core/memory_budget.h"
#include "engine/runtime/core/scratch.h"
#include "engine/runtime/core/thread_pool.h"
#include "engine/runtime/session/session.h"
#include "tests/engine/runtime/graph_maker.h"
#include "tests/engine/runtime/run_op.h"
#include "tests/support/status_matchers.h"
#include "tests/support/ticking_clock.h"

namespace optfarm::runtime {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::HasSubstr;

constexpr auto kFloat = tensorflow::DT_FLOAT;

TEST(RunBoundsTest, SayWhatEndsTheRun) {
  std::atomic<bool> cancelled{false};
  const RunBounds flag(&cancelled, absl::InfiniteDuration());
  OPTFARM_ASSERT_OK(flag.Check());
  cancelled = true;
  EXPECT_THAT(flag.Check(),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("cancelled")));
  FakeClock clock(absl::UnixEpoch());
  const RunBounds time(nullptr, absl::Seconds(2), &clock);
  OPTFARM_ASSERT_OK(time.Check());
  clock.Advance(absl::Seconds(2));
  OPTFARM_ASSERT_OK(time.Check());
  clock.Advance(absl::Nanoseconds(1));
  EXPECT_THAT(time.Check(), StatusIs(absl::StatusCode::kDeadlineExceeded,
                                     HasSubstr("limit of 2s")));
  EXPECT_FALSE(RunBounds(nullptr, absl::InfiniteDuration()).is_bounded());
}

TEST(RunBoundsTest, AParallelForStopsBetweenRanges) {
  for (int threads : {1, 3}) {
    ThreadPool pool(threads);
    std::atomic<bool> cancelled{false};
    const RunBounds bounds(&cancelled, absl::InfiniteDuration());
    const BoundsScope scope(&bounds);
    std::atomic<int64_t> items{0};
    EXPECT_THROW(pool.ParallelFor(1000000, 10,
                                  [&](int64_t begin, int64_t end) {
                                    items += end - begin;
                                    cancelled = true;
                                  }),
                 RunEnded)
        << threads;
    // 1563 ranges of 639 or 640.
    EXPECT_GE(items, 639);
    EXPECT_LE(items, 640 * threads);
  }
}

TEST(RunBoundsTest, HelpingThreadsStandUnderTheCallersBounds) {
  ThreadPool pool(4);
  const auto budget = std::make_shared<MemoryBudget>(1 << 20);
  const BudgetScope budget_scope(budget);
  const RunBounds bounds(nullptr, absl::InfiniteDuration());
  const BoundsScope scope(&bounds);
  ScratchPool scratch;
  const ScratchScope scratch_scope(&scratch);
  std::atomic<int> right{0};
  pool.ParallelFor(64, 1, [&](int64_t begin, int64_t end) {
    if (BoundsScope::Current() == &bounds &&
        ScratchScope::Current() == &scratch &&
        BudgetScope::Current()->get() == budget.get()) {
      right += static_cast<int>(end - begin);
    }
  });
  EXPECT_EQ(right, 64);
}

// One convolution of 10^12 multiply-adds.
GraphMaker HugeConvolution() {
  GraphMaker g;
  g.Placeholder("go", kFloat);
  g.Node("print", "Print", {"go", "go"}).Type("T", kFloat).Types("U", {kFloat});
  g.Const("image_size", Ints({1, 256, 256, 128}));
  g.Const("filter_size", Ints({31, 31, 128, 128}));
  g.Node("image", "Fill", {"image_size", "print"}).Type("T", kFloat);
  g.Node("filter", "Fill", {"filter_size", "print"}).Type("T", kFloat);
  auto conv = g.Node("conv", "Conv2D", {"image", "filter"});
  conv.Type("T", kFloat).Text("padding", "SAME");
  auto* strides = (*g.def()
                        ->mutable_node(g.def()->node_size() - 1)
                        ->mutable_attr())["strides"]
                      .mutable_list();
  for (int i = 0; i < 4; ++i) strides->add_i(1);
  return g;
}

// Without the bounds it would run for a minute and more.
TEST(RunBoundsTest, ARunIsCancelledWithinOneKernel) {
  absl::Notification began;
  SessionOptions options;
  options.threads = 2;
  options.print = [&](absl::string_view) { began.Notify(); };
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto session, HugeConvolution().Session("go", "conv", options));
  std::atomic<bool> cancelled{false};
  std::thread other([&] {
    began.WaitForNotification();
    cancelled = true;
  });
  RunOptions run;
  run.cancelled = &cancelled;
  EXPECT_THAT(session->Run({Float(1)}, run),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("cancelled")));
  other.join();
}

TEST(RunBoundsTest, ATimeEndsOneKernel) {
  SessionOptions options;
  options.print = [](absl::string_view) {};
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto session, HugeConvolution().Session("go", "conv", options));
  // The executor looks once a step and has five; the kernel looks besides.
  optfarm::testing::TickingClock clock(absl::Milliseconds(1));
  RunOptions run;
  run.timeout = absl::Milliseconds(50);
  run.clock = &clock;
  EXPECT_THAT(session->Run({Float(1)}, run),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("50ms")));
  EXPECT_GT(clock.looks(), 50);
  EXPECT_LE(clock.looks(), 54);
}

TEST(ScratchTest, IsKeptForTheNextAndCountsWhileItIsUsed) {
  ScratchPool pool;
  const ScratchScope scope(&pool);
  const auto budget = std::make_shared<MemoryBudget>(100000);
  const BudgetScope budget_scope(budget);
  void* first = nullptr;
  {
    const Scratch<float> a(1000);
    first = a.data();
    EXPECT_GE(budget->used(), 4000);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 64, 0u);
    EXPECT_THROW(Scratch<float>(100000), std::bad_alloc);
  }
  EXPECT_EQ(budget->used(), 0);
  const Scratch<float> again(990);
  EXPECT_EQ(again.data(), first);
  const Scratch<float> other(1000);
  EXPECT_NE(other.data(), first);
}

TEST(ScratchTest, ImpossibleSizesAreNoMemory) {
  EXPECT_THROW(Scratch<float>(int64_t{1} << 40), std::bad_alloc);
  EXPECT_THROW(Scratch<float>(-1), std::bad_alloc);
}

TEST(CountedVectorTest, CountsWhileItLives) {
  const auto budget = std::make_shared<MemoryBudget>(10000);
  const BudgetScope scope(budget);
  {
    CountedVector<float> a(1000);
    EXPECT_EQ(budget->used(), 4000);
    CountedVector<float> b = std::move(a);
    EXPECT_EQ(budget->used(), 4000);
    EXPECT_THROW(b.resize(100000), std::bad_alloc);
    EXPECT_EQ(b.size(), 1000u);
  }
  EXPECT_EQ(budget->used(), 0);
}

// The patches of a grouped convolution take three more tensors.
TEST(ScratchTest, ALimitMeetsAKernelsWorkingMemory) {
  const Tensor image = Scattered({1, 64, 64, 8}, 1);
  const Tensor filter = Scattered({3, 3, 4, 8}, 2);
  GraphMaker g;
  g.Placeholder("x", kFloat).Const("w", filter);
  g.Node("y", "Conv2D", {"x", "w"}).Type("T", kFloat).Text("padding", "SAME");
  auto* strides =
      (*g.def()->mutable_node(2)->mutable_attr())["strides"].mutable_list();
  for (int i = 0; i < 4; ++i) strides->add_i(1);
  SessionOptions reference;
  reference.fast_kernels = false;
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto session,
                               g.Session("x", "y", reference));
  RunOptions run;
  run.memory_limit = 64 * 64 * 8 * 4 + 1000;
  EXPECT_THAT(session->Run({image}, run),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("node 'y' (op Conv2D): no working memory")));
  OPTFARM_ASSERT_OK(session->Run({image}));
}

}  // namespace
}  // namespace optfarm::runtime
