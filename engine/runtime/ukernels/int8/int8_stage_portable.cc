// Stages as the compiler makes them.

#include "engine/runtime/ukernels/int8/int8_stage_loops.h"

namespace optfarm::runtime {
namespace {

struct Portable : Int8StageLoops<Portable> {};

}  // namespace

const Int8StageFunctions kInt8StagesPortable = Portable::Functions();

}  // namespace optfarm::runtime
