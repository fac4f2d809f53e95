// Quantized operators of com.microsoft: the float operator between quantized
// values, and matrix products with weights that are quantized in blocks.

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/onnx/lowering_table.h"
#include "engine/formats/onnx/quantization.h"
#include "engine/runtime/core/tensor.h"
#include "engine/runtime/reference/quantized/block_quantization.h"

namespace optfarm::formats {
namespace {

// A quantized input with its scale and zero point behind it.
Endpoint Input(NodeLowering& n, int i, int64_t axis = -1) {
  const Endpoint x = n.input(i);
  return Dequantized(n, x, ReadQuantization(n, i + 1, n.dtype(x)), axis);
}

// The output, in the type of input 0 where it has no zero point.
void SetQuantized(NodeLowering& n, Endpoint y, int scale) {
  n.SetOutput(0,
              Quantized(n, y, ReadQuantization(n, scale, n.dtype(n.input(0)))));
}

absl::Status LowerQLinearBinary(NodeLowering& n) {
  const char* op = n.op() == "QLinearAdd" ? "Add" : "Mul";
  SetQuantized(n, n.Add(op, {Input(n, 0), Input(n, 3)}), 6);
  return absl::OkStatus();
}

absl::Status LowerQLinearUnary(NodeLowering& n) {
  const Endpoint x = Input(n, 0);
  Endpoint y;
  if (n.op() == "QLinearLeakyRelu") {
    y = n.Add("LeakyRelu", {x}, {{"alpha", n.Float("alpha", 0.01f)}});
  } else {
    y = n.Add("Sigmoid", {x});
  }
  SetQuantized(n, y, 3);
  return absl::OkStatus();
}

absl::Status LowerQLinearGlobalAveragePool(NodeLowering& n) {
  const Endpoint x = Input(n, 0);
  OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(x));
  const bool channels_last = n.Int("channels_last", 0) != 0;
  std::vector<int64_t> axes;
  for (int i = 2; i < rank; ++i) axes.push_back(channels_last ? i - 1 : i);
  SetQuantized(n, n.Add("Mean", {x, n.Int32s(axes)}, {{"keep_dims", true}}), 3);
  return absl::OkStatus();
}

absl::Status LowerQLinearConcat(NodeLowering& n) {
  std::vector<Endpoint> parts;
  for (int i = 2; i + 1 < n.input_count(); i += 3) parts.push_back(Input(n, i));
  if (parts.empty()) return absl::InvalidArgumentError("it has no parts");
  OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(parts[0]));
  OPTFARM_ASSIGN_OR_RETURN(const int axis,
                           NodeLowering::Axis(n.Int("axis", 0), rank));
  parts.push_back(n.Int32(axis));
  const Endpoint y = parts.size() == 2 ? parts[0] : n.Add("ConcatV2", parts);
  n.SetOutput(0, Quantized(n, y, ReadQuantization(n, 0, n.dtype(n.input(2)))));
  return absl::OkStatus();
}

absl::Status LowerQLinearSoftmax(NodeLowering& n) {
  const Endpoint x = Input(n, 0);
  OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(x));
  OPTFARM_ASSIGN_OR_RETURN(const int axis,
                           NodeLowering::Axis(n.Int("axis", -1), rank));
  if (axis != rank - 1) {
    return absl::UnimplementedError("only the last axis is supported");
  }
  SetQuantized(n, n.Add("Softmax", {x}), 3);
  return absl::OkStatus();
}

absl::Status LowerQLinearWhere(NodeLowering& n) {
  const Endpoint y = n.Add("SelectV2", {n.input(0), Input(n, 1), Input(n, 4)});
  n.SetOutput(0, Quantized(n, y, ReadQuantization(n, 7, n.dtype(n.input(1)))));
  return absl::OkStatus();
}

absl::Status LowerQGemm(NodeLowering& n) {
  const bool transposed = n.Int("transB", 0) != 0;
  const Endpoint a = Input(n, 0);
  Endpoint b = Input(n, 3, transposed ? 0 : 1);
  if (transposed) b = n.Transpose(b, {1, 0});
  Endpoint y =
      n.Add("MatMul", {a, b}, {{"transpose_a", n.Int("transA", 0) != 0}});
  const float alpha = n.Float("alpha", 1);
  if (n.has_input(6)) {
    // The bias counts in products of the steps of both.
    const Endpoint step =
        n.Add("Mul", {ReadQuantization(n, 1, n.dtype(n.input(0))).scale,
                      ReadQuantization(n, 4, n.dtype(n.input(3))).scale});
    y = n.Add(
        "Add",
        {y, n.Add("Mul", {n.Cast(n.input(6), tensorflow::DT_FLOAT), step})});
  }
  if (alpha != 1) y = n.Add("Mul", {y, n.ScalarLike(y, double{alpha})});
  if (n.has_input(7)) {
    SetQuantized(n, y, 7);
  } else {
    n.SetOutput(0, y);
  }
  return absl::OkStatus();
}

// Product of a with quantized b, whose columns may have scales of their own.
absl::Status MultiplyDequantized(NodeLowering& n, Endpoint a, Endpoint b,
                                 int bias) {
  Endpoint y = n.Add("BatchMatMulV2", {a, b});
  if (n.has_input(bias)) y = n.Add("Add", {y, n.input(bias)});
  n.SetOutput(0, y);
  return absl::OkStatus();
}

OnnxQuantization Separate(NodeLowering& n, int scale, int zero_point,
                          DataType type) {
  OnnxQuantization q;
  q.scale = n.input(scale);
  q.zero_point = n.has_input(zero_point) ? n.input(zero_point)
                                         : n.builder().Scalar(type, 0);
  return q;
}

absl::Status LowerMatMulIntegerToFloat(NodeLowering& n) {
  const Endpoint a = n.input(0), b = n.input(1);
  OPTFARM_ASSIGN_OR_RETURN(const int rank_a, n.Rank(a));
  OPTFARM_ASSIGN_OR_RETURN(const int rank_b, n.Rank(b));
  return MultiplyDequantized(
      n, Dequantized(n, a, Separate(n, 2, 4, n.dtype(a)), rank_a - 2),
      Dequantized(n, b, Separate(n, 3, 5, n.dtype(b)), rank_b - 1), 6);
}

absl::Status LowerDynamicQuantizeMatMul(NodeLowering& n) {
  const Endpoint a = n.input(0), b = n.input(1);
  OPTFARM_ASSIGN_OR_RETURN(const int rank_b, n.Rank(b));
  OPTFARM_ASSIGN_OR_RETURN(const OnnxQuantization q, DynamicRange(n, a));
  return MultiplyDequantized(
      n, Dequantized(n, Quantized(n, a, q), q),
      Dequantized(n, b, Separate(n, 2, 3, n.dtype(b)), rank_b - 1), 4);
}

// --- Weights in blocks -------------------------------------------------------

int Unpack(const uint8_t* bytes, int64_t i, int64_t bits) {
  return bits == 8 ? bytes[i] : runtime::FourBitsAt(bytes, i);
}

// The weights of MatMulNBits: columns of blocks, each with a scale and a zero
// point.
struct BlockWeights {
  int64_t depth = 0, columns = 0, bits = 4, block = 0, blocks = 0;
  runtime::Tensor packed;
  // By column, then block.
  std::vector<float> scales, zero_points;

  // Values of one block, and zero points of one column, in bytes.
  int64_t block_bytes() const { return block * bits / 8; }
  int64_t zero_point_bytes() const { return (blocks * bits + 7) / 8; }
  // The block of a weight, and its value.
  size_t BlockOf(int64_t k, int64_t c) const {
    return static_cast<size_t>(c * blocks + k / block);
  }
  int At(int64_t k, int64_t c) const {
    return Unpack(packed.data<uint8_t>() +
                      static_cast<int64_t>(BlockOf(k, c)) * block_bytes(),
                  k % block, bits);
  }
};

// The elements of a constant input, which must be there.
absl::StatusOr<runtime::Tensor> ConstantInput(NodeLowering& n, int i) {
  const tensorflow::TensorProto* constant = n.builder().ConstantOf(n.input(i));
  if (constant == nullptr) {
    return absl::UnimplementedError(
        absl::StrCat("input ", i, " is known only at run time"));
  }
  return runtime::Tensor::FromProto(*constant);
}

absl::Status ReadZeroPoints(NodeLowering& n, BlockWeights* w) {
  w->zero_points.assign(w->scales.size(),
                        static_cast<float>(1 << (w->bits - 1)));
  if (!n.has_input(3)) return absl::OkStatus();
  OPTFARM_ASSIGN_OR_RETURN(const runtime::Tensor given, ConstantInput(n, 3));
  const auto floats = n.KnownFloats(n.input(3));
  if (floats.has_value() && floats->size() == w->scales.size()) {
    w->zero_points = *floats;
  } else if (given.dtype() == tensorflow::DT_UINT8 &&
             given.num_elements() == w->columns * w->zero_point_bytes()) {
    for (int64_t i = 0; i < w->columns * w->blocks; ++i) {
      w->zero_points[static_cast<size_t>(i)] = static_cast<float>(
          Unpack(given.data<uint8_t>() + i / w->blocks * w->zero_point_bytes(),
                 i % w->blocks, w->bits));
    }
  } else {
    return absl::InvalidArgumentError("its zero points do not fit");
  }
  return absl::OkStatus();
}

absl::StatusOr<BlockWeights> ReadBlocks(NodeLowering& n) {
  BlockWeights w;
  constexpr int64_t kMost = int64_t{1} << 24;
  w.depth = n.Int("K", 0);
  w.columns = n.Int("N", 0);
  w.bits = n.Int("bits", 4);
  w.block = n.Int("block_size", 0);
  const bool fits = w.depth >= 1 && w.depth <= kMost && w.columns >= 1 &&
                    w.columns <= kMost && w.block >= 2 && w.block <= kMost &&
                    w.block % 2 == 0;
  if (!fits || (w.bits != 4 && w.bits != 8)) {
    return absl::UnimplementedError(
        absl::StrCat("K = ", w.depth, ", N = ", w.columns, ", bits = ", w.bits,
                     ", block_size = ", w.block, " is not supported"));
  }
  w.blocks = (w.depth + w.block - 1) / w.block;
  OPTFARM_ASSIGN_OR_RETURN(w.packed, ConstantInput(n, 1));
  std::optional<std::vector<float>> scales = n.KnownFloats(n.input(2));
  if (w.packed.dtype() != tensorflow::DT_UINT8 ||
      w.packed.num_elements() != w.columns * w.blocks * w.block_bytes() ||
      !scales.has_value() ||
      static_cast<int64_t>(scales->size()) != w.columns * w.blocks) {
    return absl::InvalidArgumentError(
        "its weights or scales do not fit K, N and block_size");
  }
  w.scales = *std::move(scales);
  OPTFARM_RETURN_IF_ERROR(ReadZeroPoints(n, &w));
  return w;
}

// Floats of the weights, [depth, columns].
absl::StatusOr<Endpoint> FloatWeights(NodeLowering& n, const BlockWeights& w) {
  OPTFARM_ASSIGN_OR_RETURN(
      runtime::Tensor weights,
      runtime::Tensor::Allocate(tensorflow::DT_FLOAT,
                                runtime::Shape({w.depth, w.columns})));
  float* to = weights.data<float>();
  for (int64_t k = 0; k < w.depth; ++k) {
    for (int64_t c = 0; c < w.columns; ++c) {
      const size_t at = w.BlockOf(k, c);
      to[k * w.columns + c] =
          (static_cast<float>(w.At(k, c)) - w.zero_points[at]) * w.scales[at];
    }
  }
  return n.builder().Constant(weights);
}

// Weights of 4 bits, [depth, columns], which stay so. Nothing where a zero
// point is no whole number of 4 bits.
std::optional<Endpoint> FourBitWeights(NodeLowering& n, const BlockWeights& w) {
  const bool whole = absl::c_all_of(w.zero_points, [](float zero_point) {
    return zero_point >= 0 && zero_point <= 15 &&
           zero_point == std::floor(zero_point);
  });
  if (w.bits != 4 || !whole) return std::nullopt;
  const int64_t count = w.depth * w.columns, grid = w.blocks * w.columns;
  std::vector<uint8_t> values(
      static_cast<size_t>(runtime::FourBitBytes(count)));
  std::vector<uint8_t> zero_points(
      static_cast<size_t>(runtime::FourBitBytes(grid)));
  std::vector<float> scales(w.scales.size());
  for (int64_t k = 0; k < w.depth; ++k) {
    for (int64_t c = 0; c < w.columns; ++c) {
      runtime::SetFourBits(values.data(), k * w.columns + c, w.At(k, c));
    }
  }
  for (int64_t i = 0; i < grid; ++i) {
    const size_t at = w.BlockOf(i / w.columns * w.block, i % w.columns);
    runtime::SetFourBits(zero_points.data(), i,
                         static_cast<int>(w.zero_points[at]));
    scales[static_cast<size_t>(i)] = w.scales[at];
  }
  const auto bytes = [&n](const std::vector<uint8_t>& all) {
    return n.builder().Constant(runtime::Tensor::FromValues<uint8_t>(
        runtime::Shape({static_cast<int64_t>(all.size())}), all));
  };
  const Endpoint scale =
      n.builder().Constant(runtime::Tensor::FromValues<float>(
          runtime::Shape({w.blocks, w.columns}), scales));
  return n.Add("DequantizeBlocks", {bytes(values), scale, bytes(zero_points)},
               {{"shape", PartialShape({w.depth, w.columns})},
                {"axis", 0},
                {"block_size", w.block}});
}

absl::Status LowerMatMulNBits(NodeLowering& n) {
  if (n.has_input(4)) return absl::UnimplementedError("g_idx is not supported");
  OPTFARM_ASSIGN_OR_RETURN(const BlockWeights blocks, ReadBlocks(n));
  std::optional<Endpoint> weights = FourBitWeights(n, blocks);
  if (!weights.has_value()) {
    OPTFARM_ASSIGN_OR_RETURN(weights, FloatWeights(n, blocks));
  }
  const Endpoint a = n.input(0);
  const Endpoint rows = n.Reshape(a, {-1, blocks.depth});
  Endpoint y = n.ReshapeRowsLike(
      n.Add("MatMul", {rows, n.Cast(*weights, n.dtype(a))}), a, blocks.columns);
  if (n.has_input(5)) y = n.Add("Add", {y, n.input(5)});
  n.SetOutput(0, y);
  return absl::OkStatus();
}

constexpr const char* kDomain = "com.microsoft";
constexpr int kAll = kNoLaterVersion;

constexpr LoweringRow kRows[] = {
    {"DynamicQuantizeMatMul", LowerDynamicQuantizeMatMul, 1, kAll, kDomain},
    {"MatMulIntegerToFloat", LowerMatMulIntegerToFloat, 1, kAll, kDomain},
    {"MatMulNBits", LowerMatMulNBits, 1, kAll, kDomain},
    {"QGemm", LowerQGemm, 1, kAll, kDomain},
    {"QLinearAdd", LowerQLinearBinary, 1, kAll, kDomain},
    {"QLinearConcat", LowerQLinearConcat, 1, kAll, kDomain},
    {"QLinearGlobalAveragePool", LowerQLinearGlobalAveragePool, 1, kAll,
     kDomain},
    {"QLinearLeakyRelu", LowerQLinearUnary, 1, kAll, kDomain},
    {"QLinearMul", LowerQLinearBinary, 1, kAll, kDomain},
    {"QLinearSigmoid", LowerQLinearUnary, 1, kAll, kDomain},
    {"QLinearSoftmax", LowerQLinearSoftmax, 1, kAll, kDomain},
    {"QLinearWhere", LowerQLinearWhere, 1, kAll, kDomain},
};

}  // namespace

absl::Span<const LoweringRow> MicrosoftQuantizedLowerings() { return kRows; }

}  // namespace optfarm::formats
