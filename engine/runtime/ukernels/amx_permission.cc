#include "engine/runtime/ukernels/amx_permission.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace optfarm::runtime {

#if defined(__x86_64__)

AmxFacts ReadAmxFacts() {
  AmxFacts facts;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return facts;
  facts.leaf7_edx = edx;
  constexpr unsigned kOsxsave = 1u << 27;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0 || (ecx & kOsxsave) == 0) {
    return facts;
  }
  unsigned low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  facts.xcr0 = uint64_t{high} << 32 | low;
  if (__get_cpuid_count(0x1d, 1, &eax, &ebx, &ecx, &edx) != 0) {
    facts.palette_ebx = ebx;
    facts.palette_ecx = ecx;
  }
  return facts;
}

#else

AmxFacts ReadAmxFacts() { return {}; }

#endif

bool RequestAmxPermission() {
#if defined(__x86_64__) && defined(__linux__)
  // The C library's headers may be older than the kernel.
  static const bool is_granted = [] {
    constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
    constexpr long kTileData = 18;               // XFEATURE_XTILEDATA
    return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  }();
  return is_granted;
#else
  return false;
#endif
}

}  // namespace optfarm::runtime
