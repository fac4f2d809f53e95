#ifdef OPTFARM_FAST_KERNELS
#include "engine/runtime/ukernels/cpu_features.h"

#include <gtest/gtest.h>

#include "engine/runtime/ukernels/amx_permission.h"
#include "engine/runtime/ukernels/micro_kernel_catalog.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

TEST(CpuFeaturesTest, NamesAreReadAndPrinted) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const CpuFeatures some,
                               ParseCpuFeatures("avx2,avx512"));
  EXPECT_TRUE(some.avx2);
  EXPECT_TRUE(some.avx512);
  EXPECT_FALSE(some.avx512_vnni);
  EXPECT_EQ(ToString(some), "avx2,avx512");
  OPTFARM_ASSERT_OK_AND_ASSIGN(const CpuFeatures none,
                               ParseCpuFeatures("portable"));
  EXPECT_EQ(none, CpuFeatures());
  EXPECT_EQ(ToString(none), "portable");
}

TEST(CpuFeaturesTest, RefusesAnUnknownName) {
  EXPECT_FALSE(ParseCpuFeatures("avx2,sse9").ok());
  EXPECT_FALSE(ParseCpuFeatures("").ok());
}

TEST(CpuFeaturesTest, ALimitTakesAwayAndNeverAdds) {
  {
    const CpuLimit limit({});
    EXPECT_EQ(UsedCpuFeatures(), CpuFeatures());
  }
  CpuFeatures all;
  for (const CpuFeature& feature : kCpuFeatures) all.*feature.member = true;
  const CpuFeatures before = UsedCpuFeatures();
  const CpuLimit limit(all);
  EXPECT_EQ(UsedCpuFeatures(), before);
}

// As a Xeon of 2023 answers: palette 1 has 8 tiles of 64 bytes a row and 16
// rows.
constexpr AmxFacts kWhole = {.leaf7_edx = 1u << 24 | 1u << 25,
                             .xcr0 = 0x602e7,
                             .palette_ebx = 8u << 16 | 64,
                             .palette_ecx = 16};

TEST(AmxTest, IsFoundWhereTheProcessorAndTheSystemHaveIt) {
  EXPECT_TRUE(HasAmxInt8(kWhole));
}

TEST(AmxTest, IsNotFoundWhereAPartIsMissing) {
  EXPECT_FALSE(HasAmxInt8({}));
  for (const uint32_t bit : {24, 25}) {
    AmxFacts facts = kWhole;
    facts.leaf7_edx &= ~(1u << bit);
    EXPECT_FALSE(HasAmxInt8(facts)) << bit;
  }
  for (const uint64_t bit : {17, 18}) {
    AmxFacts facts = kWhole;
    facts.xcr0 &= ~(uint64_t{1} << bit);
    EXPECT_FALSE(HasAmxInt8(facts)) << bit;
  }
  AmxFacts few = kWhole;
  few.palette_ebx = 4u << 16 | 64;
  EXPECT_FALSE(HasAmxInt8(few));
  AmxFacts narrow = kWhole;
  narrow.palette_ebx = 8u << 16 | 32;
  EXPECT_FALSE(HasAmxInt8(narrow));
  AmxFacts low = kWhole;
  low.palette_ecx = 8;
  EXPECT_FALSE(HasAmxInt8(low));
}

// Whatever this machine is.
TEST(AmxTest, NoKernelIsUsableWithoutTheFeature) {
  for (const MicroKernel* kernel : AllMicroKernels()) {
    if (!kernel->needs.amx_int8) continue;
    CpuFeatures others = HostCpuFeatures();
    others.amx_int8 = false;
    EXPECT_FALSE(IsUsable(*kernel, others)) << kernel->name;
    if (!HostCpuFeatures().amx_int8) {
      EXPECT_FALSE(IsUsable(*kernel, HostCpuFeatures())) << kernel->name;
    }
  }
}

#if defined(__x86_64__) && defined(__linux__)
// The answer of a kernel that does not know of tiles, or of a processor that
// has none, is no; twice the same.
TEST(AmxTest, AskingForPermissionIsHarmless) {
  const bool first = RequestAmxPermission();
  EXPECT_EQ(RequestAmxPermission(), first);
  if (!HasAmxInt8(ReadAmxFacts())) {
    EXPECT_FALSE(first);
  }
}
#endif

}  // namespace
}  // namespace optfarm::runtime
#endif
