// The instruction set extensions that kernels are compiled for, as names and as
// a set of flags. A new extension is one flag and one row here, and a line in
// host_cpu_features.cc.
//
// This header is included by files that are compiled for one instruction set:
// what is not constexpr stays out of it.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_CPU_FEATURE_SET_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_CPU_FEATURE_SET_H_

namespace optfarm::runtime {

struct CpuFeatures {
  // AVX2 and FMA.
  bool avx2 = false;
  // AVX-512 F, BW, DQ and VL.
  bool avx512 = false;
  // Int8 dot products on 512-bit registers.
  bool avx512_vnni = false;
  // The same on 256-bit registers, without AVX-512.
  bool avx_vnni = false;
  // Int8 products of AMX's tiles.
  bool amx_int8 = false;
  // Arm's 128-bit vectors.
  bool neon = false;
  // Int8 dot products on them.
  bool neon_dot = false;
  // Int8 matrix products on them.
  bool neon_i8mm = false;

  friend bool operator==(const CpuFeatures&, const CpuFeatures&) = default;
};

struct CpuFeature {
  const char* name;
  bool CpuFeatures::*member;
};

inline constexpr CpuFeature kCpuFeatures[] = {
    {"avx2", &CpuFeatures::avx2},
    {"avx512", &CpuFeatures::avx512},
    {"avx512_vnni", &CpuFeatures::avx512_vnni},
    {"avx_vnni", &CpuFeatures::avx_vnni},
    {"amx_int8", &CpuFeatures::amx_int8},
    {"neon", &CpuFeatures::neon},
    {"neon_dot", &CpuFeatures::neon_dot},
    {"neon_i8mm", &CpuFeatures::neon_i8mm},
};

// Whether `has` includes everything in `needs`.
constexpr bool HasAll(const CpuFeatures& has, const CpuFeatures& needs) {
  for (const CpuFeature& feature : kCpuFeatures) {
    if (needs.*feature.member && !(has.*feature.member)) return false;
  }
  return true;
}

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_CPU_FEATURE_SET_H_
