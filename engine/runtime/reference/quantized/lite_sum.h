// ADD of two tensors of 8 bits as XNNPACK computes it, which TensorFlow Lite's
// interpreter runs: in fixed point, with halves rounded up.

#ifndef OPTFARM_ENGINE_RUNTIME_REFERENCE_QUANTIZED_LITE_SUM_H_
#define OPTFARM_ENGINE_RUNTIME_REFERENCE_QUANTIZED_LITE_SUM_H_

namespace optfarm::runtime {

// What the inputs' values are multiplied by to be in steps of the result.
struct LiteSumFactors {
  double a = 0;
  double b = 0;
};

// The ratios of the scales, of which the larger is rounded to 21 bits and the
// other as finely. REQUIRES: scales above 0 whose ratios are finite.
LiteSumFactors FactorsOfLiteSum(float scale_a, float scale_b,
                                float result_scale);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_REFERENCE_QUANTIZED_LITE_SUM_H_
