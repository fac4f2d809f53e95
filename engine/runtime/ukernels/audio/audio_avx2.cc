// Spectrograms and mel frequency coefficients with AVX2.

#include "engine/runtime/ukernels/audio/audio_functions.h"
#include "engine/runtime/ukernels/audio/audio_inl.h"
#include "engine/runtime/ukernels/audio/doubles_avx2_inl.h"

namespace optfarm::runtime {
namespace {

constexpr AudioFunctions kFunctions = AudioFunctionsOf<Doubles256>();

}  // namespace

const AudioFunctions& Avx2AudioFunctions() { return kFunctions; }

}  // namespace optfarm::runtime
