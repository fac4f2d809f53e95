// int8 output stages in plain C++: what runs where no other can.

#include "engine/runtime/ukernels/int8/int8_stage_loops.h"
#include "engine/runtime/ukernels/micro_kernel.h"

namespace optfarm::runtime {
namespace {

struct Portable : Int8StageLoops<Portable> {};

constexpr Int8StageFunctions kFunctions = Portable::Functions();

}  // namespace

constexpr MicroKernel kInt8OutputStagesPortable = {
    .name = "int8_output_stages_portable",
    .kind = MicroKernelKind::kInt8OutputStages,
    .epilogue = kRequantizes,
    .run = {.int8_stages = &kFunctions},
};

}  // namespace optfarm::runtime
