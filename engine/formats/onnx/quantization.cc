#include "engine/formats/onnx/quantization.h"

#include "base/status_macros.h"

namespace optfarm::formats {
namespace {

// A vector of one element as a scalar: one scale for the whole tensor.
Endpoint AsScalar(NodeLowering& n, Endpoint x) {
  const PartialShape& shape = n.shape(x);
  const bool is_one =
      shape.is_static() && shape.rank() > 0 && shape.elements() == 1;
  return is_one ? n.Add("Reshape", {x, n.Int32s({})}) : x;
}

}  // namespace

OnnxQuantization ReadQuantization(NodeLowering& n, int scale,
                                  DataType quantized) {
  OnnxQuantization q;
  q.scale = AsScalar(n, n.Cast(n.input(scale), tensorflow::DT_FLOAT));
  q.zero_point = n.has_input(scale + 1) ? AsScalar(n, n.input(scale + 1))
                                        : n.builder().Scalar(quantized, 0);
  return q;
}

absl::StatusOr<OnnxQuantization> DynamicRange(NodeLowering& n, Endpoint x) {
  OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(x));
  std::vector<int64_t> axes;
  for (int i = 0; i < rank; ++i) axes.push_back(i);
  const Endpoint zero = n.ScalarLike(x, 0), one = n.ScalarLike(x, 1);
  const Endpoint most = n.ScalarLike(x, 255);
  const Endpoint low =
      n.Add("Minimum", {n.Add("Min", {x, n.Int32s(axes)}), zero});
  const Endpoint high =
      n.Add("Maximum", {n.Add("Max", {x, n.Int32s(axes)}), zero});
  const Endpoint step = n.Add("RealDiv", {n.Add("Sub", {high, low}), most});
  // Of a tensor of zeros.
  const Endpoint scale =
      n.Add("SelectV2", {n.Add("Equal", {step, zero}), one, step});
  const Endpoint place =
      n.Add("Round", {n.Add("RealDiv", {n.Add("Neg", {low}), scale})});
  const Endpoint zero_point =
      n.Cast(n.Add("Minimum", {n.Add("Maximum", {place, zero}), most}),
             tensorflow::DT_UINT8);
  return OnnxQuantization{scale, zero_point};
}

Endpoint Dequantized(NodeLowering& n, Endpoint x, const OnnxQuantization& q,
                     int64_t axis, int bits) {
  return n.Add("DequantizeLinear", {x, q.scale, q.zero_point},
               {{"axis", axis}, {"bits", bits}});
}

Endpoint Quantized(NodeLowering& n, Endpoint x, const OnnxQuantization& q,
                   int64_t axis, int bits) {
  return n.Add("QuantizeLinear", {x, q.scale, q.zero_point},
               {{"axis", axis}, {"bits", bits}});
}

}  // namespace optfarm::formats
