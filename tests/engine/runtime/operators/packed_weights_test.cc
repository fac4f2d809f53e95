#include "engine/runtime/core/packed_weights.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

// More than a few pages, which may be let go.
constexpr int64_t kCount = 100'000;

std::vector<float> Numbers() {
  std::vector<float> numbers(kCount);
  for (int64_t i = 0; i < kCount; ++i) numbers[i] = static_cast<float>(i);
  return numbers;
}

Tensor Weights() { return Tensor::FromValues<float>({kCount}, Numbers()); }

absl::StatusOr<Tensor> Reversed(const Tensor& from) {
  absl::StatusOr<Tensor> to = Tensor::Allocate(from.dtype(), from.shape());
  if (!to.ok()) return to;
  const auto values = from.flat<float>();
  std::reverse_copy(values.begin(), values.end(), to->data<float>());
  return to;
}

// The elements from the last to the first.
WeightLayout Backwards(int* calls = nullptr, const char* name = "backwards") {
  WeightLayout layout;
  layout.name = name;
  layout.packed_bytes = 4 * kCount;
  layout.pack = [calls](const Tensor& weights, ThreadPool*,
                        WeightLayout::Done done) {
    if (calls != nullptr) ++*calls;
    absl::StatusOr<Tensor> packed = Reversed(weights);
    done(weights.TotalBytes() / 2);
    return packed;
  };
  layout.unpack = Reversed;
  return layout;
}

// Fails to be packed.
WeightLayout Refused() {
  WeightLayout layout = Backwards();
  layout.pack = [](const Tensor&, ThreadPool*, WeightLayout::Done) {
    return absl::ResourceExhaustedError("no memory");
  };
  return layout;
}

TEST(PackedWeightsTest, WeightsArePackedOnceForEachLayout) {
  ThreadPool pool(1);
  int calls = 0;
  const auto weights = std::make_shared<SharedWeights>(Weights());
  const PackedWeights first(weights, Backwards(&calls));
  const PackedWeights again(weights, Backwards(&calls));
  const PackedWeights other(weights, Backwards(&calls, "other"));
  EXPECT_EQ(calls, 0);
  const Tensor* packed = first.Get(&pool);
  ASSERT_NE(packed, nullptr);
  EXPECT_EQ(packed->data<float>()[0], kCount - 1);
  EXPECT_EQ(again.Get(&pool), packed);
  EXPECT_EQ(again.id(), first.id());
  EXPECT_EQ(calls, 1);
  ASSERT_NE(other.Get(&pool), nullptr);
  EXPECT_NE(other.Get(&pool), packed);
  EXPECT_EQ(other.packed().data<float>()[0], kCount - 1);
  EXPECT_EQ(calls, 2);
}

TEST(PackedWeightsTest, WhatIsPackedIsInMemoryOnceAndCanBeHadAsItCame) {
  ThreadPool pool(1);
  auto memory = std::make_shared<std::vector<float>>(Numbers());
  const std::weak_ptr<std::vector<float>> original = memory;
  const auto weights = std::make_shared<SharedWeights>(
      Tensor::Over(tensorflow::DT_FLOAT, {2, kCount / 2},
                   std::shared_ptr<void>(memory, memory->data())));
  memory.reset();
  const PackedWeights packed(weights, Backwards());
  EXPECT_FALSE(original.expired());
  ASSERT_NE(packed.Get(&pool), nullptr);
  EXPECT_TRUE(original.expired());
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor value, packed.Value());
  EXPECT_EQ(value.shape(), Shape({2, kCount / 2}));
  EXPECT_EQ(value.flat<float>(), Numbers());
  // Who has it shares it.
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor again, weights->Value());
  EXPECT_EQ(again.raw(), value.raw());
}

TEST(PackedWeightsTest, AValueThatSomebodyHasStaysAsItCame) {
  ThreadPool pool(1);
  const auto weights = std::make_shared<SharedWeights>(Weights());
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor held, weights->Value());
  const PackedWeights packed(weights, Backwards());
  ASSERT_NE(packed.Get(&pool), nullptr);
  EXPECT_EQ(held.flat<float>(), Numbers());
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor again, weights->Value());
  EXPECT_EQ(again.raw(), held.raw());
}

TEST(PackedWeightsTest, ACallersTensorStaysAsItCame) {
  ThreadPool pool(1);
  const Tensor tensor = Weights();
  const PackedWeights packed(std::make_shared<SharedWeights>(tensor),
                             Backwards());
  ASSERT_NE(packed.Get(&pool), nullptr);
  EXPECT_EQ(tensor.flat<float>(), Numbers());
}

TEST(PackedWeightsTest, WithoutMemoryTheValueStays) {
  ThreadPool pool(1);
  const PackedWeights packed(std::make_shared<SharedWeights>(Weights()),
                             Refused());
  EXPECT_EQ(packed.Get(&pool), nullptr);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor value, packed.Value());
  EXPECT_EQ(value.flat<float>(), Numbers());
}

TEST(PackedWeightsTest, ManyThreadsMayAskAtOnce) {
  ThreadPool pool(2);
  int calls = 0;
  const auto weights = std::make_shared<SharedWeights>(Weights());
  std::vector<std::thread> threads;
  std::vector<int> right(8, 0);
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      const PackedWeights packed(weights, Backwards(&calls));
      const Tensor* found = packed.Get(&pool);
      const absl::StatusOr<Tensor> value = packed.Value();
      right[t] = found != nullptr && found->data<float>()[0] == kCount - 1 &&
                 value.ok() && value->flat<float>() == Numbers();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, std::vector<int>(8, 1));
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace optfarm::runtime
