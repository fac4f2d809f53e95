// Stages as the compiler makes them.

#include "engine/runtime/ukernels/int8/int8_stage_loops.h"

namespace optfarm::runtime {
namespace {

struct Avx2 : Int8StageLoops<Avx2> {};

}  // namespace

const Int8StageFunctions kInt8StagesAvx2 = Avx2::Functions();

}  // namespace optfarm::runtime
