// Quantized models: QuantizeLinear and DequantizeLinear stay what they are, an
// operator on quantized values becomes the float one between them, and products
// of integers are summed as integers.

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/onnx/convolution.h"
#include "engine/formats/onnx/graph_reader.h"
#include "engine/formats/onnx/lite_rounding.h"
#include "engine/formats/onnx/lowering_table.h"
#include "engine/formats/onnx/quantization.h"
#include "engine/formats/onnx/tensors.h"
#include "engine/runtime/core/tensor.h"

namespace optfarm::formats {
namespace {

// Scales for blocks along an axis, repeated for each element.
absl::Status RepeatBlocks(NodeLowering& n, Endpoint* tensor, int64_t axis,
                          int64_t block, int64_t size) {
  const PartialShape& shape = n.shape(*tensor);
  if (!shape.is_static() || size < 1) {
    return absl::UnimplementedError("block_size needs a tensor of known size");
  }
  OPTFARM_ASSIGN_OR_RETURN(const int place,
                           NodeLowering::Axis(axis, shape.rank()));
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < size; ++i) indices.push_back(i / block);
  if (indices.back() >= shape.dim(place)) {
    return absl::InvalidArgumentError(
        absl::StrCat("there are ", shape.dim(place), " scales for ", size,
                     " elements in "
                     "blocks of ",
                     block));
  }
  *tensor = n.Add("GatherV2", {*tensor, n.Int32s(indices), n.Int32(place)});
  return absl::OkStatus();
}

// Values, scales and zero points of the same shape, by arithmetic.
Endpoint DequantizedByElement(NodeLowering& n, Endpoint x, Endpoint scale,
                              Endpoint zero_point) {
  Endpoint value = n.Cast(x, tensorflow::DT_FLOAT);
  if (zero_point.node != graph::kNoNode) {
    value = n.Add("Sub", {value, n.Cast(zero_point, tensorflow::DT_FLOAT)});
  }
  return n.Add("Mul", {value, n.Cast(scale, tensorflow::DT_FLOAT)});
}

// Whole numbers of 4 bits, those with a sign 8 higher, two to a byte as
// DequantizeBlocks has them. Nothing for what is no constant.
std::optional<Endpoint> PackedFourBits(NodeLowering& n, Endpoint tensor) {
  const tensorflow::TensorProto* constant = n.builder().ConstantOf(tensor);
  if (constant == nullptr) return std::nullopt;
  const auto known = runtime::Tensor::FromProto(*constant);
  if (!known.ok()) return std::nullopt;
  const int64_t offset = known->dtype() == tensorflow::DT_INT8 ? 8 : 0;
  const auto values = known->AsInt64s();
  if (!values.ok()) return std::nullopt;
  std::vector<uint8_t> bytes((values->size() + 1) / 2, 0);
  for (size_t i = 0; i < values->size(); ++i) {
    const int64_t value = (*values)[i] + offset;
    if (value < 0 || value > 15) return std::nullopt;
    bytes[i / 2] |= static_cast<uint8_t>(value << (i % 2 * 4));
  }
  const auto shape =
      runtime::Shape::FromDims({static_cast<int64_t>(bytes.size())});
  if (!shape.ok()) return std::nullopt;
  return n.builder().Constant(
      runtime::Tensor::FromValues<uint8_t>(*shape, bytes));
}

// Constants of 4 bits in blocks along the axis, which stay what they are.
// Nothing for others.
std::optional<Endpoint> DequantizedFourBits(NodeLowering& n, int axis,
                                            int64_t block) {
  const Endpoint x = n.input(0), scale = n.input(1);
  const PartialShape& shape = n.shape(x);
  if (n.reader().BitsOf(n.node().input(0)) != 4 || !shape.is_static() ||
      shape.dim(axis) < 1) {
    return std::nullopt;
  }
  PartialShape of_scales = shape;
  of_scales.set_dim(axis, (shape.dim(axis) - 1) / block + 1);
  if (n.shape(scale) != of_scales) return std::nullopt;
  const std::optional<Endpoint> values = PackedFourBits(n, x);
  if (!values.has_value()) return std::nullopt;
  std::optional<Endpoint> zero_points;
  if (n.has_input(2)) {
    if (n.shape(n.input(2)) != of_scales) return std::nullopt;
    zero_points = PackedFourBits(n, n.input(2));
  } else if (n.dtype(x) == tensorflow::DT_INT8) {
    // Where there are none, the op takes the middle.
    zero_points = n.builder().Constant(
        runtime::Tensor::FromValues<uint8_t>(runtime::Shape({0}), {}));
  }
  if (!zero_points.has_value()) return std::nullopt;
  return n.Add("DequantizeBlocks", {*values, scale, *zero_points},
               {{"shape", shape}, {"axis", axis}, {"block_size", block}});
}

absl::Status LowerDequantizeLinear(NodeLowering& n) {
  const Endpoint x = n.input(0);
  const DataType result = n.dtype(n.input(1));
  const int64_t axis = n.Int("axis", 1);
  const int64_t block = n.Int("block_size", 0);
  Endpoint y;
  if (block > 0) {
    OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(x));
    OPTFARM_ASSIGN_OR_RETURN(const int place, NodeLowering::Axis(axis, rank));
    if (result == tensorflow::DT_FLOAT) {
      if (const auto blocks = DequantizedFourBits(n, place, block)) {
        n.SetOutput(0, *blocks);
        return absl::OkStatus();
      }
    }
    const int64_t size = n.shape(x).dim(place);
    Endpoint scale = n.input(1), zero_point;
    OPTFARM_RETURN_IF_ERROR(RepeatBlocks(n, &scale, axis, block, size));
    if (n.has_input(2)) {
      zero_point = n.input(2);
      OPTFARM_RETURN_IF_ERROR(RepeatBlocks(n, &zero_point, axis, block, size));
    }
    y = DequantizedByElement(n, x, scale, zero_point);
  } else {
    const OnnxQuantization q = ReadQuantization(n, 1, n.dtype(x));
    const int bits = n.has_input(0) ? n.reader().BitsOf(n.node().input(0)) : 8;
    y = Dequantized(n, x, q, axis, bits);
  }
  n.SetOutput(0, n.Cast(y, result));
  return absl::OkStatus();
}

// By arithmetic, with a scale for each block along the axis.
absl::Status QuantizeBlocks(NodeLowering& n, Endpoint x, DataType type,
                            int bits) {
  double low = 0, high = 0;
  switch (type) {
    case tensorflow::DT_UINT8:
      high = bits == 4 ? 15 : 255;
      break;
    case tensorflow::DT_INT8:
      low = bits == 4 ? -8 : -128;
      high = -low - 1;
      break;
    case tensorflow::DT_UINT16:
      high = 65535;
      break;
    case tensorflow::DT_INT16:
      low = -32768;
      high = 32767;
      break;
    default:
      return absl::UnimplementedError(
          absl::StrCat("blocks of ", tensorflow::DataType_Name(type)));
  }
  OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(x));
  OPTFARM_ASSIGN_OR_RETURN(const int place,
                           NodeLowering::Axis(n.Int("axis", 1), rank));
  const int64_t block = n.Int("block_size", 0);
  const int64_t size = n.shape(x).dim(place);
  const auto repeated = [&](int i) -> absl::StatusOr<Endpoint> {
    Endpoint of_blocks = n.Cast(n.input(i), tensorflow::DT_FLOAT);
    OPTFARM_RETURN_IF_ERROR(RepeatBlocks(n, &of_blocks, place, block, size));
    return of_blocks;
  };
  OPTFARM_ASSIGN_OR_RETURN(const Endpoint scale, repeated(1));
  Endpoint steps = n.Add(
      "Round", {n.Add("RealDiv", {n.Cast(x, tensorflow::DT_FLOAT), scale})});
  if (n.has_input(2)) {
    OPTFARM_ASSIGN_OR_RETURN(const Endpoint zero_point, repeated(2));
    steps = n.Add("Add", {steps, zero_point});
  }
  steps = n.Add("Maximum", {steps, n.ScalarLike(steps, low)});
  steps = n.Add("Minimum", {steps, n.ScalarLike(steps, high)});
  n.SetOutput(0, n.Cast(steps, type));
  return absl::OkStatus();
}

absl::Status LowerQuantizeLinear(NodeLowering& n) {
  Endpoint x = n.input(0);
  DataType type = tensorflow::DT_UINT8;
  int bits = 8;
  if (n.has_input(2)) {
    type = n.dtype(n.input(2));
    bits = n.reader().BitsOf(n.node().input(2));
  } else if (n.Int("output_dtype", 0) != 0) {
    const int onnx_type = static_cast<int>(n.Int("output_dtype", 0));
    OPTFARM_ASSIGN_OR_RETURN(type, DataTypeOfOnnx(onnx_type));
    bits = BitsOfOnnx(onnx_type) == 4 ? 4 : 8;
  }
  if (n.dtype(x) == tensorflow::DT_INT32) x = n.Cast(x, tensorflow::DT_FLOAT);
  if (n.Int("block_size", 0) > 0) return QuantizeBlocks(n, x, type, bits);
  const OnnxQuantization q = ReadQuantization(n, 1, type);
  const LiteRounded rounded = TakeMoveBack(n, x, q.scale, q.zero_point);
  if (rounded.rounding.empty() && rounded.input_scale == 0) {
    n.SetOutput(0, Quantized(n, x, q, n.Int("axis", 1), bits));
    return absl::OkStatus();
  }
  std::vector<OpAttr> attributes = {{"bits", bits}};
  if (rounded.input_scale > 0) {
    attributes.push_back({"input_scale", rounded.input_scale});
  } else {
    attributes.push_back({"rounding", rounded.rounding});
  }
  n.SetOutput(0, n.Add("QuantizeLinear", {rounded.x, q.scale, q.zero_point},
                       std::move(attributes)));
  return absl::OkStatus();
}

absl::Status LowerDynamicQuantizeLinear(NodeLowering& n) {
  const Endpoint x = n.input(0);
  OPTFARM_ASSIGN_OR_RETURN(const OnnxQuantization q, DynamicRange(n, x));
  n.SetOutput(0, Quantized(n, x, q));
  n.SetOutput(1, q.scale);
  n.SetOutput(2, q.zero_point);
  return absl::OkStatus();
}

// --- Integers in, integers out -----------------------------------------------

// Values without their zero point, as int32. `behind` new dimensions of size 1
// let a vector of zero points stand for rows.
Endpoint Centered(NodeLowering& n, Endpoint x, int zero_point, int behind) {
  const Endpoint wide = n.Cast(x, tensorflow::DT_INT32);
  if (!n.has_input(zero_point)) return wide;
  Endpoint zero = n.Cast(n.input(zero_point), tensorflow::DT_INT32);
  const PartialShape& shape = n.shape(zero);
  if (shape.has_rank() && shape.rank() == 1 && shape.dim(0) != 1) {
    for (int i = 0; i < behind; ++i) zero = n.Unsqueeze(zero, {1 + i});
  }
  return n.Add("Sub", {wide, zero});
}

// Values of 8 bits without their zero point are at most this far from zero.
constexpr double kMostOfByte = 255;
// Floats hold whole numbers below it exactly.
constexpr double kExactInFloat = 1 << 24;

// The zero point of all values; nullopt where there are several, or where the
// model computes it.
std::optional<int64_t> OneZeroPoint(NodeLowering& n, int input) {
  if (!n.has_input(input)) return 0;
  const auto known = n.builder().Known(n.input(input));
  if (!known.has_value()) return std::nullopt;
  const auto values = known->AsInt64s();
  if (!values.ok() || values->empty()) return std::nullopt;
  for (const int64_t value : *values) {
    if (value != values->front()) return std::nullopt;
  }
  return values->front();
}

// Weights, input 1, without their zero point, input 3. Constants stay bytes,
// behind a DequantizeLinear in steps of 1.
Endpoint CenteredWeights(NodeLowering& n, int behind) {
  const Endpoint weights = n.input(1);
  Endpoint zero = n.builder().Scalar(n.dtype(weights), 0);
  if (OneZeroPoint(n, 3) != 0) zero = n.input(3);
  if (n.builder().ConstantOf(weights) == nullptr ||
      n.shape(zero).elements() != 1) {
    return Centered(n, weights, 3, behind);
  }
  if (n.shape(zero) != PartialShape::Scalar()) {
    zero = n.Add("Reshape", {zero, n.Int32s({})});
  }
  return Dequantized(n, weights,
                     {n.builder().Scalar(tensorflow::DT_FLOAT, 1), zero});
}

// The largest sum of magnitudes of the weights that one output is a sum over.
// They are `reduced` neighbours at a distance of `stride` in the tensor.
double LargestSum(NodeLowering& n, int input, int zero_point, int64_t reduced,
                  int64_t stride) {
  if (reduced < 0 || stride < 1) return HUGE_VAL;
  const double unknown = kMostOfByte * static_cast<double>(reduced);
  const tensorflow::TensorProto* constant =
      n.builder().ConstantOf(n.input(input));
  if (constant == nullptr) return unknown;
  const auto weights = runtime::Tensor::FromProto(*constant);
  if (!weights.ok()) return unknown;
  const auto values = weights->AsInt64s();
  if (!values.ok()) return unknown;
  const std::optional<int64_t> zero = OneZeroPoint(n, zero_point);
  if (!zero.has_value()) return unknown;
  std::vector<double> sums(static_cast<size_t>(stride));
  double largest = 0;
  for (size_t i = 0; i < values->size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    if (at % (reduced * stride) == 0) std::fill(sums.begin(), sums.end(), 0);
    double& sum = sums[static_cast<size_t>(at % stride)];
    sum += std::abs(static_cast<double>((*values)[i] - *zero));
    largest = std::max(largest, sum);
  }
  return std::min(largest, unknown);
}

// A sum of products of whole numbers, by a function that adds it for values and
// weights of one type. Floats are fast and exact as long as no sum can exceed
// what they hold: for all 8 bits of `x`, or for 4 bits at a time.
absl::StatusOr<Endpoint> ExactSum(
    NodeLowering& n, Endpoint x, Endpoint weights, double largest_sum,
    const std::function<absl::StatusOr<Endpoint>(Endpoint, Endpoint)>& add) {
  constexpr double kHalfByte = 16;
  const auto sum_of = [&](Endpoint values,
                          DataType type) -> absl::StatusOr<Endpoint> {
    OPTFARM_ASSIGN_OR_RETURN(const Endpoint sum,
                             add(n.Cast(values, type), n.Cast(weights, type)));
    return n.Cast(sum, tensorflow::DT_INT32);
  };
  if (largest_sum * kMostOfByte < kExactInFloat) {
    return sum_of(x, tensorflow::DT_FLOAT);
  }
  if (largest_sum * kHalfByte >= kExactInFloat) {
    return sum_of(x, tensorflow::DT_DOUBLE);
  }
  const Endpoint floats = n.Cast(x, tensorflow::DT_FLOAT);
  const Endpoint high = n.Add(
      "Floor", {n.Add("Mul", {floats, n.ScalarLike(floats, 1 / kHalfByte)})});
  const Endpoint low = n.Add(
      "Sub", {floats, n.Add("Mul", {high, n.ScalarLike(floats, kHalfByte)})});
  OPTFARM_ASSIGN_OR_RETURN(const Endpoint of_high,
                           sum_of(high, tensorflow::DT_FLOAT));
  OPTFARM_ASSIGN_OR_RETURN(const Endpoint of_low,
                           sum_of(low, tensorflow::DT_FLOAT));
  return n.Add(
      "Add",
      {n.Add("Mul", {of_high, n.ScalarLike(of_high, kHalfByte)}), of_low});
}

absl::Status LowerMatMulInteger(NodeLowering& n) {
  const Endpoint a = Centered(n, n.input(0), 2, 1);
  const Endpoint b = CenteredWeights(n, 0);
  OPTFARM_ASSIGN_OR_RETURN(const int rank_a, n.Rank(a));
  OPTFARM_ASSIGN_OR_RETURN(const int rank_b, n.Rank(b));
  if (rank_a < 2 || rank_b < 2) {
    return absl::UnimplementedError("vectors are not supported");
  }
  const bool is_matrix = rank_a == 2 && rank_b == 2;
  // A zero point of more dimensions would give `b` more than the weights have.
  const PartialShape& shape = n.shape(n.input(1));
  const bool is_plain = shape.has_rank() && shape.rank() == rank_b;
  const double largest = is_plain ? LargestSum(n, 1, 3, shape.dim(rank_b - 2),
                                               shape.dim(rank_b - 1))
                                  : HUGE_VAL;
  OPTFARM_ASSIGN_OR_RETURN(
      const Endpoint y,
      ExactSum(n, a, b, largest,
               [&](Endpoint x, Endpoint w) -> absl::StatusOr<Endpoint> {
                 return n.Add(is_matrix ? "MatMul" : "BatchMatMulV2", {x, w});
               }));
  n.SetOutput(0, y);
  return absl::OkStatus();
}

absl::Status LowerConvInteger(NodeLowering& n) {
  OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(n.input(1)));
  const Endpoint x = Centered(n, n.input(0), 2, 0);
  const Endpoint w = CenteredWeights(n, rank - 1);
  const PartialShape& filter = n.shape(n.input(1));
  int64_t products = 1;
  for (int i = 1; i < rank; ++i) {
    if (products < 0 || filter.dim(i) < 0 || filter.dim(i) > (1 << 20) ||
        products > (int64_t{1} << 40)) {
      products = -1;
      break;
    }
    products *= filter.dim(i);
  }
  OPTFARM_ASSIGN_OR_RETURN(const Endpoint y,
                           ExactSum(n, x, w, LargestSum(n, 1, 3, products, 1),
                                    [&](Endpoint values, Endpoint weights) {
                                      return Convolve(n, values, weights,
                                                      Endpoint());
                                    }));
  n.SetOutput(0, y);
  return absl::OkStatus();
}

absl::Status LowerQLinearConv(NodeLowering& n) {
  const Endpoint x = n.input(0), w = n.input(3);
  const OnnxQuantization qx = ReadQuantization(n, 1, n.dtype(x));
  const OnnxQuantization qw = ReadQuantization(n, 4, n.dtype(w));
  const OnnxQuantization qy = ReadQuantization(n, 6, n.dtype(n.input(7)));
  Endpoint bias;
  if (n.has_input(8)) {
    OnnxQuantization q;
    q.scale = n.Add("Mul", {qx.scale, qw.scale});
    const PartialShape& scales = n.shape(q.scale);
    q.zero_point =
        scales.has_rank() && scales.rank() == 1
            ? n.Cast(n.Add("ZerosLike", {q.scale}), tensorflow::DT_INT32)
            : n.builder().Scalar(tensorflow::DT_INT32, 0);
    bias = Dequantized(n, n.input(8), q, 0);
  }
  OPTFARM_ASSIGN_OR_RETURN(
      const Endpoint y,
      Convolve(n, Dequantized(n, x, qx), Dequantized(n, w, qw, 0), bias));
  n.SetOutput(0, Quantized(n, y, qy));
  return absl::OkStatus();
}

absl::Status LowerQLinearMatMul(NodeLowering& n) {
  const Endpoint a = n.input(0), b = n.input(3);
  OPTFARM_ASSIGN_OR_RETURN(const int rank_a, n.Rank(a));
  OPTFARM_ASSIGN_OR_RETURN(const int rank_b, n.Rank(b));
  if (rank_a < 2 || rank_b < 2) {
    return absl::UnimplementedError("vectors are not supported");
  }
  // A scale for each row of the first, and for each column of the second.
  const Endpoint left =
      Dequantized(n, a, ReadQuantization(n, 1, n.dtype(a)), rank_a - 2);
  const Endpoint right =
      Dequantized(n, b, ReadQuantization(n, 4, n.dtype(b)), rank_b - 1);
  const bool is_matrix = rank_a == 2 && rank_b == 2;
  const Endpoint y =
      n.Add(is_matrix ? "MatMul" : "BatchMatMulV2", {left, right});
  n.SetOutput(0, Quantized(n, y, ReadQuantization(n, 6, n.dtype(n.input(7)))));
  return absl::OkStatus();
}

constexpr LoweringRow kRows[] = {
    {"ConvInteger", LowerConvInteger},
    {"DequantizeLinear", LowerDequantizeLinear},
    {"DynamicQuantizeLinear", LowerDynamicQuantizeLinear},
    {"MatMulInteger", LowerMatMulInteger},
    {"QLinearConv", LowerQLinearConv},
    {"QLinearMatMul", LowerQLinearMatMul},
    {"QuantizeLinear", LowerQuantizeLinear},
    // ONNX Runtime writes them in its own domain too.
    {"DequantizeLinear", LowerDequantizeLinear, 1, kNoLaterVersion,
     "com.microsoft"},
    {"QuantizeLinear", LowerQuantizeLinear, 1, kNoLaterVersion,
     "com.microsoft"},
};

}  // namespace

absl::Span<const LoweringRow> QuantizedLowerings() { return kRows; }

}  // namespace optfarm::formats
