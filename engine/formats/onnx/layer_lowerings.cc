// Layers of transformers and of image models beyond convolution: normalization,
// attention, losses.

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/onnx/element_types.h"
#include "engine/formats/onnx/lowering_table.h"

namespace optfarm::formats {
namespace {

// --- Normalization -----------------------------------------------------------

absl::Status LowerLayerNormalization(NodeLowering& n) {
  const Endpoint x = n.input(0);
  const DataType type = n.dtype(x);
  const Endpoint bias =
      n.has_input(2) ? n.Cast(n.input(2), type) : n.ScalarLike(x, 0);
  const std::vector<Endpoint> y = n.AddAll(
      "LayerNorm", {x, n.Cast(n.input(1), type), bias},
      {{"axis", n.Int("axis", -1)}, {"epsilon", n.Float("epsilon", 1e-5f)}});
  for (size_t i = 0; i < y.size(); ++i) n.SetOutput(static_cast<int>(i), y[i]);
  return absl::OkStatus();
}

absl::Status LowerRmsNormalization(NodeLowering& n) {
  const Endpoint x = n.input(0);
  const Endpoint scale = n.input(1);
  const Endpoint y = n.Add(
      "RmsNorm", {x, n.Cast(scale, n.dtype(x))},
      {{"axis", n.Int("axis", -1)}, {"epsilon", n.Float("epsilon", 1e-5f)}});
  n.SetOutput(0, n.Cast(y, n.dtype(scale)));
  return absl::OkStatus();
}

// An op that normalizes images whose channels come last.
absl::Status NormalizeImages(NodeLowering& n, absl::string_view op,
                             std::vector<OpAttr> attrs) {
  const Endpoint x = n.input(0);
  OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(x));
  const DataType type = n.dtype(x);
  attrs.emplace_back("epsilon", n.Float("epsilon", 1e-5f));
  const Endpoint y = n.Add(op,
                           {n.ToChannelsLast(x, rank), n.Cast(n.input(1), type),
                            n.Cast(n.input(2), type)},
                           std::move(attrs));
  n.SetOutput(0, n.ToChannelsFirst(y, rank));
  return absl::OkStatus();
}

absl::Status LowerInstanceNormalization(NodeLowering& n) {
  return NormalizeImages(n, "InstanceNorm", {});
}

absl::Status LowerGroupNormalization(NodeLowering& n) {
  return NormalizeImages(n, "GroupNorm", {{"groups", n.Int("num_groups", 1)}});
}

absl::Status LowerLpNormalization(NodeLowering& n) {
  const Endpoint x = n.input(0);
  const int64_t p = n.Int("p", 2);
  if (p != 1 && p != 2) {
    return absl::InvalidArgumentError(absl::StrCat("p = ", p));
  }
  const Endpoint axes = n.Int32s({n.Int("axis", -1)});
  Endpoint norm = n.Add("Sum", {n.Add(p == 1 ? "Abs" : "Square", {x}), axes},
                        {{"keep_dims", true}});
  if (p == 2) norm = n.Add("Sqrt", {norm});
  n.SetOutput(0, n.Add("DivNoNan", {x, norm}));
  return absl::OkStatus();
}

absl::Status LowerMeanVarianceNormalization(NodeLowering& n) {
  const Endpoint x = n.input(0);
  const Endpoint axes = n.Int32s(
      n.has_attr("axes") ? n.Ints("axes") : std::vector<int64_t>{0, 2, 3});
  const auto mean = [&](Endpoint of) {
    return n.Add("Mean", {of, axes}, {{"keep_dims", true}});
  };
  const Endpoint centered = n.Add("Sub", {x, mean(x)});
  const Endpoint deviation = n.Add("Sqrt", {mean(n.Add("Square", {centered}))});
  n.SetOutput(
      0, n.Add("RealDiv",
               {centered, n.Add("Add", {deviation, n.ScalarLike(x, 1e-9)})}));
  return absl::OkStatus();
}

absl::Status LowerLrn(NodeLowering& n) {
  const Endpoint x = n.input(0);
  const int64_t size = n.Int("size", 1);
  OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(x));
  if (rank != 4 || size < 1 || size % 2 == 0 || size > (1 << 20)) {
    return absl::UnimplementedError(
        absl::StrCat("size ", size, " over ", rank,
                     " dimensions; odd sizes over images are supported"));
  }
  const Endpoint y =
      n.Add("LRN", {n.ToChannelsLast(x, rank)},
            {{"depth_radius", (size - 1) / 2},
             {"bias", n.Float("bias", 1)},
             {"alpha", n.Float("alpha", 1e-4f) / static_cast<float>(size)},
             {"beta", n.Float("beta", 0.75f)}});
  n.SetOutput(0, n.ToChannelsFirst(y, rank));
  return absl::OkStatus();
}

// --- Attention ---------------------------------------------------------------

// A mask of truths as one that is added to the scores.
Endpoint AdditiveMask(NodeLowering& n, Endpoint mask, DataType type) {
  if (n.dtype(mask) != tensorflow::DT_BOOL) return n.Cast(mask, type);
  GraphBuilder& builder = n.builder();
  return n.Add(
      "SelectV2",
      {mask, builder.Scalar(type, 0),
       builder.Scalar(type, -std::numeric_limits<double>::infinity())});
}

absl::Status LowerAttention(NodeLowering& n) {
  const Endpoint query = n.input(0);
  const DataType type = n.dtype(query);
  static constexpr const char* kScores[] = {"raw", "capped", "masked",
                                            "softmax"};
  const int64_t mode = n.Int("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3) {
    return absl::InvalidArgumentError(
        absl::StrCat("qk_matmul_output_mode = ", mode));
  }
  std::vector<OpAttr> attrs = {
      {"query_heads", n.Int("q_num_heads", 0)},
      {"key_heads", n.Int("kv_num_heads", 0)},
      {"scale", n.Float("scale", 0)},
      {"softcap", n.Float("softcap", 0)},
      {"is_causal", n.Int("is_causal", 0) != 0},
      {"emits_present", n.wants_output(1) || n.wants_output(2)},
      {"emitted_scores", n.wants_output(3) ? kScores[mode] : ""}};
  const Endpoint mask =
      n.has_input(3) ? AdditiveMask(n, n.input(3), type) : EmptyVector(n, type);
  const std::vector<Endpoint> y =
      n.AddAll("Attention",
               {query, n.Cast(n.input(1), type), n.Cast(n.input(2), type), mask,
                InputOrEmpty(n, 4, type), InputOrEmpty(n, 5, type),
                InputOrEmpty(n, 6, tensorflow::DT_INT64)},
               std::move(attrs));
  for (size_t i = 0; i < y.size(); ++i) n.SetOutput(static_cast<int>(i), y[i]);
  return absl::OkStatus();
}

absl::Status LowerRotaryEmbedding(NodeLowering& n) {
  n.SetOutput(0, n.Add("RotaryEmbedding",
                       {n.input(0), n.input(1), n.input(2),
                        InputOrEmpty(n, 3, tensorflow::DT_INT64)},
                       {{"interleaved", n.Int("interleaved", 0) != 0},
                        {"heads", n.Int("num_heads", 0)},
                        {"turned", n.Int("rotary_embedding_dim", 0)}}));
  return absl::OkStatus();
}

// --- Losses ------------------------------------------------------------------

Endpoint AddLoss(NodeLowering& n, Endpoint log_probabilities) {
  return n.Add("NllLoss",
               {log_probabilities, n.input(1),
                InputOrEmpty(n, 2, n.dtype(log_probabilities))},
               {{"reduction", n.String("reduction", "mean")},
                {"ignores_index", n.has_attr("ignore_index")},
                {"ignore_index", n.Int("ignore_index", 0)}});
}

absl::Status LowerNegativeLogLikelihoodLoss(NodeLowering& n) {
  n.SetOutput(0, AddLoss(n, n.input(0)));
  return absl::OkStatus();
}

absl::Status LowerSoftmaxCrossEntropyLoss(NodeLowering& n) {
  const Endpoint scores = n.input(0);
  OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(scores));
  if (rank < 2) {
    return absl::InvalidArgumentError("scores must have classes");
  }
  std::vector<int64_t> order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[1], order.back());
  const Endpoint logs =
      n.Transpose(n.Add("LogSoftmax", {n.Transpose(scores, order)}), order);
  n.SetOutput(0, AddLoss(n, logs));
  n.SetOutput(1, logs);
  return absl::OkStatus();
}

constexpr LoweringRow kRows[] = {
    {"Attention", LowerAttention},
    {"GroupNormalization", LowerGroupNormalization},
    {"InstanceNormalization", LowerInstanceNormalization},
    {"LRN", LowerLrn},
    {"LayerNormalization", LowerLayerNormalization},
    {"LpNormalization", LowerLpNormalization},
    {"MeanVarianceNormalization", LowerMeanVarianceNormalization},
    {"NegativeLogLikelihoodLoss", LowerNegativeLogLikelihoodLoss},
    {"RMSNormalization", LowerRmsNormalization},
    {"RotaryEmbedding", LowerRotaryEmbedding},
    {"SoftmaxCrossEntropyLoss", LowerSoftmaxCrossEntropyLoss},
};

}  // namespace

absl::Span<const LoweringRow> LayerLowerings() { return kRows; }

}  // namespace optfarm::formats
