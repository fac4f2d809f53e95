// Spectrograms and mel frequency coefficients with AVX-512.

#include "engine/runtime/ukernels/audio/audio_functions.h"
#include "engine/runtime/ukernels/audio/audio_inl.h"
#include "engine/runtime/ukernels/audio/doubles_avx512_inl.h"

namespace optfarm::runtime {
namespace {

constexpr AudioFunctions kFunctions = AudioFunctionsOf<Doubles512>();

}  // namespace

const AudioFunctions& Avx512AudioFunctions() { return kFunctions; }

}  // namespace optfarm::runtime
