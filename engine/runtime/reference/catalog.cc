// The catalog of all kernels: every family, one entry each. docs/ops.md is
// printed from it.

#include "engine/runtime/reference/catalog.h"

#include "engine/runtime/reference/families.h"

namespace optfarm::runtime {
namespace {

struct FamilyEntry {
  KernelFamily family;
  void (*add)(KernelCatalog*);
};

constexpr FamilyEntry kFamilies[] = {
    {{"activation",
      "Eigen's packet exponentials; softmax subtracts the row's maximum first",
      /*writes_over_inputs=*/true},
     AddActivationKernels},
    {{"arg max", "exact; the first of equal elements wins"}, AddArgMaxKernels},
    {{"audio", "double precision inside; a transform of the next power of two"},
     AddAudioKernels},
    {{"banded diagonals", "elements are moved"}, AddBandedDiagonalKernels},
    {{"binary",
      "one rounding per element; integers wrap around modulo their width",
      /*writes_over_inputs=*/true},
     AddBinaryKernels},
    {{"bitcast", "bytes are kept"}, AddBitcastKernels},
    {{"bitwise", "exact", /*writes_over_inputs=*/true}, AddBitwiseKernels},
    {{"boxes",
      "float; the position of each crop pixel as TensorFlow computes it"},
     AddBoxKernels},
    {{"broadcast", "elements are moved"}, AddBroadcastKernels},
    {{"cast", "x86's conversions: what does not fit becomes the smallest int"},
     AddCastKernels},
    {{"color", "float, one pixel at a time; a channel's mean in double"},
     AddColorKernels},
    {{"comparison", "exact; texts and complex numbers are equal or not"},
     AddComparisonKernels},
    {{"complex", "Fourier transforms in double precision; any length"},
     AddComplexKernels},
    {{"concat", "elements are moved"}, AddConcatKernels},
    {{"control", "values are passed on"}, AddControlKernels},
    {{"convolution",
      "matrix products of patches through Eigen, one sum per output"},
     AddConvolutionKernels},
    {{"convolution 3d", "direct sums over the window"},
     AddConvolution3dKernels},
    {{"cross entropy", "the row's maximum is subtracted before exponentials"},
     AddCrossEntropyKernels},
    {{"ctc beam search",
      "logarithms of probabilities; equal ones in the order of their labels"},
     AddCtcBeamSearchKernels},
    {{"ctc decoder", "the first of equal classes wins"}, AddCtcDecoderKernels},
    {{"cumulative", "one running result from the first element to the last"},
     AddCumulativeKernels},
    {{"decode csv", "numbers as abseil reads them"}, AddDecodeCsvKernels},
#ifdef OPTFARM_EXTRA_OPS
    {{"decode gif", "giflib; a frame covers the one before"},
     AddDecodeGifKernels},
#endif
    {{"decode image",
      "libjpeg's accurate integer transform, libpng; grey by ITU-R BT.601"},
     AddDecodeImageKernels},
    {{"decode wav", "16-bit samples divided by 32768"}, AddDecodeWavKernels},
    {{"decompositions",
      "Eigen's decompositions in double; signs and order of vectors may "
      "differ"},
     AddDecompositionKernels},
    {{"depthwise convolution",
      "products added with one rounding each, as Eigen's packets add them"},
     AddDepthwiseConvolutionKernels},
    {{"diagonal", "elements are moved"}, AddDiagonalKernels},
    {{"einsum", "one sum per output element, in the order of the labels"},
     AddEinsumKernels},
    {{"encode image", "libjpeg's accurate integer transform, libpng"},
     AddEncodeImageKernels},
    {{"fake quantization", "float, nudged so that 0 has a code of its own"},
     AddFakeQuantKernels},
#ifdef OPTFARM_EXTRA_OPS
    {{"farm hash", "FarmHash's Fingerprint64"}, AddFarmHashKernels},
#endif
    {{"fractional pooling",
      "cells drawn as TensorFlow draws them; other draws for one seed"},
     AddFractionalPoolingKernels},
    {{"fused convolution", "resizing, padding and convolution in sequence"},
     AddFusedConvolutionKernels},
    {{"gather", "elements are moved"}, AddGatherKernels},
    {{"image resize",
      "float weights from the output position; both corner conventions"},
     AddImageResizeKernels},
    {{"linear algebra",
      "Eigen's LU decomposition with partial pivoting, in double"},
     AddLinearAlgebraKernels},
    {{"lookup table", "keys and values are kept as they are"},
     AddLookupTableKernels},
    {{"matrix product",
      "Eigen's blocked product, one sum per element; integers exact"},
     AddMatMulKernels},
    {{"more elementwise",
      "one rounding per element; the C library's functions"},
     AddMoreElementwiseKernels},
    {{"moving", "elements are moved"}, AddMovingKernels},
    {{"non-max suppression",
      "float overlaps in the order of the scores, equal scores by index"},
     AddNonMaxSuppressionKernels},
    {{"normalization", "float; sums of a batch in double"},
     AddNormalizationKernels},
    {{"padding", "elements are moved"}, AddPaddingKernels},
    {{"parse example", "values are passed on"}, AddParseExampleKernels},
    {{"partition", "elements are moved"}, AddPartitionKernels},
    {{"pooling", "float; cells outside the image take no part"},
     AddPoolingKernels},
    {{"pooling 3d", "as pooling"}, AddPooling3dKernels},
    {{"print", "values are passed on"}, AddPrintKernels},
    {{"quantize and dequantize", "the input's type, one rounding per step"},
     AddQuantizeAndDequantizeKernels},
    {{"quantized", "integer codes; 32-bit sums through gemmlowp"},
     AddQuantizedKernels},
    {{"random", "Philox 4x32-10; other values than TensorFlow's for one seed"},
     AddRandomKernels},
    {{"random draws",
      "Philox 4x32-10; other values than TensorFlow's for one seed"},
     AddRandomDrawKernels},
    {{"recurrent cells",
      "one Eigen product per step, gates by the C library's functions"},
     AddRecurrentCellKernels},
    {{"reduction", "eight running results per row, joined pairwise"},
     AddReductionKernels},
    {{"scatter", "elements are moved or added in the order of the indices"},
     AddScatterKernels},
    {{"segments", "slices are joined in the order of the data"},
     AddSegmentKernels},
    {{"selection", "elements are moved"}, AddSelectionKernels},
    {{"serialized tensors", "values are passed on"},
     AddSerializedTensorKernels},
    {{"sets", "exact; floats are compared by value"}, AddSetKernels},
    {{"shape", "no arithmetic on elements"}, AddShapeKernels},
    {{"slicing", "elements are moved"}, AddSlicingKernels},
    {{"smooth resize",
      "float; the cubic kernel's weights in TensorFlow's 1024 steps"},
     AddSmoothResizeKernels},
    {{"space to batch", "elements are moved"}, AddSpaceToBatchKernels},
    {{"sparse", "entries are taken in their order"}, AddSparseKernels},
    {{"special functions",
      "series and continued fractions in double precision"},
     AddSpecialFunctionKernels},
    {{"stack", "values are passed on"}, AddStackKernels},
    {{"string hashes", "MurmurHash64A, SipHash-2-4"}, AddStringHashKernels},
    {{"string numbers", "the C library's formats; the nearest number"},
     AddStringNumberKernels},
#ifdef OPTFARM_EXTRA_OPS
    {{"string patterns", "RE2"}, AddStringPatternKernels},
#endif
    {{"strings", "bytes, or UTF-8 where the op counts characters"},
     AddStringKernels},
    {{"sums", "inputs are added one after another; L2Loss in double"},
     AddSumKernels},
    {{"tensor array", "elements are moved"}, AddTensorArrayKernels},
    {{"tensor list", "elements are moved"}, AddTensorListKernels},
    {{"transpose", "elements are moved"}, AddTransposeKernels},
    {{"unary",
      "Eigen's packet functions for exp, log, tanh and the like, else the C "
      "library's",
      /*writes_over_inputs=*/true},
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
