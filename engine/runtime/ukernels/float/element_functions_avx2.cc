// Functions of each element by itself with AVX2.

#include "engine/runtime/ukernels/float/element_functions.h"
#include "engine/runtime/ukernels/float/element_functions_inl.h"
#include "engine/runtime/ukernels/vector_avx2_inl.h"

namespace optfarm::runtime {
namespace {

constexpr ElementFunctions kFunctions = ElementFunctionsOf<Avx2>();

}  // namespace

const ElementFunctions& Avx2ElementFunctions() { return kFunctions; }

}  // namespace optfarm::runtime
