// The catalog of all kernels: every family, one entry each. docs/ops.md is
// printed from it.

#include "engine/runtime/kernels/families.h"

namespace optfarm::runtime {
namespace {

struct FamilyEntry {
  KernelFamily family;
  void (*add)(KernelCatalog*);
};

constexpr FamilyEntry kFamilies[] = {
    {{"activation",
      "Eigen's packet exponentials; softmax subtracts the row's maximum first"},
     AddActivationKernels},
    {{"arg max", "exact; the first of equal elements wins"}, AddArgMaxKernels},
    {{"audio", "double precision inside; a transform of the next power of two"},
     AddAudioKernels},
    {{"binary",
      "one rounding per element; integers wrap around modulo their width"},
     AddBinaryKernels},
    {{"cast", "x86's conversions: what does not fit becomes the smallest int"},
     AddCastKernels},
    {{"concat", "elements are moved"}, AddConcatKernels},
    {{"control", "values are passed on"}, AddControlKernels},
    {{"convolution",
      "matrix products of patches through Eigen, one sum per output"},
     AddConvolutionKernels},
    {{"decode wav", "16-bit samples divided by 32768"}, AddDecodeWavKernels},
    {{"depthwise convolution",
      "products added with one rounding each, as Eigen's packets add them"},
     AddDepthwiseConvolutionKernels},
    {{"fake quantization", "float, nudged so that 0 has a code of its own"},
     AddFakeQuantKernels},
    {{"fused convolution", "resizing, padding and convolution in sequence"},
     AddFusedConvolutionKernels},
    {{"gather", "elements are moved"}, AddGatherKernels},
    {{"image resize",
      "float weights from the output position; both corner conventions"},
     AddImageResizeKernels},
    {{"lookup table", "keys and values are kept as they are"},
     AddLookupTableKernels},
    {{"matrix product", "Eigen's blocked product, one sum per element"},
     AddMatMulKernels},
    {{"normalization", "float; sums of a batch in double"},
     AddNormalizationKernels},
    {{"padding", "elements are moved"}, AddPaddingKernels},
    {{"pooling", "float; cells outside the image take no part"},
     AddPoolingKernels},
    {{"print", "values are passed on"}, AddPrintKernels},
    {{"quantized", "integer codes; 32-bit sums through gemmlowp"},
     AddQuantizedKernels},
    {{"random", "Philox 4x32-10; other values than TensorFlow's for one seed"},
     AddRandomKernels},
    {{"reduction", "eight running results per row, joined pairwise"},
     AddReductionKernels},
    {{"selection", "elements are moved"}, AddSelectionKernels},
    {{"shape", "no arithmetic on elements"}, AddShapeKernels},
    {{"slicing", "elements are moved"}, AddSlicingKernels},
    {{"space to batch", "elements are moved"}, AddSpaceToBatchKernels},
    {{"stack", "values are passed on"}, AddStackKernels},
    {{"tensor array", "elements are moved"}, AddTensorArrayKernels},
    {{"transpose", "elements are moved"}, AddTransposeKernels},
    {{"unary",
      "Eigen's packet functions for exp, log, tanh and the like, else the C "
      "library's"},
     AddUnaryKernels},
    {{"variables", "one rounding per element; integers wrap around"},
     AddVariableKernels},
};

}  // namespace

const KernelCatalog& AllKernels() {
  static const KernelCatalog* const kCatalog = [] {
    auto* catalog = new KernelCatalog;
    for (const FamilyEntry& entry : kFamilies) {
      catalog->BeginFamily(entry.family);
      entry.add(catalog);
    }
    return catalog;
  }();
  return *kCatalog;
}

}  // namespace optfarm::runtime
