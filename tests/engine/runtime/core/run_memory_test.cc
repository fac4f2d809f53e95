// The memory plan of a run: places, reuse, and what happens when a run is not
// as the one before.

#include "engine/runtime/core/run_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>

#include "engine/runtime/core/memory_budget.h"
#include "tests/engine/runtime/run_op.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

constexpr auto kFloat = tensorflow::DT_FLOAT;

Block Living(int begin, int end, int64_t bytes) {
  Block block;
  block.begin = begin;
  block.end = end;
  block.bytes = bytes;
  return block;
}

TEST(PlaceBlocksTest, AChainNeedsItsTwoLargestNeighbours) {
  std::vector<Block> blocks = {Living(0, 1, 640), Living(1, 2, 6400),
                               Living(2, 3, 1280), Living(3, 4, 1280)};
  EXPECT_EQ(PlaceBlocks(&blocks), 6400 + 1280);
}

TEST(PlaceBlocksTest, WhatOutlivesTheRunHasNoPlace) {
  std::vector<Block> blocks = {Living(0, 1, 64), Living(1, -1, 64), Block()};
  EXPECT_EQ(PlaceBlocks(&blocks), 64);
  EXPECT_EQ(blocks[1].offset, -1);
  EXPECT_EQ(blocks[2].offset, -1);
}

TEST(PlaceBlocksTest, WhatLivesTogetherSharesNothing) {
  std::mt19937 random(5);
  for (int round = 0; round < 50; ++round) {
    std::vector<Block> blocks;
    int64_t most_alive = 0;
    for (int i = 0; i < 60; ++i) {
      const int begin = static_cast<int>(random() % 40);
      blocks.push_back(Living(begin, begin + static_cast<int>(random() % 6),
                              64 * (1 + static_cast<int64_t>(random() % 50))));
    }
    for (int step = 0; step < 50; ++step) {
      int64_t alive = 0;
      for (const Block& b : blocks) {
        if (b.begin <= step && step <= b.end) alive += b.bytes;
      }
      most_alive = std::max(most_alive, alive);
    }
    const int64_t total = PlaceBlocks(&blocks);
    EXPECT_LE(static_cast<double>(total),
              1.3 * static_cast<double>(most_alive));
    for (const Block& a : blocks) {
      EXPECT_LE(a.offset + a.bytes, total);
      for (const Block& b : blocks) {
        if (&a == &b || a.end < b.begin || b.end < a.begin) continue;
        EXPECT_TRUE(a.offset + a.bytes <= b.offset ||
                    b.offset + b.bytes <= a.offset);
      }
    }
  }
}

// Nothing is known before the first run.
const ExpectedRun kNothing;

Tensor Take(RunMemory* memory, int step, int64_t size) {
  memory->set_step(step);
  return *memory->Allocate(kFloat, {size});
}

// Three results, one after the other; the last one is the caller's.
Tensor RunThree(RunMemory* memory, int64_t size, const void* places[3]) {
  const Tensor input = Floats({1}, {0});
  memory->Begin(absl::MakeConstSpan(&input, 1));
  Tensor a = Take(memory, 0, size);
  Tensor b = Take(memory, 1, size);
  places[0] = a.raw();
  places[1] = b.raw();
  a = Tensor();
  Tensor c = Take(memory, 2, size);
  places[2] = c.raw();
  b = Tensor();
  memory->End(true);
  return c;
}

TEST(RunMemoryTest, LaterRunsHaveFixedPlacesInOnePiece) {
  RunMemory memory(true, kNothing);
  const void* first[3];
  const void* second[3];
  const void* third[3];
  RunThree(&memory, 100, first);
  EXPECT_EQ(memory.arena_bytes(), 0);
  RunThree(&memory, 100, second);
  RunThree(&memory, 100, third);
  EXPECT_EQ(second[0], third[0]);
  EXPECT_EQ(second[1], third[1]);
  EXPECT_EQ(std::abs(static_cast<const char*>(second[0]) -
                     static_cast<const char*>(second[1])),
            448);
}

TEST(RunMemoryTest, AResultThatGrewHasMemoryOfItsOwn) {
  RunMemory memory(true, kNothing);
  const void* places[3];
  RunThree(&memory, 100, places);
  RunThree(&memory, 1000, places);
  RunThree(&memory, 100, places);
}

// What is written to `kept` must not change when later runs write.
TEST(RunMemoryTest, WhatSomebodyKeepsIsNotOverwritten) {
  RunMemory memory(true, kNothing);
  const Tensor input = Floats({1}, {0});
  const auto run = [&](bool keeps) {
    memory.Begin(absl::MakeConstSpan(&input, 1));
    Tensor a = Take(&memory, 0, 64);
    std::fill_n(a.data<float>(), 64, keeps ? 7.0f : 1.0f);
    Tensor kept = keeps ? a : Tensor();
    a = Tensor();
    Tensor b = Take(&memory, 1, 64);
    std::fill_n(b.data<float>(), 64, 2.0f);
    b = Tensor();
    memory.End(true);
    return kept;
  };
  run(false);
  Tensor kept = run(true);
  run(false);
  const Tensor again = run(true);
  EXPECT_EQ(kept.data<float>()[63], 7.0f);
  EXPECT_TRUE(kept.IsSoleOwner());
  std::thread other([&] { kept = Tensor(); });
  run(false);
  other.join();
  EXPECT_EQ(again.data<float>()[0], 7.0f);
}

TEST(RunMemoryTest, OutlivesItsResults) {
  Tensor kept;
  {
    RunMemory memory(true, kNothing);
    const Tensor input = Floats({1}, {0});
    for (int i = 0; i < 2; ++i) {
      memory.Begin(absl::MakeConstSpan(&input, 1));
      Tensor a = Take(&memory, 0, 16);
      std::fill_n(a.data<float>(), 16, 3.0f);
      if (i == 1) kept = a;
      a = Tensor();
      memory.End(true);
    }
  }
  EXPECT_EQ(kept.data<float>()[15], 3.0f);
}

// The shapes of the run are those that were foreseen.
TEST(RunMemoryTest, TheFirstRunHasPlacesThatWereForeseen) {
  ExpectedRun expected;
  expected.feeds = {Shape{1}};
  expected.blocks = {Living(0, 1, 448), Living(1, 2, 448)};
  expected.bytes = PlaceBlocks(&expected.blocks);
  RunMemory memory(true, expected);
  const void* places[3];
  const auto budget = std::make_shared<MemoryBudget>(MemoryBudget::kUnlimited);
  const BudgetScope scope(budget);
  RunThree(&memory, 100, places);
  EXPECT_EQ(memory.placed(), 2);
  EXPECT_EQ(memory.alone(), 1);
  // The piece, the caller's result, and the input's one element.
  EXPECT_EQ(budget->peak(), 896 + 448 + 64);
}

TEST(RunMemoryTest, OtherShapesThanForeseenHaveMemoryOfTheirOwn) {
  ExpectedRun expected;
  expected.feeds = {Shape{2}};
  expected.blocks = {Living(0, 1, 448), Living(1, 2, 448)};
  expected.bytes = PlaceBlocks(&expected.blocks);
  RunMemory memory(true, expected);
  const void* places[3];
  RunThree(&memory, 100, places);
  EXPECT_EQ(memory.placed(), 0);
  RunThree(&memory, 100, places);
  EXPECT_EQ(memory.placed(), 2);
}

TEST(RunMemoryTest, KernelsTensorsHavePlacesToo) {
  RunMemory memory(true, kNothing);
  const Tensor input = Floats({1}, {0});
  const void* within[2];
  for (int run = 0; run < 3; ++run) {
    memory.Begin(absl::MakeConstSpan(&input, 1));
    memory.set_step(0);
    {
      const MemoryScope scope(&memory);
      const Tensor first = Floats({3}, {1, 2, 3});
      Tensor second = *Tensor::Allocate(kFloat, {100});
      if (run > 0) within[run - 1] = second.raw();
      second = Tensor();
      memory.set_step(1);
      const Tensor none = *Tensor::Allocate(tensorflow::DT_STRING, {2});
      EXPECT_EQ(first.data<float>()[2], 3.0f);
    }
    memory.End(true);
    EXPECT_GE(memory.placed(), run > 0 ? 1 : 0);
  }
  EXPECT_EQ(within[0], within[1]);
}

TEST(MemoryBudgetTest, CountsUntilTheLastCopyIsGone) {
  const auto budget = std::make_shared<MemoryBudget>(1000);
  Tensor a;
  {
    const BudgetScope scope(budget);
    a = *Tensor::Allocate(kFloat, {100});
    EXPECT_EQ(budget->used(), 448);
    EXPECT_FALSE(Tensor::Allocate(kFloat, {200}).ok());
    EXPECT_TRUE(Tensor::Allocate(kFloat, {100}).ok());
  }
  EXPECT_TRUE(Tensor::Allocate(kFloat, {10000}).ok());
  Tensor copy = a;
  a = Tensor();
  EXPECT_EQ(budget->used(), 448);
  copy = Tensor();
  EXPECT_EQ(budget->used(), 0);
  EXPECT_EQ(budget->peak(), 896);
}

}  // namespace
}  // namespace optfarm::runtime
