// The AMX micro-kernel of engine/runtime/ukernels, compiled from the same
// source with emulated intrinsics and a plain epilogue in place of AVX-512's.

#ifndef OPTFARM_TESTS_ENGINE_RUNTIME_EMULATED_AMX_H_
#define OPTFARM_TESTS_ENGINE_RUNTIME_EMULATED_AMX_H_

// The emulation is to be there before the kernel.
// clang-format off
#include "tests/engine/runtime/amx_emulation.h"
#include "engine/runtime/ukernels/int8/int8_gemm_amx_inl.h"
// clang-format on

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "engine/runtime/ukernels/int8/int8_epilogue.h"
#include "engine/runtime/ukernels/micro_kernel.h"

namespace optfarm::runtime {
namespace {

// The formula of int8_epilogue.h. Values far below the range would leave 32
// bits, as they do in AVX-512's conversion.
void RequantizeRows(const Int8Epilogue& by, const int32_t* sums, int rows) {
  for (int r = 0; r < rows; ++r, sums += kAmxNr) {
    for (int c = 0; c < by.channels; ++c) {
      const float scaled =
          std::min(static_cast<float>(sums[c]) * by.scales[c], by.most);
      const auto whole =
          static_cast<int>(std::nearbyint(std::max(scaled, -1000.0f)));
      by.out[r * by.stride + c] = static_cast<uint8_t>(
          std::min(std::max(whole + by.zero_point, by.least), 255));
    }
  }
}

// As a matrix unit's, beside the kernels of the table.
constexpr MicroKernel kInt8MatrixGemmEmulatedAmx =
    AmxInt8Gemm("int8_gemm_emulated_amx_beside");

// For every product, however small.
constexpr MicroKernel kInt8GemmEmulatedAmx = [] {
  MicroKernel entry = AmxInt8Gemm("int8_gemm_emulated_amx");
  entry.kind = MicroKernelKind::kInt8Gemm;
  return entry;
}();

}  // namespace
}  // namespace optfarm::runtime

#endif  // OPTFARM_TESTS_ENGINE_RUNTIME_EMULATED_AMX_H_
