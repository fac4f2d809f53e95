// The operators that most models have: constants, sums and products, matrix
// products, simple activations.

#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/onnx/broadcasting.h"
#include "engine/formats/onnx/graph_reader.h"
#include "engine/formats/onnx/lowering_table.h"
#include "engine/formats/onnx/tensors.h"
#include "engine/graph/ops/op_table.h"

namespace optfarm::formats {
namespace {

bool IsFloating(DataType type) {
  return type == tensorflow::DT_FLOAT || type == tensorflow::DT_HALF ||
         type == tensorflow::DT_BFLOAT16 || type == tensorflow::DT_DOUBLE;
}

absl::Status LowerIdentity(NodeLowering& n) {
  n.SetOutput(0, n.Add("Identity", {n.input(0)}));
  return absl::OkStatus();
}

// At inference all values pass. The mask, where it is wanted, is all true; in
// versions before 10 it has the type of the values.
absl::Status LowerDropout(NodeLowering& n) {
  const Endpoint x = n.input(0);
  n.SetOutput(0, n.Add("Identity", {x}));
  if (n.wants_output(1)) {
    const DataType type = n.opset() < 10 ? n.dtype(x) : tensorflow::DT_BOOL;
    n.SetOutput(1, n.Cast(n.Add("OnesLike", {x}), type));
  }
  return absl::OkStatus();
}

absl::Status LowerConstant(NodeLowering& n) {
  GraphBuilder& builder = n.builder();
  OnnxModelContext& model = n.reader().model();
  if (const onnx::TensorProto* value = n.Tensor("value")) {
    OPTFARM_RETURN_IF_ERROR(
        model.TakeConstantBytes(static_cast<int64_t>(value->ByteSizeLong())));
    OPTFARM_ASSIGN_OR_RETURN(
        tensorflow::TensorProto tensor,
        ReadOnnxTensor(*value, model.external_data_folder()));
    n.SetOutput(0, builder.Constant(std::move(tensor)));
  } else if (n.has_attr("value_float")) {
    n.SetOutput(0, builder.Constant(
                       runtime::Tensor::Scalar(n.Float("value_float", 0))));
  } else if (n.has_attr("value_int")) {
    n.SetOutput(
        0, builder.Constant(runtime::Tensor::Scalar(n.Int("value_int", 0))));
  } else if (n.has_attr("value_floats")) {
    n.SetOutput(0, builder.Floats(n.Floats("value_floats")));
  } else if (n.has_attr("value_ints")) {
    n.SetOutput(0, builder.Int64s(n.Ints("value_ints")));
  } else if (n.has_attr("sparse_value")) {
    for (const onnx::AttributeProto& attr : n.node().attribute()) {
      if (attr.name() != "sparse_value") continue;
      OPTFARM_ASSIGN_OR_RETURN(
          tensorflow::TensorProto tensor,
          ReadSparseOnnxTensor(attr.sparse_tensor(),
                               model.external_data_folder(),
                               model.constant_bytes_left()));
      OPTFARM_RETURN_IF_ERROR(model.TakeConstantBytes(
          static_cast<int64_t>(tensor.tensor_content().size())));
      n.SetOutput(0, builder.Constant(std::move(tensor)));
    }
  } else {
    return absl::UnimplementedError("texts as constants are not supported");
  }
  return absl::OkStatus();
}

// --- Elementwise -------------------------------------------------------------

template <const char* kOp>
absl::Status LowerBinary(NodeLowering& n) {
  OPTFARM_ASSIGN_OR_RETURN(const auto pair, BroadcastInputs(n));
  n.SetOutput(0, n.Add(kOp, {pair.first, pair.second}));
  return absl::OkStatus();
}
constexpr char kSub[] = "Sub", kMul[] = "Mul";

absl::Status LowerAdd(NodeLowering& n) {
  OPTFARM_ASSIGN_OR_RETURN(const auto pair, BroadcastInputs(n));
  const auto& [a, b] = pair;
  const bool is_bias_first = n.builder().ConstantOf(a) != nullptr;
  n.SetOutput(0, is_bias_first ? n.AddBias(b, a) : n.AddBias(a, b));
  return absl::OkStatus();
}

// Integers are divided as in C.
absl::Status LowerDiv(NodeLowering& n) {
  OPTFARM_ASSIGN_OR_RETURN(const auto pair, BroadcastInputs(n));
  const bool is_real = IsFloating(n.dtype(pair.first));
  n.SetOutput(
      0, n.Add(is_real ? "RealDiv" : "TruncateDiv", {pair.first, pair.second}));
  return absl::OkStatus();
}

absl::Status LowerRelu(NodeLowering& n) {
  n.SetOutput(0, n.Add("Relu", {n.input(0)}));
  return absl::OkStatus();
}

template <const char* kOp>
absl::Status LowerUnary(NodeLowering& n) {
  n.SetOutput(0, n.Add(kOp, {n.input(0)}));
  return absl::OkStatus();
}
constexpr char kSigmoid[] = "Sigmoid", kTanh[] = "Tanh";

absl::Status Clip(NodeLowering& n, Endpoint low, Endpoint high) {
  const Endpoint x = n.input(0);
  const auto known = [&](Endpoint bound) -> std::optional<float> {
    if (bound.node == graph::kNoNode) return std::nullopt;
    const auto values = n.KnownFloats(bound);
    if (!values.has_value() || values->size() != 1) return std::nullopt;
    return (*values)[0];
  };
  const bool is_float = IsFloating(n.dtype(x));
  if (is_float && known(low) == 0.0f && known(high) == 6.0f) {
    n.SetOutput(0, n.Add("Relu6", {x}));
    return absl::OkStatus();
  }
  const bool has_high = high.node != graph::kNoNode &&
                        known(high) != std::numeric_limits<float>::infinity();
  Endpoint y = x;
  if (is_float && known(low) == 0.0f) {
    y = n.Add("Relu", {x});
  } else if (low.node != graph::kNoNode) {
    y = n.Add("Maximum", {y, low});
  }
  if (has_high) y = n.Add("Minimum", {y, high});
  n.SetOutput(0, y == x ? n.Add("Identity", {x}) : y);
  return absl::OkStatus();
}

absl::Status LowerClipOfAttributes(NodeLowering& n) {
  const Endpoint x = n.input(0);
  Endpoint low, high;
  if (n.has_attr("min")) low = n.ScalarLike(x, double{n.Float("min", 0)});
  if (n.has_attr("max")) high = n.ScalarLike(x, double{n.Float("max", 0)});
  return Clip(n, low, high);
}

absl::Status LowerClip(NodeLowering& n) {
  return Clip(n, n.has_input(1) ? n.input(1) : Endpoint(),
              n.has_input(2) ? n.input(2) : Endpoint());
}

// --- Matrix products ---------------------------------------------------------

// Rows of any number of dimensions by a matrix: one product of two matrices,
// which is what layers are to the rest of the engine.
Endpoint MultiplyRows(NodeLowering& n, Endpoint a, Endpoint b) {
  const int64_t depth = n.shape(b).dim(0);
  const int64_t columns = n.shape(b).dim(1);
  const Endpoint rows = n.Reshape(a, {-1, depth});
  return n.ReshapeRowsLike(n.Add("MatMul", {rows, b}), a, columns);
}

absl::Status LowerMatMul(NodeLowering& n) {
  Endpoint a = n.input(0), b = n.input(1);
  OPTFARM_ASSIGN_OR_RETURN(const int rank_a, n.Rank(a));
  OPTFARM_ASSIGN_OR_RETURN(const int rank_b, n.Rank(b));
  if (rank_a == 0 || rank_b == 0) {
    return absl::InvalidArgumentError("a scalar is no matrix");
  }
  if (rank_a == 2 && rank_b == 2) {
    n.SetOutput(0, n.Add("MatMul", {a, b}));
    return absl::OkStatus();
  }
  if (rank_a > 2 && rank_b == 2 && n.shape(b).is_static() &&
      n.shape(b).dim(0) > 0) {
    n.SetOutput(0, MultiplyRows(n, a, b));
    return absl::OkStatus();
  }
  // Vectors are a row on the left, a column on the right.
  if (rank_a == 1) a = n.Unsqueeze(a, {0});
  if (rank_b == 1) b = n.Unsqueeze(b, {1});
  Endpoint product = n.Add("BatchMatMulV2", {a, b});
  const int64_t rank = std::max({rank_a, rank_b, 2});
  if (rank_b == 1) product = n.Squeeze(product, {rank - 1});
  if (rank_a == 1) product = n.Squeeze(product, {rank_b == 1 ? 0 : rank - 2});
  n.SetOutput(0, product);
  return absl::OkStatus();
}

Endpoint Scaled(NodeLowering& n, Endpoint x, float factor) {
  return factor == 1.0f ? x
                        : n.Add("Mul", {x, n.ScalarLike(x, double{factor})});
}

absl::Status LowerGemm(NodeLowering& n) {
  const Endpoint a = n.input(0);
  Endpoint b = n.input(1);
  const bool is_constant =
      n.builder().ConstantOf(b) != nullptr || n.KnownInts(b).has_value();
  bool transpose_b = n.Int("transB", 0) != 0;
  OPTFARM_ASSIGN_OR_RETURN(const int rank_b, n.Rank(b));
  if (rank_b != 2) return absl::InvalidArgumentError("B is no matrix");
  const bool is_dequantized =
      graph::IsDequantizeLinear(n.builder().graph().node(b.node).op());
  if (transpose_b && (is_constant || is_dequantized)) {
    b = n.Transpose(b, {1, 0});
    transpose_b = false;
  }
  Endpoint y = n.Add(
      "MatMul", {a, b},
      {{"transpose_a", n.Int("transA", 0) != 0}, {"transpose_b", transpose_b}});
  y = Scaled(n, y, n.Float("alpha", 1));
  if (n.has_input(2)) {
    const Endpoint c = Scaled(n, n.input(2), n.Float("beta", 1));
    const PartialShape& bias = n.shape(c);
    const int64_t columns = n.shape(y).has_rank() ? n.shape(y).dim(1) : -1;
    const bool is_bias = bias.is_static() && bias.rank() == 1 && columns > 1 &&
                         bias.dim(0) == columns;
    y = n.Add(is_bias ? "BiasAdd" : "Add", {y, c});
  }
  n.SetOutput(0, y);
  return absl::OkStatus();
}

// --- Softmax -----------------------------------------------------------------

template <const char* kOp>
absl::Status LowerSoftmax(NodeLowering& n) {
  const Endpoint x = n.input(0);
  OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(x));
  if (rank == 0) {
    return absl::InvalidArgumentError("it has no axis in a scalar");
  }
  OPTFARM_ASSIGN_OR_RETURN(const int axis,
                           NodeLowering::Axis(n.Int("axis", -1), rank));
  std::vector<int64_t> order;
  for (int i = 0; i < rank; ++i) order.push_back(i);
  std::swap(order[static_cast<size_t>(axis)], order.back());
  const Endpoint y = n.Add(kOp, {n.Transpose(x, order)});
  n.SetOutput(0, n.Transpose(y, order));
  return absl::OkStatus();
}

// Before version 13 all dimensions from the axis on counted as one.
template <const char* kOp>
absl::Status LowerFlatSoftmax(NodeLowering& n) {
  const Endpoint x = n.input(0);
  OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(x));
  OPTFARM_ASSIGN_OR_RETURN(
      const int axis,
      NodeLowering::Axis(n.Int("axis", rank > 1 ? 1 : 0), rank));
  if (axis == rank - 1) {
    n.SetOutput(0, n.Add(kOp, {x}));
    return absl::OkStatus();
  }
  OPTFARM_ASSIGN_OR_RETURN(const Endpoint rows, FlattenTo2d(n, x, axis));
  n.SetOutput(0, n.Add("Reshape", {n.Add(kOp, {rows}), n.ShapeOf(x)}));
  return absl::OkStatus();
}
constexpr char kSoftmax[] = "Softmax", kLogSoftmax[] = "LogSoftmax";

constexpr LoweringRow kRows[] = {
    {"Add", LowerAdd},
    {"Clip", LowerClipOfAttributes, 1, 10},
    {"Clip", LowerClip, 11},
    {"Constant", LowerConstant},
    {"Div", LowerDiv},
    {"Dropout", LowerDropout},
    {"Gemm", LowerGemm},
    {"Identity", LowerIdentity},
    {"LogSoftmax", LowerFlatSoftmax<kLogSoftmax>, 1, 12},
    {"LogSoftmax", LowerSoftmax<kLogSoftmax>, 13},
    {"MatMul", LowerMatMul},
    {"Mul", LowerBinary<kMul>},
    {"Relu", LowerRelu},
    {"Sigmoid", LowerUnary<kSigmoid>},
    {"Softmax", LowerFlatSoftmax<kSoftmax>, 1, 12},
    {"Softmax", LowerSoftmax<kSoftmax>, 13},
    {"Sub", LowerBinary<kSub>},
    {"Tanh", LowerUnary<kTanh>},
};

}  // namespace

absl::Span<const LoweringRow> BasicLowerings() { return kRows; }

}  // namespace optfarm::formats
