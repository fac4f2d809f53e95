// Functions of each element by itself with AVX2.

#include "engine/runtime/ukernels/float/element_functions.h"
#include "engine/runtime/ukernels/float/element_functions_inl.h"
#include "engine/runtime/ukernels/micro_kernel.h"
#include "engine/runtime/ukernels/vector_avx2_inl.h"

namespace optfarm::runtime {
namespace {

constexpr ElementFunctions kFunctions = ElementFunctionsOf<Avx2>();

}  // namespace

constexpr MicroKernel kElementFunctionsAvx2 = {
    .name = "element_functions_avx2",
    .kind = MicroKernelKind::kElementFunctions,
    .needs = {.avx2 = true},
    .run = {.element_functions = &kFunctions},
};

}  // namespace optfarm::runtime
