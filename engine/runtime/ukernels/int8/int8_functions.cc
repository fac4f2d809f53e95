#include "engine/runtime/ukernels/int8/int8_functions.h"

namespace optfarm::runtime {

Int8Functions Int8FunctionsFor(const CpuFeatures& cpu) {
  Int8Functions functions;
#if defined(__x86_64__)
  if (cpu.avx2) {
    functions.tile = RunInt8TileAvx2;
    functions.stages = &kInt8StagesAvx2;
    functions.depthwise = RunInt8DepthwiseAvx2;
  }
  if (cpu.avx2 && cpu.avx_vnni) functions.tile = RunInt8TileAvxVnni;
  if (cpu.avx512) functions.stages = &kInt8StagesAvx512;
  if (cpu.avx512 && !cpu.avx_vnni) {
    functions.tile = RunInt8TileAvx512;
    functions.tile_finishes = true;
  }
  if (cpu.avx512 && cpu.avx512_vnni) {
    functions.tile = RunInt8TileAvx512Vnni;
    functions.tile_finishes = true;
    functions.strip = RunInt8StripAvx512Vnni;
    functions.depthwise = RunInt8DepthwiseAvx512Vnni;
    functions.depthwise_finishes = true;
    functions.depthwise_pairs = true;
  }
#elif defined(__aarch64__) || defined(__arm__)
  if (cpu.neon) {
    functions.tile = RunInt8TileNeon;
    functions.stages = &kInt8StagesNeon;
    functions.depthwise = RunInt8DepthwiseNeon;
  }
#if defined(__aarch64__)
  if (cpu.neon && cpu.neon_dot) {
    functions.tile = RunInt8TileNeonDot;
    functions.depthwise = RunInt8DepthwiseNeonDot;
  }
#endif
#else
  (void)cpu;
#endif
  return functions;
}

}  // namespace optfarm::runtime
