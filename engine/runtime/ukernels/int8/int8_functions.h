// The fastest functions on 8-bit codes that a processor can run.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_FUNCTIONS_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_FUNCTIONS_H_

#include "engine/runtime/ukernels/cpu_features.h"
#include "engine/runtime/ukernels/int8/int8_depthwise.h"
#include "engine/runtime/ukernels/int8/int8_stage.h"
#include "engine/runtime/ukernels/int8/int8_strip.h"
#include "engine/runtime/ukernels/int8/int8_tile.h"

namespace optfarm::runtime {

struct Int8Functions {
  Int8TileFunction tile = RunInt8TilePortable;
  // Whether it takes Int8Tile::finish.
  bool tile_finishes = false;
  // nullptr where there is none.
  Int8StripFunction strip = nullptr;
  const Int8StageFunctions* stages = &kInt8StagesPortable;
  Int8DepthwiseFunction depthwise = RunInt8DepthwisePortable;
  // Whether it takes Int8DepthwiseTile::finish.
  bool depthwise_finishes = false;
  // Whether it takes Int8DepthwiseTile::below.
  bool depthwise_pairs = false;
};

Int8Functions Int8FunctionsFor(const CpuFeatures& cpu);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_FUNCTIONS_H_
