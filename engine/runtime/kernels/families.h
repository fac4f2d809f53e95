// The families of kernels: one function and one .cc file each. Each function
// adds its family's kernels to the catalog; catalog.cc calls them all.

#ifndef OPTFARM_ENGINE_RUNTIME_KERNELS_FAMILIES_H_
#define OPTFARM_ENGINE_RUNTIME_KERNELS_FAMILIES_H_

#include "engine/runtime/kernel.h"

namespace optfarm::runtime {

void AddActivationKernels(KernelCatalog* catalog);
void AddArgMaxKernels(KernelCatalog* catalog);
void AddAudioKernels(KernelCatalog* catalog);
void AddBinaryKernels(KernelCatalog* catalog);
void AddCastKernels(KernelCatalog* catalog);
void AddConcatKernels(KernelCatalog* catalog);
void AddControlKernels(KernelCatalog* catalog);
void AddConvolutionKernels(KernelCatalog* catalog);
void AddDecodeWavKernels(KernelCatalog* catalog);
void AddDepthwiseConvolutionKernels(KernelCatalog* catalog);
void AddFakeQuantKernels(KernelCatalog* catalog);
void AddFusedConvolutionKernels(KernelCatalog* catalog);
void AddGatherKernels(KernelCatalog* catalog);
void AddImageResizeKernels(KernelCatalog* catalog);
void AddLookupTableKernels(KernelCatalog* catalog);
void AddMatMulKernels(KernelCatalog* catalog);
void AddNormalizationKernels(KernelCatalog* catalog);
void AddPaddingKernels(KernelCatalog* catalog);
void AddPoolingKernels(KernelCatalog* catalog);
void AddPrintKernels(KernelCatalog* catalog);
void AddQuantizedKernels(KernelCatalog* catalog);
void AddRandomKernels(KernelCatalog* catalog);
void AddReductionKernels(KernelCatalog* catalog);
void AddSelectionKernels(KernelCatalog* catalog);
void AddShapeKernels(KernelCatalog* catalog);
void AddSlicingKernels(KernelCatalog* catalog);
void AddSpaceToBatchKernels(KernelCatalog* catalog);
void AddStackKernels(KernelCatalog* catalog);
void AddTensorArrayKernels(KernelCatalog* catalog);
void AddTransposeKernels(KernelCatalog* catalog);
void AddUnaryKernels(KernelCatalog* catalog);
void AddVariableKernels(KernelCatalog* catalog);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_KERNELS_FAMILIES_H_
