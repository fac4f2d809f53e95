#include "engine/formats/onnx/quantization.h"

#include "engine/graph/attr.h"

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
