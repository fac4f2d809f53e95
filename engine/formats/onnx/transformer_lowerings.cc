// Operators of com.microsoft for transformers, which ONNX Runtime writes when
// it saves a model that it has optimized.

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/onnx/element_types.h"
#include "engine/formats/onnx/lowering_table.h"

namespace optfarm::formats {
namespace {

constexpr char kMicrosoft[] = "com.microsoft";

absl::Status LowerSimplifiedLayerNormalization(NodeLowering& n) {
  n.SetOutput(0, n.Add("RmsNorm", {n.input(0), n.input(1)},
                       {{"axis", n.Int("axis", -1)},
                        {"epsilon", n.Float("epsilon", 1e-5f)}}));
  return absl::OkStatus();
}

// --- Attention ---------------------------------------------------------------

// Which keys count: a number for each example, or a 0 or 1 for each key, or an
// additive mask.
struct KeyMask {
  Endpoint mask;
  Endpoint lengths;
};

absl::StatusOr<KeyMask> ReadKeyMask(NodeLowering& n, int mask_input,
                                    int bias_input, DataType type) {
  KeyMask mask{EmptyVector(n, type), EmptyVector(n, tensorflow::DT_INT64)};
  bool has_mask = false;
  if (n.has_input(mask_input)) {
    const Endpoint given = n.input(mask_input);
    OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(given));
    if (rank == 1) {
      mask.lengths = n.Cast(given, tensorflow::DT_INT64);
    } else if (rank == 2 || rank == 3) {
      const Endpoint counts =
          n.Add("NotEqual", {given, n.ScalarLike(given, 0)});
      const Endpoint added =
          n.Add("SelectV2",
                {counts, n.builder().Scalar(type, 0),
                 n.builder().Scalar(
                     type, double{n.Float("mask_filter_value", -10000.0f)})});
      mask.mask = n.Unsqueeze(added, rank == 2 ? std::vector<int64_t>{1, 2}
                                               : std::vector<int64_t>{1});
      has_mask = true;
    } else {
      return absl::UnimplementedError(
          absl::StrCat("a mask of ", rank, " dimensions"));
    }
  }
  if (n.has_input(bias_input)) {
    const Endpoint bias = n.Cast(n.input(bias_input), type);
    mask.mask = has_mask ? n.Add("Add", {mask.mask, bias}) : bias;
  }
  return mask;
}

absl::Status FinishAttention(NodeLowering& n, const Endpoint (&qkv)[3],
                             const KeyMask& mask, int64_t heads) {
  const DataType type = n.dtype(qkv[0]);
  const Endpoint none = EmptyVector(n, type);
  n.SetOutput(
      0, n.Add("Attention",
               {qkv[0], qkv[1], qkv[2], mask.mask, none, none, mask.lengths},
               {{"query_heads", heads},
                {"key_heads", heads},
                {"scale", n.Float("scale", 0)},
                {"is_causal", n.Int("unidirectional", 0) != 0}}));
  return absl::OkStatus();
}

absl::Status LowerMultiHeadAttention(NodeLowering& n) {
  const Endpoint query = n.input(0);
  if (!n.has_input(1) || !n.has_input(2) || n.has_input(6) || n.has_input(7)) {
    return absl::UnimplementedError("packed queries and past keys");
  }
  for (int i : {0, 1, 2}) {
    OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(n.input(i)));
    if (rank != 3) return absl::UnimplementedError("packed keys");
  }
  Endpoint qkv[3] = {query, n.input(1), n.input(2)};
  if (n.has_input(3)) {
    std::vector<int64_t> sizes;
    for (const Endpoint& part : qkv) sizes.push_back(n.shape(part).dim(2));
    for (const int64_t size : sizes) {
      if (size < 0) return absl::UnimplementedError("heads of unknown size");
    }
    const std::vector<Endpoint> biases =
        n.AddAll("SplitV", {n.input(3), n.Int64s(sizes), n.Int32(0)},
                 {{"num_split", 3}});
    for (size_t i = 0; i < biases.size() && i < 3; ++i) {
      qkv[i] = n.Add("Add", {qkv[i], biases[i]});
    }
  }
  OPTFARM_ASSIGN_OR_RETURN(const KeyMask mask,
                           ReadKeyMask(n, 4, 5, n.dtype(query)));
  return FinishAttention(n, qkv, mask, n.Int("num_heads", 0));
}

constexpr LoweringRow kRows[] = {
    {"MultiHeadAttention", LowerMultiHeadAttention, 1, kNoLaterVersion,
     kMicrosoft},
    // Before ONNX had it, ONNX Runtime wrote it into ONNX's own domain.
    {"SimplifiedLayerNormalization", LowerSimplifiedLayerNormalization},
};

}  // namespace

absl::Span<const LoweringRow> TransformerLowerings() { return kRows; }

}  // namespace optfarm::formats
