// Softmax over rows of floats, for one instruction set.
//
// This header is included by files that are compiled for one instruction set,
// and stays free of code.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_FLOAT_SOFTMAX_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_FLOAT_SOFTMAX_H_

#include <cstdint>

namespace optfarm::runtime {

// Rows that follow one another.
struct SoftmaxRows {
  const float* in = nullptr;
  // Added to each row first; nullptr for none.
  const float* bias = nullptr;
  int64_t rows = 0;
  // REQUIRES: > 0.
  int64_t columns = 0;
  // May be `in`.
  float* out = nullptr;
  // By row: where not nullptr, the reciprocals of the sums, which rows are not
  // multiplied by then.
  float* reciprocals = nullptr;
};

using SoftmaxFunction = void (*)(const SoftmaxRows& rows);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_FLOAT_SOFTMAX_H_
