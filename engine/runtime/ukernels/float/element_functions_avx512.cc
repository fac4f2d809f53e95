// Functions of each element by itself with AVX-512.

#include "engine/runtime/ukernels/float/element_functions.h"
#include "engine/runtime/ukernels/float/element_functions_inl.h"
#include "engine/runtime/ukernels/vector_avx512_inl.h"

namespace optfarm::runtime {
namespace {

constexpr ElementFunctions kFunctions = ElementFunctionsOf<Avx512>();

}  // namespace

const ElementFunctions& Avx512ElementFunctions() { return kFunctions; }

}  // namespace optfarm::runtime
