// int8 output stages as the compiler vectorizes them for NEON.

#include "engine/runtime/ukernels/int8/int8_stage_loops.h"
#include "engine/runtime/ukernels/micro_kernel.h"

namespace optfarm::runtime {
namespace {

struct Neon : Int8StageLoops<Neon> {};

constexpr Int8StageFunctions kFunctions = Neon::Functions();

}  // namespace

constexpr MicroKernel kInt8OutputStagesNeon = {
    .name = "int8_output_stages_neon",
    .kind = MicroKernelKind::kInt8OutputStages,
    .needs = {.neon = true},
    .epilogue = kRequantizes,
    .run = {.int8_stages = &kFunctions},
};

}  // namespace optfarm::runtime
