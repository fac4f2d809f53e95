// The fusions, by family; fusions.cc lists them in their order.

#ifndef OPTFARM_ENGINE_RUNTIME_FUSION_FAMILIES_H_
#define OPTFARM_ENGINE_RUNTIME_FUSION_FAMILIES_H_

#include "engine/runtime/fusion/fusions.h"

namespace optfarm::runtime {

// Conv2D -> bias -> sum -> rectifier on floats (float_convolution_fusion.cc).
void FuseFloatConvolutions(const FusionContext& context, PlanEditor* plan);
// DepthwiseConv2dNative -> bias -> rectifier on floats
// (float_depthwise_fusion.cc).
void FuseFloatDepthwise(const FusionContext& context, PlanEditor* plan);
// MatMul -> bias -> sum -> rectifier on floats (float_matmul_fusion.cc).
void FuseFloatMatMuls(const FusionContext& context, PlanEditor* plan);
// The products of an LSTM's steps (recurrent_fusion.cc).
void FuseRecurrentLayers(const FusionContext& context, PlanEditor* plan);
// MaxPool and AvgPool on floats (float_pooling_fusion.cc).
void ReplaceFloatPools(const FusionContext& context, PlanEditor* plan);
// Functions of elements that follow one another, on floats
// (element_fusion.cc).
void FuseElements(const FusionContext& context, PlanEditor* plan);
// Bias -> Softmax on floats (softmax_fusion.cc).
void FuseSoftmaxes(const FusionContext& context, PlanEditor* plan);
// AudioSpectrogram and Mfcc (audio_fusion.cc).
void ReplaceAudio(const FusionContext& context, PlanEditor* plan);

// Concat of images along channels, whose inputs the above make
// (join_fusion.cc).
void JoinInPlace(const FusionContext& context, PlanEditor* plan);
// QuantizeV2 and layers of codes, as the above made them
// (int8_image_fusion.cc).
void FuseInt8Images(const FusionContext& context, PlanEditor* plan);
// Depthwise convolutions and convolutions of single pixels on floats, as the
// above made them (separable_fusion.cc).
void FuseSeparables(const FusionContext& context, PlanEditor* plan);
// Convolutions and pools on floats, as the above made them (pooled_fusion.cc).
void FusePooledConvolutions(const FusionContext& context, PlanEditor* plan);
// Convolutions of 3x3 pixels by Winograd's filtering, on floats, as the above
// made them (winograd_fusion.cc).
void UseWinograd(const FusionContext& context, PlanEditor* plan);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_FUSION_FAMILIES_H_
