// Spectrograms and mel frequency coefficients with AVX2.

#include "engine/runtime/ukernels/audio/audio_functions.h"
#include "engine/runtime/ukernels/audio/audio_inl.h"
#include "engine/runtime/ukernels/audio/doubles_avx2_inl.h"
#include "engine/runtime/ukernels/micro_kernel.h"

namespace optfarm::runtime {
namespace {

constexpr AudioFunctions kFunctions = AudioFunctionsOf<Doubles256>();

}  // namespace

constexpr MicroKernel kAudioAvx2 = {
    .name = "audio_avx2",
    .kind = MicroKernelKind::kAudio,
    .needs = {.avx2 = true},
    .run = {.audio = &kFunctions},
};

}  // namespace optfarm::runtime
