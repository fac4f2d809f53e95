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

// Past keys and values are inputs `past` and `past + 1`, outputs 1 and 2 all of
// them.
absl::Status FinishAttention(NodeLowering& n, const Endpoint (&qkv)[3],
                             const KeyMask& mask, int64_t heads, int past) {
  const DataType type = n.dtype(qkv[0]);
  const std::vector<Endpoint> y =
      n.AddAll("Attention",
               {qkv[0], qkv[1], qkv[2], mask.mask, InputOrEmpty(n, past, type),
                InputOrEmpty(n, past + 1, type), mask.lengths},
               {{"query_heads", heads},
                {"key_heads", heads},
                {"scale", n.Float("scale", 0)},
                {"is_causal", n.Int("unidirectional", 0) != 0},
                {"emits_present", n.wants_output(1) || n.wants_output(2)}});
  for (size_t i = 0; i < y.size() && i < 3; ++i) {
    n.SetOutput(static_cast<int>(i), y[i]);
  }
  return absl::OkStatus();
}

absl::Status LowerMultiHeadAttention(NodeLowering& n) {
  const Endpoint query = n.input(0);
  if (!n.has_input(1) || !n.has_input(2)) {
    return absl::UnimplementedError("packed queries, keys and values");
  }
  if (n.has_input(6) != n.has_input(7)) {
    return absl::InvalidArgumentError("past keys without past values");
  }
  if (n.has_input(8) || n.has_input(9)) {
    return absl::UnimplementedError(
        "a cache that is shared with the past (past_sequence_length)");
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
  return FinishAttention(n, qkv, mask, n.Int("num_heads", 0), 6);
}

// --- Rotary embedding --------------------------------------------------------

// Size of dimension `axis`, as a vector of one int64.
Endpoint SizeAt(NodeLowering& n, Endpoint x, int64_t axis) {
  return n.Add("StridedSlice", {n.ShapeOf(x), n.Int32s({axis}),
                                n.Int32s({axis + 1}), n.Int32s({1})});
}

// 0, 1, ... below the number in a vector of one int64.
Endpoint CountTo(NodeLowering& n, Endpoint size) {
  GraphBuilder& builder = n.builder();
  return n.Add("Range", {builder.Scalar(tensorflow::DT_INT64, 0),
                         n.Add("Reshape", {size, n.Int32s({})}),
                         builder.Scalar(tensorflow::DT_INT64, 1)});
}

absl::Status LowerMicrosoftRotaryEmbedding(NodeLowering& n) {
  const Endpoint x = n.input(0), cos = n.input(2);
  OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(x));
  const float scale = n.Float("scale", 1);
  if ((rank != 3 && rank != 4) || n.Int("is_packed_batching", 0) != 0 ||
      scale != 1) {
    return absl::UnimplementedError(
        "packed batches, a scale, and inputs of other than 3 or 4 dimensions");
  }
  int64_t heads = n.Int("num_heads", 0);
  if (rank == 3 && heads == 0) {
    // Each head is turned as a whole: in pairs, of which the table has halves.
    const PartialShape& table = n.shape(cos);
    const int64_t width = n.shape(x).dim(2);
    if (!table.has_rank() || table.rank() != 2 || table.dim(1) < 1 ||
        width < 1 || width % (2 * table.dim(1)) != 0) {
      return absl::UnimplementedError("heads of unknown size");
    }
    heads = width / (2 * table.dim(1));
  }
  Endpoint positions = n.Cast(n.input(1), tensorflow::DT_INT64);
  OPTFARM_ASSIGN_OR_RETURN(const int positions_rank, n.Rank(positions));
  if (positions_rank == 1) {
    // One number, the place of the first.
    const Endpoint places = SizeAt(n, x, rank == 3 ? 1 : 2);
    positions =
        n.Add("BroadcastTo",
              {n.Add("Add", {CountTo(n, places), positions}),
               n.Add("ConcatV2", {SizeAt(n, x, 0), places, n.Int32(0)})});
  }
  n.SetOutput(0, n.Add("RotaryEmbedding", {x, cos, n.input(3), positions},
                       {{"interleaved", n.Int("interleaved", 0) != 0},
                        {"heads", heads},
                        {"turned", n.Int("rotary_embedding_dim", 0)}}));
  return absl::OkStatus();
}

// --- Caches of keys and values -----------------------------------------------

// `update` written over `cache` (batch, heads, places, size or the like) along
// `axis`, from place starts[example] on; starts are int64.
absl::StatusOr<Endpoint> WrittenOver(NodeLowering& n, Endpoint cache,
                                     Endpoint update, Endpoint starts,
                                     int64_t axis, bool is_circular) {
  OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(cache));
  OPTFARM_ASSIGN_OR_RETURN(const int place, NodeLowering::Axis(axis, rank));
  if (place == 0) return absl::InvalidArgumentError("axis 0 is the batch");
  std::vector<int64_t> behind_starts, around_count;
  for (int i = 1; i < rank; ++i) behind_starts.push_back(i);
  for (int i = 0; i < rank; ++i) {
    if (i != place) around_count.push_back(i);
  }
  Endpoint index = n.Add(
      "Add", {n.Unsqueeze(starts, behind_starts),
              n.Unsqueeze(CountTo(n, SizeAt(n, update, place)), around_count)});
  if (is_circular) {
    index = n.Add(
        "FloorMod",
        {index, n.Add("Reshape", {SizeAt(n, cache, place), n.Int32s({})})});
  }
  index = n.Add("BroadcastTo", {index, n.ShapeOf(update)});
  return n.Add("ScatterElements", {cache, index, update}, {{"axis", place}});
}

absl::Status LowerTensorScatter(NodeLowering& n) {
  const std::string mode = n.String("mode", "linear");
  if (mode != "linear" && mode != "circular") {
    return absl::InvalidArgumentError(absl::StrCat("mode '", mode, "'"));
  }
  const Endpoint cache = n.input(0);
  const Endpoint starts =
      n.has_input(2)
          ? n.Cast(n.input(2), tensorflow::DT_INT64)
          : n.Add("Fill", {SizeAt(n, cache, 0),
                           n.builder().Scalar(tensorflow::DT_INT64, 0)});
  OPTFARM_ASSIGN_OR_RETURN(const Endpoint y,
                           WrittenOver(n, cache, n.input(1), starts,
                                       n.Int("axis", -2), mode == "circular"));
  n.SetOutput(0, y);
  return absl::OkStatus();
}

// (batch, places, heads * size) as (batch, heads, places, size).
Endpoint AsHeads(NodeLowering& n, Endpoint x, int64_t heads, int64_t size) {
  const Endpoint split = n.Add(
      "Reshape", {x, n.Add("ConcatV2", {SizeAt(n, x, 0), SizeAt(n, x, 1),
                                        n.Int64s({heads, size}), n.Int32(0)})});
  return n.Transpose(split, {0, 2, 1, 3});
}

struct GroupedHeads {
  int64_t query = 0, key = 0, size = 0;
  // Queries, keys and values.
  std::vector<Endpoint> parts;
};

absl::StatusOr<GroupedHeads> ReadGroupedHeads(NodeLowering& n) {
  GroupedHeads heads;
  heads.query = n.Int("num_heads", 0);
  heads.key = n.Int("kv_num_heads", 0);
  const Endpoint query = n.input(0);
  OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(query));
  const int64_t width = rank == 3 ? n.shape(query).dim(2) : -1;
  const bool is_packed = !n.has_input(1);
  const int64_t most = int64_t{1} << 20;
  if (heads.query < 1 || heads.key < 1 || heads.query > most ||
      heads.key > most || heads.query % heads.key != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "num_heads = ", heads.query, ", kv_num_heads = ", heads.key));
  }
  const int64_t all = is_packed ? heads.query + 2 * heads.key : heads.query;
  if (width < 1 || width % all != 0) {
    return absl::UnimplementedError(
        absl::StrCat("queries of width ", width, " for ", all, " heads"));
  }
  heads.size = width / all;
  if (!is_packed) {
    heads.parts = {query, n.input(1), n.input(2)};
    return heads;
  }
  heads.parts =
      n.AddAll("SplitV",
               {query,
                n.Int64s({heads.query * heads.size, heads.key * heads.size,
                          heads.key * heads.size}),
                n.Int32(2)},
               {{"num_split", 3}});
  return heads;
}

// Where the new keys stand in each example: behind those that the past has.
struct NewPlaces {
  // How many keys count, and how many of them are of the past.
  Endpoint lengths, past;
};

// The cache with the new keys or values in it, as long as the model says.
absl::StatusOr<Endpoint> Cache(NodeLowering& n, int past, Endpoint fresh,
                               const NewPlaces& places) {
  if (!n.has_input(past)) return fresh;
  const Endpoint room = n.Add(
      "ConcatV2", {n.input(past), n.Add("ZerosLike", {fresh}), n.Int32(2)});
  OPTFARM_ASSIGN_OR_RETURN(const Endpoint written,
                           WrittenOver(n, room, fresh, places.past, 2, false));
  const Endpoint length = n.Add(
      "Maximum", {n.Reshape(n.Cast(n.input(6), tensorflow::DT_INT64), {1}),
                  SizeAt(n, n.input(past), 2)});
  const Endpoint begin = n.Int64s({0, 0, 0, 0});
  const Endpoint whole = n.ShapeOf(written);
  const auto part = [&](int64_t from, int64_t to) {
    return n.Add("StridedSlice",
                 {whole, n.Int32s({from}), n.Int32s({to}), n.Int32s({1})});
  };
  return n.Add("Slice", {written, begin,
                         n.Add("ConcatV2",
                               {part(0, 2), length, part(3, 4), n.Int32(0)})});
}

absl::Status CheckGroupQueryAttention(NodeLowering& n) {
  if (n.has_input(3) != n.has_input(4)) {
    return absl::InvalidArgumentError("past keys without past values");
  }
  if (n.Int("local_window_size", -1) > 0 || n.Int("smooth_softmax", 0) == 1 ||
      n.has_input(11) || n.wants_output(3) ||
      n.String("k_quant_type", "NONE") != "NONE") {
    return absl::UnimplementedError(
        "local windows, smooth softmax, sinks, scores as output and quantized "
        "caches are not supported");
  }
  return absl::OkStatus();
}

absl::Status LowerGroupQueryAttention(NodeLowering& n) {
  OPTFARM_RETURN_IF_ERROR(CheckGroupQueryAttention(n));
  OPTFARM_ASSIGN_OR_RETURN(const GroupedHeads heads, ReadGroupedHeads(n));
  if (heads.parts.size() != 3) return absl::OkStatus();
  const DataType type = n.dtype(heads.parts[0]);
  Endpoint q = AsHeads(n, heads.parts[0], heads.query, heads.size);
  Endpoint k = AsHeads(n, heads.parts[1], heads.key, heads.size);
  const Endpoint v = AsHeads(n, heads.parts[2], heads.key, heads.size);
  const Endpoint fresh = SizeAt(n, q, 2);
  NewPlaces places;
  // What the model gives is one less.
  places.lengths =
      n.Add("Add", {n.Reshape(n.Cast(n.input(5), tensorflow::DT_INT64), {-1}),
                    n.Int64s({1})});
  places.past = n.has_input(3) ? n.Add("Sub", {places.lengths, fresh})
                               : n.Add("ZerosLike", {places.lengths});
  if (n.Int("do_rotary", 0) != 0) {
    const Endpoint positions =
        n.has_input(9) ? n.Cast(n.input(9), tensorflow::DT_INT64)
                       : n.Add("Add", {n.Unsqueeze(places.past, {1}),
                                       n.Unsqueeze(CountTo(n, fresh), {0})});
    for (Endpoint* turned : {&q, &k}) {
      *turned =
          n.Add("RotaryEmbedding", {*turned, n.input(7), n.input(8), positions},
                {{"interleaved", n.Int("rotary_interleaved", 0) != 0}});
    }
  }
  OPTFARM_ASSIGN_OR_RETURN(const Endpoint keys, Cache(n, 3, k, places));
  OPTFARM_ASSIGN_OR_RETURN(const Endpoint values, Cache(n, 4, v, places));
  const Endpoint none = EmptyVector(n, type);
  const Endpoint mask = n.has_input(10) ? n.Cast(n.input(10), type) : none;
  const Endpoint y = n.Add(
      "Attention",
      {q, keys, values, mask, none, none,
       // Without a past, what is behind an example's end is not seen anyway.
       n.has_input(3) ? places.lengths : EmptyVector(n, tensorflow::DT_INT64)},
      {{"scale", n.Float("scale", 0)},
       {"softcap", n.Float("softcap", 0)},
       {"is_causal", true}});
  n.SetOutput(0, n.Add("Reshape",
                       {n.Transpose(y, {0, 2, 1, 3}),
                        n.Add("ConcatV2", {SizeAt(n, heads.parts[0], 0), fresh,
                                           n.Int64s({heads.query * heads.size}),
                                           n.Int32(0)})}));
  n.SetOutput(1, keys);
  n.SetOutput(2, values);
  return absl::OkStatus();
}

constexpr LoweringRow kRows[] = {
    {"GroupQueryAttention", LowerGroupQueryAttention, 1, kNoLaterVersion,
     kMicrosoft},
    {"MultiHeadAttention", LowerMultiHeadAttention, 1, kNoLaterVersion,
     kMicrosoft},
    {"RotaryEmbedding", LowerMicrosoftRotaryEmbedding, 1, kNoLaterVersion,
     kMicrosoft},
    {"TensorScatter", LowerTensorScatter},
    // Before ONNX had it, ONNX Runtime wrote it into ONNX's own domain.
    {"SimplifiedLayerNormalization", LowerSimplifiedLayerNormalization},
};

}  // namespace

absl::Span<const LoweringRow> TransformerLowerings() { return kRows; }

}  // namespace optfarm::formats
