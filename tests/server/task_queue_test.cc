#include "server/scheduling/task_queue.h"

#include <gtest/gtest.h>

#include <iterator>
#include <vector>

#include "absl/strings/str_cat.h"

namespace optfarm::server {
namespace {

TaskRef Ref(int64_t number, size_t index = 0) {
  return {number, absl::StrCat("job", number), index};
}

TEST(TaskQueue, CountsThoseThatAreOlder) {
  TaskQueue queue;
  EXPECT_EQ(queue.CountBefore(Ref(5)), 0u);
  std::vector<TaskRef> refs;
  for (int i = 0; i < 3000; ++i) refs.push_back(Ref(i * 3, i % 2));
  // In another order than that of their age.
  for (size_t i = 0; i < refs.size(); ++i) {
    queue.Insert(refs[i * 1009 % refs.size()]);
  }
  queue.Insert(refs[7]);
  for (const size_t i : {0, 1, 341, 342, 1500, 2999}) {
    EXPECT_EQ(queue.CountBefore(refs[i]), i);
  }
  EXPECT_EQ(queue.CountBefore(Ref(4)), 2u);
  EXPECT_EQ(queue.CountBefore(Ref(1'000'000)), refs.size());
}

TEST(TaskQueue, CountsNoneThatHasGone) {
  TaskQueue queue;
  for (int i = 0; i < 3000; ++i) queue.Insert(Ref(i));
  for (int i = 0; i < 2999; i += 2) queue.Erase(Ref(i));
  queue.Erase(Ref(0));
  EXPECT_EQ(queue.CountBefore(Ref(2500)), 1250u);
  for (int i = 0; i < 3000; ++i) queue.Erase(Ref(i));
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.CountBefore(Ref(2500)), 0u);
  queue.Insert(Ref(2000, 1));
  EXPECT_EQ(queue.CountBefore(Ref(2000, 0)), 0u);
  EXPECT_EQ(queue.CountBefore(Ref(2000, 2)), 1u);
}

}  // namespace
}  // namespace optfarm::server
