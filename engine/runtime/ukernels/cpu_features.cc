#include "engine/runtime/ukernels/cpu_features.h"

#include <atomic>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if (defined(__aarch64__) || defined(__arm__)) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace optfarm::runtime {
namespace {

struct Feature {
  const char* name;
  bool CpuFeatures::*member;
};

constexpr Feature kFeatures[] = {
    {"avx2", &CpuFeatures::avx2},
    {"avx512", &CpuFeatures::avx512},
    {"avx512_vnni", &CpuFeatures::avx512_vnni},
    {"avx_vnni", &CpuFeatures::avx_vnni},
    {"neon", &CpuFeatures::neon},
    {"neon_dot", &CpuFeatures::neon_dot},
};

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
#elif defined(__aarch64__)
  found.neon = true;
#if defined(__linux__) && defined(HWCAP_ASIMDDP)
  found.neon_dot = (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#endif
#elif defined(__arm__) && defined(__linux__)
  // Multiply-adds with one rounding came with VFPv4.
  constexpr unsigned long kNeeded = HWCAP_NEON | HWCAP_VFPv4;
  found.neon = (getauxval(AT_HWCAP) & kNeeded) == kNeeded;
#endif
  return found;
}

CpuFeatures Both(const CpuFeatures& a, const CpuFeatures& b) {
  CpuFeatures both;
  for (const Feature& f : kFeatures)
    both.*f.member = a.*f.member && b.*f.member;
  return both;
}

CpuFeatures FromEnvironment() {
  const char* names = std::getenv("OPTFARM_CPU");
  if (names == nullptr) return HostCpuFeatures();
  const absl::StatusOr<CpuFeatures> allowed = ParseCpuFeatures(names);
  return allowed.ok() ? Both(HostCpuFeatures(), *allowed) : HostCpuFeatures();
}

constexpr uint32_t kNoLimit = ~uint32_t{0};

// Bit i is kFeatures[i].
std::atomic<uint32_t>& Limit() {
  static std::atomic<uint32_t> limit{kNoLimit};
  return limit;
}

}  // namespace

std::string ToString(const CpuFeatures& features) {
  std::string names;
  for (const Feature& f : kFeatures) {
    if (features.*f.member) {
      absl::StrAppend(&names, names.empty() ? "" : ",", f.name);
    }
  }
  return names.empty() ? "portable" : names;
}

absl::StatusOr<CpuFeatures> ParseCpuFeatures(absl::string_view names) {
  CpuFeatures features;
  if (names == "portable") return features;
  for (const absl::string_view name : absl::StrSplit(names, ',')) {
    bool is_known = false;
    for (const Feature& f : kFeatures) {
      if (name != f.name) continue;
      features.*f.member = true;
      is_known = true;
    }
    if (!is_known) {
      return absl::InvalidArgumentError(absl::StrCat(
          "reading CPU features '", names, "': there is no '", name,
          "'; give 'portable' or some of avx2, avx512, avx512_vnni, avx_vnni, "
          "neon, neon_dot"));
    }
  }
  return features;
}

const CpuFeatures& HostCpuFeatures() {
  static const CpuFeatures host = Detect();
  return host;
}

CpuFeatures UsedCpuFeatures() {
  static const CpuFeatures allowed = FromEnvironment();
  const uint32_t limit = Limit().load();
  CpuFeatures used = allowed;
  uint32_t bit = 1;
  for (const Feature& f : kFeatures) {
    used.*f.member = used.*f.member && (limit & bit) != 0;
    bit <<= 1;
  }
  return used;
}

CpuLimit::CpuLimit(const CpuFeatures& most) {
  uint32_t bits = 0;
  uint32_t bit = 1;
  for (const Feature& f : kFeatures) {
    if (most.*f.member) bits |= bit;
    bit <<= 1;
  }
  Limit().store(bits);
}

CpuLimit::~CpuLimit() { Limit().store(kNoLimit); }

}  // namespace optfarm::runtime
