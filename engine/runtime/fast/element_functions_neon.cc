// Functions of each element by itself with NEON.

#include "engine/runtime/fast/element_functions.h"
#include "engine/runtime/fast/element_functions_inl.h"
#include "engine/runtime/fast/vector_neon_inl.h"

namespace optfarm::runtime {
namespace {

constexpr ElementFunctions kFunctions = ElementFunctionsOf<Neon>();

}  // namespace

const ElementFunctions& NeonElementFunctions() { return kFunctions; }

}  // namespace optfarm::runtime
