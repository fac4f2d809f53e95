// The fusions, one in each *_fusion.cc; fusions.cc lists them in their order.

#ifndef OPTFARM_ENGINE_RUNTIME_FUSION_FAMILIES_H_
#define OPTFARM_ENGINE_RUNTIME_FUSION_FAMILIES_H_

#include "engine/runtime/fusion/fusion.h"

namespace optfarm::runtime {

extern const Fusion kAttentionFusion;
extern const Fusion kAudioFusion;
extern const Fusion kElementFusion;
extern const Fusion kFloatConvolutionFusion;
extern const Fusion kFloatDepthwiseFusion;
extern const Fusion kFloatMatMulFusion;
extern const Fusion kFloatPoolFusion;
extern const Fusion kInt4MatMulFusion;
extern const Fusion kInt8Fusion;
extern const Fusion kJoinFusion;
extern const Fusion kQdqFusion;
extern const Fusion kRecurrentFusion;
extern const Fusion kReshapeFusion;
extern const Fusion kRowBandFusion;
extern const Fusion kRowsFusion;
extern const Fusion kSequenceFusion;
extern const Fusion kSoftmaxFusion;
extern const Fusion kWinogradFusion;

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_FUSION_FAMILIES_H_
