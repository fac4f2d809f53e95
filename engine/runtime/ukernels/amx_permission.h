// AMX's tiles, as the processor tells of them and as Linux grants them.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_AMX_PERMISSION_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_AMX_PERMISSION_H_

#include <cstdint>

namespace optfarm::runtime {

// What CPUID and XGETBV say. Zeros where there is no such leaf.
struct AmxFacts {
  // CPUID leaf 7, subleaf 0.
  uint32_t leaf7_edx = 0;
  // The state that the operating system manages.
  uint64_t xcr0 = 0;
  // CPUID leaf 0x1d, subleaf 1: palette 1.
  uint32_t palette_ebx = 0;
  uint32_t palette_ecx = 0;
};

// Whether there are int8 products on eight tiles of 16 rows x 64 bytes at
// least, and the operating system saves tiles.
constexpr bool HasAmxInt8(const AmxFacts& facts) {
  constexpr uint32_t kTile = 1u << 24, kInt8 = 1u << 25;
  constexpr uint64_t kState = uint64_t{3} << 17;
  const bool has_products =
      (facts.leaf7_edx & (kTile | kInt8)) == (kTile | kInt8);
  return has_products && (facts.xcr0 & kState) == kState &&
         (facts.palette_ebx & 0xffff) >= 64 && facts.palette_ebx >> 16 >= 8 &&
         (facts.palette_ecx & 0xffff) >= 16;
}

// This processor's. All zeros for others than x86-64.
AmxFacts ReadAmxFacts();

// Asks Linux for the right to use tiles, once in a process: the first use of a
// tile without it ends the process. False where it is not given: by kernels
// before 5.16, by sandboxes that refuse the call, and where a thread's
// alternative signal stack is too small for a frame with tiles.
// THREADS: safe; holds for all threads and for children without exec.
bool RequestAmxPermission();

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_AMX_PERMISSION_H_
