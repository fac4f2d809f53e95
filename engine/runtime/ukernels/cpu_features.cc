#include "engine/runtime/ukernels/cpu_features.h"

#include <atomic>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace optfarm::runtime {
namespace {

std::string AllNames() {
  std::string names;
  for (const CpuFeature& f : kCpuFeatures) {
    absl::StrAppend(&names, names.empty() ? "" : ", ", f.name);
  }
  return names;
}

CpuFeatures Both(const CpuFeatures& a, const CpuFeatures& b) {
  CpuFeatures both;
  for (const CpuFeature& f : kCpuFeatures)
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

// Bit i is kCpuFeatures[i].
std::atomic<uint32_t>& Limit() {
  static std::atomic<uint32_t> limit{kNoLimit};
  return limit;
}

}  // namespace

std::string ToString(const CpuFeatures& features) {
  std::string names;
  for (const CpuFeature& f : kCpuFeatures) {
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
    for (const CpuFeature& f : kCpuFeatures) {
      if (name != f.name) continue;
      features.*f.member = true;
      is_known = true;
    }
    if (!is_known) {
      return absl::InvalidArgumentError(
          absl::StrCat("reading CPU features '", names, "': there is no '",
                       name, "'; give 'portable' or some of ", AllNames()));
    }
  }
  return features;
}

CpuFeatures UsedCpuFeatures() {
  static const CpuFeatures allowed = FromEnvironment();
  const uint32_t limit = Limit().load();
  CpuFeatures used = allowed;
  uint32_t bit = 1;
  for (const CpuFeature& f : kCpuFeatures) {
    used.*f.member = used.*f.member && (limit & bit) != 0;
    bit <<= 1;
  }
  return used;
}

CpuLimit::CpuLimit(const CpuFeatures& most) {
  uint32_t bits = 0;
  uint32_t bit = 1;
  for (const CpuFeature& f : kCpuFeatures) {
    if (most.*f.member) bits |= bit;
    bit <<= 1;
  }
  Limit().store(bits);
}

CpuLimit::~CpuLimit() { Limit().store(kNoLimit); }

}  // namespace optfarm::runtime
