// The catalog of all kernels: every family, one entry each. docs/ops.md is
// printed from it.

#include "engine/runtime/reference/catalog.h"

#include "engine/runtime/reference/families.h"
#include "engine/runtime/reference/layer_families.h"

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
    {{"any resize", "weights of each axis in double, products in the type"},
     AddAnyResizeKernels},
    {{"arg max", "exact; the first of equal elements wins"}, AddArgMaxKernels},
    {{"audio", "double precision inside; FFT of the next power of two"},
     AddAudioKernels},
    {{"banded diagonals", "data movement"}, AddBandedDiagonalKernels},
    {{"binary",
      "one rounding per element; integers wrap around modulo their width",
      /*writes_over_inputs=*/true},
     AddBinaryKernels},
    {{"bitcast", "reinterprets bytes"}, AddBitcastKernels},
    {{"bitwise", "exact", /*writes_over_inputs=*/true}, AddBitwiseKernels},
    {{"boxes",
      "float; the position of each crop pixel as TensorFlow computes it"},
     AddBoxKernels},
    {{"broadcast", "data movement"}, AddBroadcastKernels},
    {{"cast",
      "x86's conversions: values that do not fit become the smallest int"},
     AddCastKernels},
    {{"color", "float, one pixel at a time; a channel's mean in double"},
     AddColorKernels},
    {{"comparison", "exact; strings and complex numbers only by equality"},
     AddComparisonKernels},
    {{"complex", "Fourier transforms in double precision; any length"},
     AddComplexKernels},
    {{"concat", "data movement"}, AddConcatKernels},
    {{"control", "values are passed through"}, AddControlKernels},
    {{"convolution", "Eigen matrix multiply of patches, one sum per output"},
     AddConvolutionKernels},
    {{"convolution 3d", "direct summation over the window"},
     AddConvolution3dKernels},
    {{"cross entropy", "the row's maximum is subtracted before exponentials"},
     AddCrossEntropyKernels},
    {{"ctc beam search", "log probabilities; ties in the order of the labels"},
     AddCtcBeamSearchKernels},
    {{"ctc decoder", "the first of equal classes wins"}, AddCtcDecoderKernels},
    {{"cumulative", "one running result from the first element to the last"},
     AddCumulativeKernels},
    {{"decode csv", "numbers are parsed by abseil"}, AddDecodeCsvKernels},
#ifdef OPTFARM_EXTRA_OPS
    {{"decode gif", "giflib; each frame is drawn over the previous one"},
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
      "one rounding per accumulated product, as Eigen's packets do"},
     AddDepthwiseConvolutionKernels},
    {{"diagonal", "data movement"}, AddDiagonalKernels},
    {{"einsum", "one sum per output element, in the order of the labels"},
     AddEinsumKernels},
    {{"encode image", "libjpeg's accurate integer transform, libpng"},
     AddEncodeImageKernels},
    {{"fake quantization", "float, nudged so that 0 is a quantized value"},
     AddFakeQuantKernels},
#ifdef OPTFARM_EXTRA_OPS
    {{"farm hash", "FarmHash's Fingerprint64"}, AddFarmHashKernels},
#endif
    {{"fractional pooling",
      "cells are drawn by TensorFlow's rule; other draws for the same seed"},
     AddFractionalPoolingKernels},
    {{"fused convolution", "resizing, padding and convolution in sequence"},
     AddFusedConvolutionKernels},
    {{"gather", "data movement"}, AddGatherKernels},
    {{"image resize",
      "float weights from the output position; both corner conventions"},
     AddImageResizeKernels},
    {{"linear algebra",
      "Eigen's LU decomposition with partial pivoting, in double"},
     AddLinearAlgebraKernels},
    {{"linear quantization",
      "float; one division or product per element, rounded half to even"},
     AddLinearQuantizationKernels},
    {{"lookup table", "keys and values are stored unchanged"},
     AddLookupTableKernels},
    {{"matrix product",
      "Eigen's blocked matrix multiply, one sum per element; integers exact"},
     AddMatMulKernels},
    {{"more elementwise",
      "one rounding per element; the C library's functions"},
     AddMoreElementwiseKernels},
    {{"moving", "data movement"}, AddMovingKernels},
    {{"non-max suppression",
      "float overlaps in the order of the scores, equal scores by index"},
     AddNonMaxSuppressionKernels},
    {{"normalization", "float; sums of a batch in double"},
     AddNormalizationKernels},
    {{"padding", "data movement"}, AddPaddingKernels},
    {{"parse example", "values are passed through"}, AddParseExampleKernels},
    {{"partition", "data movement"}, AddPartitionKernels},
    {{"pooling", "float; cells outside the image are ignored"},
     AddPoolingKernels},
    {{"pooling 3d", "as pooling"}, AddPooling3dKernels},
    {{"print", "values are passed through"}, AddPrintKernels},
    {{"quantize and dequantize", "the input's type, one rounding per step"},
     AddQuantizeAndDequantizeKernels},
    {{"quantized", "quantized values; 32-bit accumulators, gemmlowp"},
     AddQuantizedKernels},
    {{"random",
      "Philox 4x32-10; other values than TensorFlow's for the same seed"},
     AddRandomKernels},
    {{"random draws",
      "Philox 4x32-10; other values than TensorFlow's for the same seed"},
     AddRandomDrawKernels},
    {{"recurrent cells",
      "one Eigen matrix multiply per step; gates use the C library's "
      "functions"},
     AddRecurrentCellKernels},
    {{"recurrent sequences",
      "Eigen matrix multiplies; gates use the C library's functions"},
     AddRecurrentSequenceKernels},
    {{"reduction", "eight partial results per row, combined pairwise"},
     AddReductionKernels},
    {{"scatter", "elements are copied or added in the order of the indices"},
     AddScatterKernels},
    {{"segments", "slices are combined in the order of the data"},
     AddSegmentKernels},
    {{"selection", "data movement"}, AddSelectionKernels},
    {{"serialized tensors", "values are passed through"},
     AddSerializedTensorKernels},
    {{"sets", "exact; floats are compared by value"}, AddSetKernels},
    {{"shape", "no arithmetic on elements"}, AddShapeKernels},
    {{"slicing", "data movement"}, AddSlicingKernels},
    {{"smooth resize",
      "float; the cubic kernel's weights in TensorFlow's 1024 steps"},
     AddSmoothResizeKernels},
    {{"space to batch", "data movement"}, AddSpaceToBatchKernels},
    {{"sparse", "entries are processed in order"}, AddSparseKernels},
    {{"special functions",
      "series and continued fractions in double precision"},
     AddSpecialFunctionKernels},
    {{"stack", "values are passed through"}, AddStackKernels},
    {{"string hashes", "MurmurHash64A, SipHash-2-4"}, AddStringHashKernels},
    {{"string numbers", "the C library's formats; rounds to nearest"},
     AddStringNumberKernels},
#ifdef OPTFARM_EXTRA_OPS
    {{"string patterns", "RE2"}, AddStringPatternKernels},
#endif
    {{"strings", "bytes, or UTF-8 where the op counts characters"},
     AddStringKernels},
    {{"sums", "inputs are added in order; L2Loss in double"}, AddSumKernels},
    {{"tensor array", "data movement"}, AddTensorArrayKernels},
    {{"tensor list", "data movement"}, AddTensorListKernels},
    {{"transpose", "data movement"}, AddTransposeKernels},
    {{"transposed convolution", "Eigen matrix multiply, a row at a time"},
     AddTransposedConvolutionKernels},
    {{"unary",
      "Eigen's packet functions for exp, log, tanh and similar, else the C "
      "library's",
      /*writes_over_inputs=*/true},
     AddUnaryKernels},
    {{"variables", "one rounding per element; integers wrap around"},
     AddVariableKernels},
    {{"window pooling", "averages in double; the first of equal maxima"},
     AddWindowPoolingKernels},
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
