// int8 GEMM with tdpbusd on AMX's tiles. The epilogue is that of AVX-512, which
// processors with AMX have.

#include <immintrin.h>

#include "engine/runtime/ukernels/amx_permission.h"
#include "engine/runtime/ukernels/int8/int8_epilogue_avx512_inl.h"
#include "engine/runtime/ukernels/int8/int8_gemm_amx_inl.h"
#include "engine/runtime/ukernels/micro_kernel.h"

namespace optfarm::runtime {
namespace {

template <Packing kPacking>
OPTFARM_INLINE void Requantize(const Int8Epilogue& by, const int32_t* sums,
                               int rows) {
  EpilogueAvx512<kPacking> epilogue(by);
  int r = 0;
  for (; r + 1 < rows; r += 2, sums += 2 * kAmxNr) {
    epilogue.Two(_mm512_load_si512(sums), _mm512_load_si512(sums + 16),
                 _mm512_load_si512(sums + kAmxNr),
                 _mm512_load_si512(sums + kAmxNr + 16));
  }
  if (r < rows) {
    epilogue.One(_mm512_load_si512(sums), _mm512_load_si512(sums + 16));
  }
}

void RequantizeRows(const Int8Epilogue& by, const int32_t* sums, int rows) {
  switch (PackingOf(by)) {
    case Packing::kNothing:
      return Requantize<Packing::kNothing>(by, sums, rows);
    case Packing::kMost:
      return Requantize<Packing::kMost>(by, sums, rows);
    case Packing::kAll:
      return Requantize<Packing::kAll>(by, sums, rows);
  }
}

}  // namespace

constexpr MicroKernel kInt8GemmAmxInt8 = [] {
  MicroKernel entry = AmxInt8Gemm("int8_gemm_amx_int8");
  entry.needs = {.avx512 = true, .avx512_vnni = true, .amx_int8 = true};
  entry.request_permission = RequestAmxPermission;
  return entry;
}();

}  // namespace optfarm::runtime
