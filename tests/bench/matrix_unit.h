// 8-bit layers by the vector registers and by a matrix unit, for the comparison
// that fits the constants of engine/runtime/operators/int8_cost.cc.

#ifndef OPTFARM_TESTS_BENCH_MATRIX_UNIT_H_
#define OPTFARM_TESTS_BENCH_MATRIX_UNIT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "engine/runtime/core/thread_pool.h"
#include "engine/runtime/operators/int8_cost.h"
#include "engine/runtime/operators/int8_gemm.h"
#include "engine/runtime/operators/int8_kernels.h"
#include "engine/runtime/operators/int8_weights.h"

namespace optfarm::bench {

// A convolution with padding SAME over a square image, or a matrix product:
// a convolution of 1 x 1 over `height` x `width` rows.
struct UnitLayer {
  int64_t height = 1;
  int64_t width = 1;
  int64_t channels = 1;
  int64_t window = 1;
  int64_t stride = 1;
  int64_t columns = 1;

  // "56x56x64 3x3/1 -> 64".
  std::string ToString() const;
};

// Those that differ in MobileNet v1, ResNet-50 and Inception v3, depthwise
// layers left out.
std::vector<UnitLayer> UnitLayers();

// Random signed weights and activations, requantized to bytes as in a frozen
// net.
class UnitProduct {
 public:
  // REQUIRES: kernels.matrix is not nullptr.
  UnitProduct(const UnitLayer& layer, const runtime::Int8Kernels& kernels);
  UnitProduct(const UnitProduct&) = delete;
  UnitProduct& operator=(const UnitProduct&) = delete;

  void Run(bool by_matrix_unit, runtime::ThreadPool* pool);
  const std::vector<uint8_t>& result() const { return result_; }
  runtime::Int8ProductSize size() const;

 private:
  runtime::Int8Kernels vector_;
  runtime::Int8Kernels matrix_;
  std::vector<uint8_t> values_;
  runtime::Int8Activations input_;
  runtime::Int8Weights weights_;
  std::vector<float> scales_;
  std::vector<uint8_t> result_;
};

}  // namespace optfarm::bench

#endif  // OPTFARM_TESTS_BENCH_MATRIX_UNIT_H_
