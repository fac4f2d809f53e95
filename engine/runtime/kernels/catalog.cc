// The catalog of all kernels: every family, one line each.

#include "engine/runtime/kernels/families.h"

namespace optfarm::runtime {

const KernelCatalog& AllKernels() {
  static const KernelCatalog* const kCatalog = [] {
    auto* catalog = new KernelCatalog;
    AddActivationKernels(catalog);
    AddArgMaxKernels(catalog);
    AddAudioKernels(catalog);
    AddBinaryKernels(catalog);
    AddCastKernels(catalog);
    AddConcatKernels(catalog);
    AddControlKernels(catalog);
    AddConvolutionKernels(catalog);
    AddDecodeWavKernels(catalog);
    AddDepthwiseConvolutionKernels(catalog);
    AddFakeQuantKernels(catalog);
    AddGatherKernels(catalog);
    AddImageResizeKernels(catalog);
    AddMatMulKernels(catalog);
    AddNormalizationKernels(catalog);
    AddPaddingKernels(catalog);
    AddPoolingKernels(catalog);
    AddPrintKernels(catalog);
    AddQuantizedKernels(catalog);
    AddRandomKernels(catalog);
    AddReductionKernels(catalog);
    AddSelectionKernels(catalog);
    AddShapeKernels(catalog);
    AddSlicingKernels(catalog);
    AddSpaceToBatchKernels(catalog);
    AddTransposeKernels(catalog);
    AddUnaryKernels(catalog);
    return catalog;
  }();
  return *kCatalog;
}

}  // namespace optfarm::runtime
