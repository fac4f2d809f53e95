#ifdef OPTFARM_FAST_KERNELS
#include "engine/runtime/ukernels/cpu_features.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace optfarm::runtime
#endif
