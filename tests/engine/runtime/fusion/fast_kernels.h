// What tests of fast kernels share: each test runs once for each instruction
// set that this machine has, and compares with the reference kernels.

#ifndef OPTFARM_TESTS_ENGINE_RUNTIME_FUSION_FAST_KERNELS_H_
#define OPTFARM_TESTS_ENGINE_RUNTIME_FUSION_FAST_KERNELS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/runtime/ukernels/cpu_features.h"
#include "tests/engine/runtime/graph_maker.h"

namespace optfarm::runtime {

class FastKernelsTest : public ::testing::TestWithParam<std::string> {
 protected:
  FastKernelsTest()
      : features_(*ParseCpuFeatures(GetParam())), limit_(features_) {}
  void SetUp() override {
    if (UsedCpuFeatures() != features_) {
      GTEST_SKIP() << "this processor has no " << GetParam();
    }
  }

  int64_t Pick(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random_);
  }
  bool Chance() { return Pick(0, 1) == 1; }
  Tensor Random(const Shape& shape, float least = -1, float most = 1) {
    std::uniform_real_distribution<float> number(least, most);
    std::vector<float> values(shape.num_elements());
    for (float& value : values) value = number(random_);
    return Tensor::FromValues<float>(shape, values);
  }

  std::mt19937 random_{7};
  CpuFeatures features_;
  CpuLimit limit_;
};

// The instruction sets to try, and what a test with one is called.
inline std::vector<std::string> InstructionSets() {
#if defined(__x86_64__)
  return {"avx2", "avx2,avx512"};
#else
  return {"neon"};
#endif
}
inline std::string SetName(const ::testing::TestParamInfo<std::string>& test) {
  std::string name = test.param;
  std::replace(name.begin(), name.end(), ',', '_');
  return name;
}

// How far a value may be off: the largest of these. `of_largest` is a part of
// the largest finite value that is wanted.
struct Tolerance {
  float absolute = 0;
  float relative = 0;
  float of_largest = 0;
};

inline void ExpectClose(const Tensor& got, const Tensor& wanted,
                        const Tolerance& tolerance) {
  ASSERT_EQ(got.shape(), wanted.shape());
  float largest = 0;
  for (float value : wanted.flat<float>()) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  for (int64_t i = 0; i < got.num_elements(); ++i) {
    const float a = got.flat<float>()[i];
    const float b = wanted.flat<float>()[i];
    if (std::isnan(b)) {
      ASSERT_TRUE(std::isnan(a)) << "at " << i << ": " << a;
    } else if (std::isinf(b)) {
      ASSERT_EQ(a, b) << "at " << i;
    } else {
      ASSERT_NEAR(
          a, b,
          std::max({tolerance.absolute, tolerance.relative * std::abs(b),
                    tolerance.of_largest * largest}))
          << "at " << i;
    }
  }
}

struct Result {
  std::vector<Tensor> values;
  // Of the steps that ran.
  std::vector<std::string> ops;
};

inline absl::StatusOr<Result> RunGraph(const GraphMaker& g,
                                       const std::string& feeds,
                                       const std::vector<Tensor>& inputs,
                                       const std::string& fetches, bool is_fast,
                                       int threads = 1) {
  SessionOptions options;
  options.fast_kernels = is_fast;
  options.threads = threads;
  auto session = g.Session(feeds, fetches, options);
  if (!session.ok()) return session.status();
  RunTrace trace;
  auto values = (*session)->Run(inputs, &trace);
  if (!values.ok()) return values.status();
  Result result{*std::move(values), {}};
  for (const NodeTiming& node : trace.nodes) result.ops.push_back(node.op);
  return result;
}

}  // namespace optfarm::runtime

#endif  // OPTFARM_TESTS_ENGINE_RUNTIME_FUSION_FAST_KERNELS_H_
