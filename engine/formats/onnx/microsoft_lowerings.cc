// Operators of com.microsoft that ONNX Runtime writes when it saves a model
// that it has optimized: layers with their activation, and parts of
// transformers.

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/onnx/convolution.h"
#include "engine/formats/onnx/lowering_table.h"
#include "engine/formats/onnx/quantization.h"

namespace optfarm::formats {
namespace {

// The node's attributes activation and activation_params, or activation_alpha
// and so on.
absl::StatusOr<Endpoint> Activated(NodeLowering& n, Endpoint y) {
  const std::string name = n.String("activation", "");
  const std::vector<float> params = n.Floats("activation_params");
  const auto param = [&](size_t i, float absent) {
    return double{i < params.size() ? params[i] : absent};
  };
  if (name.empty()) return y;
  if (name == "Relu" || name == "Tanh" || name == "Sigmoid") {
    return n.Add(name, {y});
  }
  if (name == "LeakyRelu") {
    return n.Add("LeakyRelu", {y},
                 {{"alpha", static_cast<float>(param(0, 0.01f))}});
  }
  if (name == "Clip") {
    const float most = std::numeric_limits<float>::max();
    y = n.Add("Maximum", {y, n.ScalarLike(y, param(0, -most))});
    return n.Add("Minimum", {y, n.ScalarLike(y, param(1, most))});
  }
  if (name == "HardSigmoid") {
    const Endpoint line =
        n.Add("Add", {n.Add("Mul", {y, n.ScalarLike(y, param(0, 0.2f))}),
                      n.ScalarLike(y, param(1, 0.5f))});
    return n.Add("Minimum", {n.Add("Relu", {line}), n.ScalarLike(y, 1)});
  }
  return absl::UnimplementedError(
      absl::StrCat("the activation '", name, "' is not supported"));
}

absl::Status LowerFusedConv(NodeLowering& n) {
  OPTFARM_ASSIGN_OR_RETURN(Endpoint y,
                           Convolve(n, n.input(0), n.input(1),
                                    n.has_input(2) ? n.input(2) : Endpoint()));
  if (n.has_input(3)) y = n.Add("Add", {y, n.input(3)});
  OPTFARM_ASSIGN_OR_RETURN(y, Activated(n, y));
  n.SetOutput(0, y);
  return absl::OkStatus();
}

// The last two dimensions exchanged.
absl::StatusOr<Endpoint> MatrixTransposed(NodeLowering& n, Endpoint x) {
  OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(x));
  if (rank < 2) return absl::InvalidArgumentError("a vector is no matrix");
  std::vector<int64_t> order;
  for (int i = 0; i < rank; ++i) order.push_back(i);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return n.Transpose(x, order);
}

absl::Status LowerFusedMatMul(NodeLowering& n) {
  Endpoint a = n.input(0), b = n.input(1);
  if (n.Int("transBatchA", 0) != 0 || n.Int("transBatchB", 0) != 0) {
    return absl::UnimplementedError("transBatchA and transBatchB");
  }
  if (n.Int("transA", 0) != 0) {
    OPTFARM_ASSIGN_OR_RETURN(a, MatrixTransposed(n, a));
  }
  if (n.Int("transB", 0) != 0) {
    OPTFARM_ASSIGN_OR_RETURN(b, MatrixTransposed(n, b));
  }
  const Endpoint y = n.Add("BatchMatMulV2", {a, b});
  n.SetOutput(0,
              n.Add("Mul", {y, n.ScalarLike(y, double{n.Float("alpha", 1)})}));
  return absl::OkStatus();
}

// --- Activations -------------------------------------------------------------

// Input 1 is a bias where there is one.
absl::Status LowerGelu(NodeLowering& n) {
  Endpoint x = n.input(0);
  if (n.has_input(1)) x = n.AddBias(x, n.input(1));
  n.SetOutput(0, n.Add("Gelu", {x}, {{"approximate", n.op() == "FastGelu"}}));
  return absl::OkStatus();
}

absl::Status LowerQuickGelu(NodeLowering& n) {
  const Endpoint x = n.input(0);
  const Endpoint scaled =
      n.Add("Mul", {x, n.ScalarLike(x, double{n.Float("alpha", 1.702f)})});
  n.SetOutput(0, n.Add("Mul", {x, n.Add("Sigmoid", {scaled})}));
  return absl::OkStatus();
}

// --- Normalization -----------------------------------------------------------

// Layer norm over the last dimension; a bias that is left out is 0.
Endpoint LayerNorm(NodeLowering& n, Endpoint x, Endpoint scale, Endpoint bias) {
  if (bias.node == graph::kNoNode) bias = n.Add("ZerosLike", {scale});
  return n.Add("LayerNorm", {x, scale, bias},
               {{"axis", -1}, {"epsilon", n.Float("epsilon", 1e-12f)}});
}

absl::Status LowerSkipLayerNormalization(NodeLowering& n) {
  const bool is_simple = n.op() == "SkipSimplifiedLayerNormalization";
  Endpoint sum = n.Add("Add", {n.input(0), n.input(1)});
  const int bias = is_simple ? 3 : 4;
  if (n.has_input(bias)) sum = n.Add("Add", {sum, n.input(bias)});
  if (n.wants_output(1) || n.wants_output(2)) {
    return absl::UnimplementedError("mean and deviation as outputs");
  }
  if (is_simple) {
    n.SetOutput(0,
                n.Add("RmsNorm", {sum, n.input(2)},
                      {{"axis", -1}, {"epsilon", n.Float("epsilon", 1e-12f)}}));
  } else {
    n.SetOutput(0, LayerNorm(n, sum, n.input(2),
                             n.has_input(3) ? n.input(3) : Endpoint()));
  }
  n.SetOutput(3, sum);
  return absl::OkStatus();
}

Endpoint Rows(NodeLowering& n, Endpoint table, Endpoint ids) {
  return n.Add("GatherV2", {table, ids, n.Int32(0)});
}

absl::Status LowerEmbedLayerNormalization(NodeLowering& n) {
  const Endpoint ids = n.input(0);
  Endpoint sum = Rows(n, n.input(2), ids);
  if (n.has_input(8)) {
    sum = n.Add("Add", {sum, Rows(n, n.input(3), n.input(8))});
  } else {
    const Endpoint length = n.Add(
        "StridedSlice",
        {n.Add("Shape", {ids}), n.Int32s({1}), n.Int32s({2}), n.Int32s({1})},
        {{"shrink_axis_mask", 1}});
    const Endpoint places = n.Add("Range", {n.Int32(0), length, n.Int32(1)});
    sum = n.Add("Add", {sum, Rows(n, n.input(3), places)});
  }
  if (n.has_input(1) && n.has_input(4)) {
    sum = n.Add("Add", {sum, Rows(n, n.input(4), n.input(1))});
  }
  n.SetOutput(0, LayerNorm(n, sum, n.input(5), n.input(6)));
  if (n.wants_output(1)) {
    // How many places of each row are not masked.
    const Endpoint shape = n.Add("Shape", {ids});
    const Endpoint rows = n.Add(
        "StridedSlice", {shape, n.Int32s({0}), n.Int32s({1}), n.Int32s({1})});
    n.SetOutput(1, n.has_input(7) ? n.Add("Sum", {n.input(7), n.Int32s({1})})
                                  : n.Add("Fill", {rows, n.Int32(0)}));
  }
  n.SetOutput(2, sum);
  return absl::OkStatus();
}

// --- Attention ---------------------------------------------------------------

// (batch, places, heads * size) as (batch, heads, places, size).
Endpoint SplitHeads(NodeLowering& n, Endpoint x, int64_t heads, int64_t width) {
  const Endpoint split = n.Add(
      "Reshape",
      {x,
       n.Add("ConcatV2", {n.Add("StridedSlice", {n.ShapeOf(x), n.Int32s({0}),
                                                 n.Int32s({2}), n.Int32s({1})}),
                          n.Int64s({heads, width / heads}), n.Int32(0)})});
  return n.Transpose(split, {0, 2, 1, 3});
}

// Size of dimension `axis`, as a scalar.
Endpoint SizeOf(NodeLowering& n, Endpoint x, int64_t axis) {
  return n.Add("StridedSlice",
               {n.Add("Shape", {x}), n.Int32s({axis}), n.Int32s({axis + 1}),
                n.Int32s({1})},
               {{"shrink_axis_mask", 1}});
}

// Hides scores (batch, heads, queries, keys) of later positions. Sizes are
// those of what is multiplied: the scores have one reader then, and stay one
// pattern with the softmax.
Endpoint MaskFuture(NodeLowering& n, Endpoint scores, Endpoint q, Endpoint k) {
  const Endpoint queries = SizeOf(n, q, 2), keys = SizeOf(n, k, 2);
  const Endpoint rows =
      n.Add("Range", {n.Add("Sub", {keys, queries}), keys, n.Int32(1)});
  const Endpoint columns = n.Add("Range", {n.Int32(0), keys, n.Int32(1)});
  const Endpoint may_see =
      n.Add("GreaterEqual", {n.Add("ExpandDims", {rows, n.Int32(1)}), columns});
  return n.Add("SelectV2",
               {may_see, scores,
                n.ScalarLike(scores, std::numeric_limits<float>::lowest())});
}

absl::StatusOr<Endpoint> MaskPadding(NodeLowering& n, Endpoint scores,
                                     Endpoint k, Endpoint mask) {
  OPTFARM_ASSIGN_OR_RETURN(int rank, n.Rank(mask));
  if (rank == 1) {
    // How many keys of each example count.
    const PartialShape& lengths = n.shape(mask);
    const PartialShape& all = n.shape(scores);
    if (all.has_rank() && all.dim(0) > 0 && lengths.dim(0) > 0 &&
        lengths.dim(0) != all.dim(0)) {
      return absl::UnimplementedError(
          "a mask of one dimension with more than an end for each example");
    }
    const Endpoint keys =
        n.Add("Range", {n.Int32(0), SizeOf(n, k, 2), n.Int32(1)});
    mask = n.Add("Less",
                 {keys, n.Unsqueeze(n.Cast(mask, tensorflow::DT_INT32), {1})});
    rank = 2;
  }
  if (rank != 2 && rank != 3) {
    return absl::UnimplementedError(
        absl::StrCat("a mask of ", rank, " dimensions"));
  }
  const Endpoint kept = n.Cast(mask, n.dtype(scores));
  const Endpoint one = n.ScalarLike(scores, 1);
  const Endpoint penalty = n.Add(
      "Mul",
      {n.Add("Sub", {one, kept}),
       n.ScalarLike(scores, double{n.Float("mask_filter_value", -10000)})});
  return n.Add(
      "Add",
      {scores, n.Unsqueeze(penalty, rank == 2 ? std::vector<int64_t>{1, 2}
                                              : std::vector<int64_t>{1})});
}

// Which inputs are what, of Attention and QAttention.
struct AttentionInputs {
  Endpoint x, weights;
  int mask = 3, past = 4, bias = 5;
};

absl::Status Attend(NodeLowering& n, const AttentionInputs& in) {
  const Endpoint x = in.x, w = in.weights;
  const int64_t heads = n.Int("num_heads", 0);
  const PartialShape& weights = n.shape(w);
  const bool has_width = weights.has_rank() && weights.rank() == 2 &&
                         weights.dim(1) > 0 && weights.dim(1) % 3 == 0;
  const int64_t width = has_width ? weights.dim(1) / 3 : 0;
  if (heads < 1 || width < 1 || width % heads != 0 ||
      n.has_attr("qkv_hidden_sizes") || n.Int("do_rotary", 0) != 0) {
    return absl::UnimplementedError(
        "widths that differ and rotary embedding are not supported");
  }
  Endpoint rows = n.Add("MatMul", {n.Reshape(x, {-1, weights.dim(0)}), w});
  if (n.has_input(2)) rows = n.Add("BiasAdd", {rows, n.input(2)});
  const Endpoint all = n.ReshapeRowsLike(rows, x, 3 * width);
  const std::vector<Endpoint> parts =
      n.AddAll("Split", {n.Int32(2), all}, {{"num_split", 3}});
  if (parts.size() != 3) return absl::OkStatus();
  const Endpoint q = SplitHeads(n, parts[0], heads, width);
  Endpoint k = SplitHeads(n, parts[1], heads, width);
  Endpoint v = SplitHeads(n, parts[2], heads, width);
  if (n.has_input(in.past)) {
    const std::vector<Endpoint> past =
        n.AddAll("Unpack", {n.input(in.past)}, {{"num", 2}});
    if (past.size() != 2) return absl::OkStatus();
    k = n.Add("ConcatV2", {past[0], k, n.Int32(2)});
    v = n.Add("ConcatV2", {past[1], v, n.Int32(2)});
  }
  if (n.wants_output(1)) n.SetOutput(1, n.Add("Pack", {k, v}, {{"axis", 0}}));
  const float scale =
      n.Float("scale", 1 / std::sqrt(static_cast<float>(width / heads)));
  Endpoint scores = n.Add("BatchMatMulV2", {q, k}, {{"adj_y", true}});
  scores = n.Add("Mul", {scores, n.ScalarLike(scores, double{scale})});
  if (n.has_input(in.mask)) {
    OPTFARM_ASSIGN_OR_RETURN(scores,
                             MaskPadding(n, scores, k, n.input(in.mask)));
  }
  if (n.has_input(in.bias)) {
    scores = n.Add("Add", {scores, n.input(in.bias)});
  }
  if (n.Int("unidirectional", 0) != 0) {
    scores = MaskFuture(n, scores, q, k);
  }
  const Endpoint mixed =
      n.Add("BatchMatMulV2", {n.Add("Softmax", {scores}), v});
  const Endpoint joined = n.Transpose(mixed, {0, 2, 1, 3});
  n.SetOutput(0, n.ReshapeRowsLike(joined, x, width));
  return absl::OkStatus();
}

absl::Status LowerAttention(NodeLowering& n) {
  return Attend(n, {n.input(0), n.input(1)});
}

// Quantized rows and weights, the scores and what follows in float.
absl::Status LowerQAttention(NodeLowering& n) {
  const auto floats = [&n](int i, int scale, int zero_point, int64_t axis) {
    OnnxQuantization q;
    q.scale = n.input(scale);
    q.zero_point = n.has_input(zero_point)
                       ? n.input(zero_point)
                       : n.builder().Scalar(n.dtype(n.input(i)), 0);
    return Dequantized(n, n.input(i), q, axis);
  };
  AttentionInputs in;
  in.x = floats(0, 3, 6, 2);
  in.weights = floats(1, 4, 7, 1);
  in.mask = 5;
  in.past = 8;
  in.bias = n.input_count();
  return Attend(n, in);
}

absl::Status LowerFusedGemm(NodeLowering& n) {
  Endpoint y = n.Add("MatMul", {n.input(0), n.input(1)},
                     {{"transpose_a", n.Int("transA", 0) != 0},
                      {"transpose_b", n.Int("transB", 0) != 0}});
  y = n.Add("Mul", {y, n.ScalarLike(y, double{n.Float("alpha", 1)})});
  if (n.has_input(2)) {
    y = n.Add("Add",
              {y, n.Add("Mul", {n.input(2),
                                n.ScalarLike(y, double{n.Float("beta", 1)})})});
  }
  OPTFARM_ASSIGN_OR_RETURN(y, Activated(n, y));
  n.SetOutput(0, y);
  return absl::OkStatus();
}

constexpr const char* kDomain = "com.microsoft";
constexpr int kAll = kNoLaterVersion;

constexpr LoweringRow kRows[] = {
    {"Attention", LowerAttention, 1, kAll, kDomain},
    {"BiasGelu", LowerGelu, 1, kAll, kDomain},
    {"EmbedLayerNormalization", LowerEmbedLayerNormalization, 1, kAll, kDomain},
    {"FastGelu", LowerGelu, 1, kAll, kDomain},
    {"FusedConv", LowerFusedConv, 1, kAll, kDomain},
    {"FusedGemm", LowerFusedGemm, 1, kAll, kDomain},
    {"FusedMatMul", LowerFusedMatMul, 1, kAll, kDomain},
    {"Gelu", LowerGelu, 1, kAll, kDomain},
    {"QAttention", LowerQAttention, 1, kAll, kDomain},
    {"QuickGelu", LowerQuickGelu, 1, kAll, kDomain},
    {"SkipLayerNormalization", LowerSkipLayerNormalization, 1, kAll, kDomain},
    {"SkipSimplifiedLayerNormalization", LowerSkipLayerNormalization, 1, kAll,
     kDomain},
};

}  // namespace

absl::Span<const LoweringRow> MicrosoftLowerings() { return kRows; }

}  // namespace optfarm::formats
