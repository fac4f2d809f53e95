#include "engine/runtime/ukernels/host_cpu_features.h"

#include "engine/runtime/ukernels/amx_permission.h"
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if (defined(__aarch64__) || defined(__arm__)) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace optfarm::runtime {
namespace {

#if defined(__x86_64__)
// Clang 14 has no name for it.
bool HasAvxVnni() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 &&
         (eax & (1u << 4)) != 0;
}
#endif

CpuFeatures Detect() {
  CpuFeatures found;
#if defined(__x86_64__)
  found.avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  found.avx512 = found.avx2 && __builtin_cpu_supports("avx512f") &&
                 __builtin_cpu_supports("avx512bw") &&
                 __builtin_cpu_supports("avx512dq") &&
                 __builtin_cpu_supports("avx512vl");
  found.avx512_vnni = found.avx512 && __builtin_cpu_supports("avx512vnni");
  found.avx_vnni = found.avx2 && HasAvxVnni();
  found.amx_int8 = HasAmxInt8(ReadAmxFacts());
#elif defined(__aarch64__)
  found.neon = true;
#if defined(__linux__) && defined(HWCAP_ASIMDDP)
  found.neon_dot = (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#endif
#if defined(__linux__) && defined(HWCAP2_I8MM)
  found.neon_i8mm = (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0;
#endif
#elif defined(__arm__) && defined(__linux__)
  // Multiply-adds with one rounding came with VFPv4.
  constexpr unsigned long kNeeded = HWCAP_NEON | HWCAP_VFPv4;
  found.neon = (getauxval(AT_HWCAP) & kNeeded) == kNeeded;
#endif
  return found;
}

}  // namespace

const CpuFeatures& HostCpuFeatures() {
  static const CpuFeatures host = Detect();
  return host;
}

}  // namespace optfarm::runtime
