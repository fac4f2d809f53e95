// Functions of each element by itself with NEON.

#include "engine/runtime/ukernels/float/element_functions.h"
#include "engine/runtime/ukernels/float/element_functions_inl.h"
#include "engine/runtime/ukernels/micro_kernel.h"
#include "engine/runtime/ukernels/vector_neon_inl.h"

namespace optfarm::runtime {
namespace {

constexpr ElementFunctions kFunctions = ElementFunctionsOf<Neon>();

}  // namespace

constexpr MicroKernel kElementFunctionsNeon = {
    .name = "element_functions_neon",
    .kind = MicroKernelKind::kElementFunctions,
    .needs = {.neon = true},
    .run = {.element_functions = &kFunctions},
};

}  // namespace optfarm::runtime
