// The families of kernels: one function and one .cc file each. Each function
// adds its family's kernels to the catalog; catalog.cc calls them all.

#ifndef OPTFARM_ENGINE_RUNTIME_REFERENCE_FAMILIES_H_
#define OPTFARM_ENGINE_RUNTIME_REFERENCE_FAMILIES_H_

#include "engine/runtime/core/kernel.h"

namespace optfarm::runtime {

void AddActivationKernels(KernelCatalog* catalog);
void AddAnyAxesKernels(KernelCatalog* catalog);
void AddArgMaxKernels(KernelCatalog* catalog);
void AddAttentionKernels(KernelCatalog* catalog);
void AddAudioKernels(KernelCatalog* catalog);
void AddBandedDiagonalKernels(KernelCatalog* catalog);
void AddBinaryKernels(KernelCatalog* catalog);
void AddBitcastKernels(KernelCatalog* catalog);
void AddBitwiseKernels(KernelCatalog* catalog);
void AddBlockQuantizationKernels(KernelCatalog* catalog);
void AddBoxKernels(KernelCatalog* catalog);
void AddBroadcastKernels(KernelCatalog* catalog);
void AddCastKernels(KernelCatalog* catalog);
void AddChannelsFirstWindowKernels(KernelCatalog* catalog);
void AddColorKernels(KernelCatalog* catalog);
void AddComparisonKernels(KernelCatalog* catalog);
void AddComplexKernels(KernelCatalog* catalog);
void AddConcatKernels(KernelCatalog* catalog);
void AddControlKernels(KernelCatalog* catalog);
void AddConvolution3dKernels(KernelCatalog* catalog);
void AddConvolutionKernels(KernelCatalog* catalog);
void AddCrossEntropyKernels(KernelCatalog* catalog);
void AddCtcBeamSearchKernels(KernelCatalog* catalog);
void AddCtcDecoderKernels(KernelCatalog* catalog);
void AddCumulativeKernels(KernelCatalog* catalog);
void AddDecodeCsvKernels(KernelCatalog* catalog);
void AddDecodeGifKernels(KernelCatalog* catalog);
void AddDecodeImageKernels(KernelCatalog* catalog);
void AddDecodeWavKernels(KernelCatalog* catalog);
void AddDecompositionKernels(KernelCatalog* catalog);
void AddDepthwiseConvolutionKernels(KernelCatalog* catalog);
void AddDiagonalKernels(KernelCatalog* catalog);
void AddEinsumKernels(KernelCatalog* catalog);
void AddElementIndexKernels(KernelCatalog* catalog);
void AddEncodeImageKernels(KernelCatalog* catalog);
void AddFakeQuantKernels(KernelCatalog* catalog);
void AddFarmHashKernels(KernelCatalog* catalog);
void AddFractionalPoolingKernels(KernelCatalog* catalog);
void AddFusedConvolutionKernels(KernelCatalog* catalog);
void AddGatherKernels(KernelCatalog* catalog);
void AddGridSampleKernels(KernelCatalog* catalog);
void AddImageResizeKernels(KernelCatalog* catalog);
void AddLayerNormalizationKernels(KernelCatalog* catalog);
void AddLinearAlgebraKernels(KernelCatalog* catalog);
void AddLinearQuantizationKernels(KernelCatalog* catalog);
void AddLookupTableKernels(KernelCatalog* catalog);
void AddMatMulKernels(KernelCatalog* catalog);
void AddMoreElementwiseKernels(KernelCatalog* catalog);
void AddMovingKernels(KernelCatalog* catalog);
void AddNllLossKernels(KernelCatalog* catalog);
void AddNonMaxSuppressionKernels(KernelCatalog* catalog);
void AddNormalizationKernels(KernelCatalog* catalog);
void AddOtherActivationKernels(KernelCatalog* catalog);
void AddPaddingKernels(KernelCatalog* catalog);
void AddParseExampleKernels(KernelCatalog* catalog);
void AddPartitionKernels(KernelCatalog* catalog);
void AddPooling3dKernels(KernelCatalog* catalog);
void AddPoolingKernels(KernelCatalog* catalog);
void AddPrintKernels(KernelCatalog* catalog);
void AddQuantizeAndDequantizeKernels(KernelCatalog* catalog);
void AddQuantizedKernels(KernelCatalog* catalog);
void AddRandomDrawKernels(KernelCatalog* catalog);
void AddRandomKernels(KernelCatalog* catalog);
void AddRecurrentCellKernels(KernelCatalog* catalog);
void AddReductionKernels(KernelCatalog* catalog);
void AddRegionKernels(KernelCatalog* catalog);
void AddRotaryEmbeddingKernels(KernelCatalog* catalog);
void AddScatterKernels(KernelCatalog* catalog);
void AddSegmentKernels(KernelCatalog* catalog);
void AddSelectionKernels(KernelCatalog* catalog);
void AddSerializedTensorKernels(KernelCatalog* catalog);
void AddSetKernels(KernelCatalog* catalog);
void AddShapeKernels(KernelCatalog* catalog);
void AddShortTimeFourierKernels(KernelCatalog* catalog);
void AddSlicingKernels(KernelCatalog* catalog);
void AddSmoothResizeKernels(KernelCatalog* catalog);
void AddSpaceToBatchKernels(KernelCatalog* catalog);
void AddSparseKernels(KernelCatalog* catalog);
void AddSpecialFunctionKernels(KernelCatalog* catalog);
void AddStackKernels(KernelCatalog* catalog);
void AddStringHashKernels(KernelCatalog* catalog);
void AddStringKernels(KernelCatalog* catalog);
void AddStringNumberKernels(KernelCatalog* catalog);
void AddStringPatternKernels(KernelCatalog* catalog);
void AddSumKernels(KernelCatalog* catalog);
void AddTensorArrayKernels(KernelCatalog* catalog);
void AddTensorListKernels(KernelCatalog* catalog);
void AddTransposeKernels(KernelCatalog* catalog);
void AddTriangleKernels(KernelCatalog* catalog);
void AddUnaryKernels(KernelCatalog* catalog);
void AddUniqueElementKernels(KernelCatalog* catalog);
void AddVariableKernels(KernelCatalog* catalog);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_REFERENCE_FAMILIES_H_
