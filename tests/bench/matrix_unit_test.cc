#ifdef OPTFARM_FAST_KERNELS
#include "tests/bench/matrix_unit.h"

#include <gtest/gtest.h>

#include "engine/runtime/ukernels/micro_kernel_catalog.h"
#include "tests/engine/runtime/emulated_amx.h"

namespace optfarm::bench {
namespace {

TEST(UnitProductTest, GivesTheSameBytesByBothKernels) {
  runtime::Int8Kernels kernels;
  {
    const runtime::PreferredMicroKernels preferred(
        {&runtime::kInt8GemmPortable, &runtime::kInt8MatrixGemmEmulatedAmx});
    kernels = runtime::SelectInt8Kernels({});
  }
  ASSERT_NE(kernels.matrix, nullptr);
  runtime::ThreadPool pool(1);
  for (const UnitLayer& layer :
       {UnitLayer{9, 9, 64, 3, 1, 48}, UnitLayer{8, 8, 32, 1, 1, 20},
        UnitLayer{5, 7, 72, 1, 2, 33}}) {
    UnitProduct product(layer, kernels);
    product.Run(false, &pool);
    const std::vector<uint8_t> by_vectors = product.result();
    const int64_t before = runtime::amx::OfThread().products;
    product.Run(true, &pool);
    EXPECT_GT(runtime::amx::OfThread().products, before);
    EXPECT_EQ(product.result(), by_vectors) << layer.ToString();
    // Something that can differ.
    EXPECT_NE(by_vectors, std::vector<uint8_t>(by_vectors.size(), 0));
  }
}

}  // namespace
}  // namespace optfarm::bench
#endif  // OPTFARM_FAST_KERNELS
