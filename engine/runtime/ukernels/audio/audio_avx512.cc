// Spectrograms and mel frequency coefficients with AVX-512.

#include "engine/runtime/ukernels/audio/audio_functions.h"
#include "engine/runtime/ukernels/audio/audio_inl.h"
#include "engine/runtime/ukernels/audio/doubles_avx512_inl.h"
#include "engine/runtime/ukernels/micro_kernel.h"

namespace optfarm::runtime {
namespace {

constexpr AudioFunctions kFunctions = AudioFunctionsOf<Doubles512>();

}  // namespace

constexpr MicroKernel kAudioAvx512 = {
    .name = "audio_avx512",
    .kind = MicroKernelKind::kAudio,
    .needs = {.avx512 = true},
    .run = {.audio = &kFunctions},
};

}  // namespace optfarm::runtime
