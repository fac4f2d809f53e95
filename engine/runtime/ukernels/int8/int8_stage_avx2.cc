// int8 output stages as the compiler vectorizes them for AVX2.

#include "engine/runtime/ukernels/int8/int8_stage_loops.h"
#include "engine/runtime/ukernels/micro_kernel.h"

namespace optfarm::runtime {
namespace {

struct Avx2 : Int8StageLoops<Avx2> {};

constexpr Int8StageFunctions kFunctions = Avx2::Functions();

}  // namespace

constexpr MicroKernel kInt8OutputStagesAvx2 = {
    .name = "int8_output_stages_avx2",
    .kind = MicroKernelKind::kInt8OutputStages,
    .needs = {.avx2 = true},
    .epilogue = kRequantizes,
    .run = {.int8_stages = &kFunctions},
};

}  // namespace optfarm::runtime
