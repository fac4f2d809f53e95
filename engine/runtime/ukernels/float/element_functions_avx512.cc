// Functions of each element by itself with AVX-512.

#include "engine/runtime/ukernels/float/element_functions.h"
#include "engine/runtime/ukernels/float/element_functions_inl.h"
#include "engine/runtime/ukernels/micro_kernel.h"
#include "engine/runtime/ukernels/vector_avx512_inl.h"

namespace optfarm::runtime {
namespace {

constexpr ElementFunctions kFunctions = ElementFunctionsOf<Avx512>();

}  // namespace

constexpr MicroKernel kElementFunctionsAvx512 = {
    .name = "element_functions_avx512",
    .kind = MicroKernelKind::kElementFunctions,
    .needs = {.avx512 = true},
    .run = {.element_functions = &kFunctions},
};

}  // namespace optfarm::runtime
