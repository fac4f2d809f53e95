// Stages as the compiler makes them for NEON.

#include "engine/runtime/ukernels/int8/int8_stage_loops.h"

namespace optfarm::runtime {
namespace {

struct Neon : Int8StageLoops<Neon> {};

}  // namespace

const Int8StageFunctions kInt8StagesNeon = Neon::Functions();

}  // namespace optfarm::runtime
