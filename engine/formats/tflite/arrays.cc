// Operators that move elements: shapes, slices, joins and permutations. They
// work on stored values, quantized or not.

#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/tflite/activations.h"
#include "engine/formats/tflite/lowering.h"
#include "engine/formats/tflite/operator_table.h"
#include "engine/graph/attr.h"
#include "tflite/schema_generated.h"

namespace optfarm::tflite {
namespace {

absl::Status RequireOutput(const OpLowering& c) {
  if (c.output_count() >= 1) return absl::OkStatus();
  return absl::InvalidArgumentError("has no output");
}

// All inputs as they are: the graph's op has the same.
absl::Status LowerMoved(const OperatorRow& row, OpLowering& c) {
  std::vector<Value> inputs;
  for (int i = 0; i < c.input_count(); ++i) inputs.push_back(c.Stored(i));
  c.SetStored(0, c.Add(row.op, row.op, inputs));
  return absl::OkStatus();
}

// The shape is an input, an option of old files, or the output's own.
absl::Status LowerReshape(const OperatorRow&, OpLowering& c) {
  OPTFARM_RETURN_IF_ERROR(RequireOutput(c));
  const auto* options = c.op().builtin_options_as_ReshapeOptions();
  Value shape;
  if (c.Has(1)) {
    shape = c.Stored(1);
  } else if (options != nullptr && options->new_shape() != nullptr) {
    const auto* dims = options->new_shape();
    std::vector<int64_t> new_shape(dims->begin(), dims->end());
    // So did old converters write a scalar's.
    if (new_shape == std::vector<int64_t>{0}) new_shape.clear();
    shape = c.IntVector("shape", new_shape);
  } else {
    shape = c.IntVector("shape", ShapeOf(c.out(0)));
  }
  c.SetStored(0, c.Add("Reshape", "Reshape", {c.Stored(0), shape}));
  return absl::OkStatus();
}

absl::Status LowerSqueeze(const OperatorRow&, OpLowering& c) {
  const auto* options = c.op().builtin_options_as_SqueezeOptions();
  const Value squeezed =
      c.Add("Squeeze", "Squeeze", {c.Stored(0)}, [&](tensorflow::NodeDef* n) {
        if (options == nullptr || options->squeeze_dims() == nullptr) return;
        const auto* dims = options->squeeze_dims();
        SetInts(n, "squeeze_dims",
                std::vector<int64_t>(dims->begin(), dims->end()));
      });
  c.SetStored(0, squeezed);
  return absl::OkStatus();
}

// Zero, or what stands for it.
absl::Status LowerPad(const OperatorRow&, OpLowering& c) {
  if (!c.InputFitsOutput(0, 0)) {
    c.SetReal(0, c.Add("Pad", "Pad", {c.Real(0), c.Stored(1)}));
    return absl::OkStatus();
  }
  const Value input = c.Stored(0);
  if (!IsQuantized(c.in(0))) {
    c.SetStored(0, c.Add("Pad", "Pad", {input, c.Stored(1)}));
    return absl::OkStatus();
  }
  OPTFARM_ASSIGN_OR_RETURN(const Quantization quantization,
                           c.subgraph().QuantizationAt(c.InputId(0)));
  Constant zero;
  zero.type = input.type;
  // Little-endian: the low bytes come first.
  const int64_t point = quantization.zero_point[0];
  zero.bytes.assign(reinterpret_cast<const char*>(&point),
                    input.type == tensorflow::DT_INT16 ? 2 : 1);
  c.SetStored(
      0, c.Add("PadV2", "Pad", {input, c.Stored(1), c.Const("zero", zero)}));
  return absl::OkStatus();
}

absl::Status LowerPadV2(const OperatorRow&, OpLowering& c) {
  const bool is_moved = c.InputFitsOutput(0, 0) && c.InputFitsOutput(2, 0);
  const Value input = is_moved ? c.Stored(0) : c.Real(0);
  Value filling = is_moved ? c.Scalar(2, "filling") : c.Real(2);
  if (!is_moved) {
    filling = c.Add("Reshape", "filling",
                    {filling, c.IntVector("filling/shape", {})});
  }
  const Value padded = c.Add("PadV2", "Pad", {input, c.Stored(1), filling});
  is_moved ? c.SetStored(0, padded) : c.SetReal(0, padded);
  return absl::OkStatus();
}

absl::Status LowerMirrorPad(const OperatorRow&, OpLowering& c) {
  const auto* options = c.op().builtin_options_as_MirrorPadOptions();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  const bool is_symmetric = options->mode() == MirrorPadMode::SYMMETRIC;
  const bool is_moved = c.InputFitsOutput(0, 0);
  const Value input = is_moved ? c.Stored(0) : c.Real(0);
  const Value padded = c.Add(
      "MirrorPad", "Pad", {input, c.Stored(1)}, [&](tensorflow::NodeDef* node) {
        graph::SetString(node, "mode", is_symmetric ? "SYMMETRIC" : "REFLECT");
      });
  is_moved ? c.SetStored(0, padded) : c.SetReal(0, padded);
  return absl::OkStatus();
}

absl::Status LowerStridedSlice(const OperatorRow&, OpLowering& c) {
  const auto* options = c.op().builtin_options_as_StridedSliceOptions();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  Value end = c.Stored(2);
  if (options->offset()) {
    end = c.Add("AddV2", "end", {c.Stored(1), end});
  }
  c.SetStored(
      0, c.Add("StridedSlice", "slice",
               {c.Stored(0), c.Stored(1), end, c.Stored(3)},
               [&](tensorflow::NodeDef* node) {
                 graph::SetInt(node, "begin_mask", options->begin_mask());
                 graph::SetInt(node, "end_mask", options->end_mask());
                 graph::SetInt(node, "ellipsis_mask", options->ellipsis_mask());
                 graph::SetInt(node, "new_axis_mask", options->new_axis_mask());
                 graph::SetInt(node, "shrink_axis_mask",
                               options->shrink_axis_mask());
               }));
  return absl::OkStatus();
}

absl::Status LowerConcatenation(const OperatorRow&, OpLowering& c) {
  const auto* options = c.op().builtin_options_as_ConcatenationOptions();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  if (c.input_count() == 0) return absl::InvalidArgumentError("has no inputs");
  bool is_moved =
      options->fused_activation_function() == ActivationFunctionType::NONE;
  for (int i = 0; i < c.input_count(); ++i) {
    is_moved = is_moved && c.InputFitsOutput(i, 0);
  }
  std::vector<Value> inputs;
  for (int i = 0; i < c.input_count(); ++i) {
    inputs.push_back(is_moved ? c.Stored(i) : c.Real(i));
  }
  Value joined = inputs[0];
  if (inputs.size() > 1) {
    inputs.push_back(c.Int("axis", options->axis()));
    joined = c.Add("ConcatV2", "concat", inputs);
  } else {
    joined = c.Add("Identity", "concat", inputs);
  }
  if (is_moved) {
    c.SetStored(0, joined);
  } else {
    c.SetReal(0, Activated(c, joined, options->fused_activation_function()));
  }
  return absl::OkStatus();
}

// Outputs 0 to n - 1 of one node.
absl::Status SetParts(OpLowering& c, const Value& node, int count) {
  if (count != c.output_count()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "makes ", count, " parts, but has ", c.output_count(), " outputs"));
  }
  for (int i = 0; i < count; ++i) c.SetStored(i, c.Port(node, i));
  return absl::OkStatus();
}

absl::Status LowerSplit(const OperatorRow&, OpLowering& c) {
  const auto* options = c.op().builtin_options_as_SplitOptions();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  if (options->num_splits() <= 0 || options->num_splits() != c.output_count()) {
    return SetParts(c, {}, options->num_splits());
  }
  const Value parts =
      c.Add("Split", "Split", {c.Scalar(0, "axis"), c.Stored(1)},
            [&](tensorflow::NodeDef* node) {
              graph::SetInt(node, "num_split", options->num_splits());
            });
  return SetParts(c, parts, options->num_splits());
}

absl::Status LowerSplitV(const OperatorRow&, OpLowering& c) {
  const Value parts =
      c.Add("SplitV", "SplitV", {c.Stored(0), c.Stored(1), c.Scalar(2, "axis")},
            [&](tensorflow::NodeDef* node) {
              graph::SetInt(node, "num_split", c.output_count());
            });
  return SetParts(c, parts, c.output_count());
}

absl::Status LowerPack(const OperatorRow&, OpLowering& c) {
  const auto* options = c.op().builtin_options_as_PackOptions();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  std::vector<Value> inputs;
  for (int i = 0; i < c.input_count(); ++i) inputs.push_back(c.Stored(i));
  if (inputs.empty()) return absl::InvalidArgumentError("has no inputs");
  c.SetStored(0, c.Add("Pack", "Pack", inputs, [&](tensorflow::NodeDef* node) {
    graph::SetInt(node, "axis", options->axis());
  }));
  return absl::OkStatus();
}

absl::Status LowerUnpack(const OperatorRow&, OpLowering& c) {
  const auto* options = c.op().builtin_options_as_UnpackOptions();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  const Value parts =
      c.Add("Unpack", "Unpack", {c.Stored(0)}, [&](tensorflow::NodeDef* node) {
        graph::SetInt(node, "num", c.output_count());
        graph::SetInt(node, "axis", options->axis());
      });
  return SetParts(c, parts, c.output_count());
}

absl::Status LowerBlocks(const OperatorRow& row, OpLowering& c) {
  int64_t size = 0;
  if (const auto* s = c.op().builtin_options_as_SpaceToDepthOptions()) {
    size = s->block_size();
  } else if (const auto* d = c.op().builtin_options_as_DepthToSpaceOptions()) {
    size = d->block_size();
  }
  c.SetStored(
      0, c.Add(row.op, row.op, {c.Stored(0)}, [&](tensorflow::NodeDef* node) {
        graph::SetInt(node, "block_size", size);
      }));
  return absl::OkStatus();
}

// Cells that are added are zero.
absl::Status LowerSpaceToBatch(const OperatorRow& row, OpLowering& c) {
  if (IsQuantized(c.out(0))) {
    c.SetReal(0, c.Add(row.op, row.op, {c.Real(0), c.Stored(1), c.Stored(2)}));
    return absl::OkStatus();
  }
  return LowerMoved(row, c);
}

absl::Status LowerShape(const OperatorRow&, OpLowering& c) {
  OPTFARM_RETURN_IF_ERROR(RequireOutput(c));
  const tensorflow::DataType type = TypeOf(c.out(0));
  c.SetStored(
      0, c.Add("Shape", "Shape", {c.Stored(0)}, [&](tensorflow::NodeDef* node) {
        graph::SetType(node, "out_type", type);
      }));
  return absl::OkStatus();
}

absl::Status LowerReverseSequence(const OperatorRow&, OpLowering& c) {
  const auto* options = c.op().builtin_options_as_ReverseSequenceOptions();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  c.SetStored(0,
              c.Add("ReverseSequence", "reversed", {c.Stored(0), c.Stored(1)},
                    [&](tensorflow::NodeDef* node) {
                      graph::SetInt(node, "seq_dim", options->seq_dim());
                      graph::SetInt(node, "batch_dim", options->batch_dim());
                    }));
  return absl::OkStatus();
}

constexpr OperatorRow kRows[] = {
    {BuiltinOperator::RESHAPE, 3, LowerReshape},
    {BuiltinOperator::SQUEEZE, 4, LowerSqueeze},
    {BuiltinOperator::EXPAND_DIMS, 3, LowerMoved, "ExpandDims"},
    {BuiltinOperator::TRANSPOSE, 8, LowerMoved, "Transpose"},
    {BuiltinOperator::PAD, 6, LowerPad},
    {BuiltinOperator::PADV2, 6, LowerPadV2},
    {BuiltinOperator::MIRROR_PAD, 5, LowerMirrorPad},
    {BuiltinOperator::SLICE, 8, LowerMoved, "Slice"},
    {BuiltinOperator::STRIDED_SLICE, 10, LowerStridedSlice},
    {BuiltinOperator::CONCATENATION, 6, LowerConcatenation},
    {BuiltinOperator::SPLIT, 6, LowerSplit},
    {BuiltinOperator::SPLIT_V, 4, LowerSplitV},
    {BuiltinOperator::PACK, 6, LowerPack},
    {BuiltinOperator::UNPACK, 6, LowerUnpack},
    {BuiltinOperator::TILE, 5, LowerMoved, "Tile"},
    {BuiltinOperator::BROADCAST_TO, 5, LowerMoved, "BroadcastTo"},
    {BuiltinOperator::BROADCAST_ARGS, 2, LowerMoved, "BroadcastArgs"},
    {BuiltinOperator::REVERSE_V2, 5, LowerMoved, "ReverseV2"},
    {BuiltinOperator::REVERSE_SEQUENCE, 3, LowerReverseSequence},
    {BuiltinOperator::SPACE_TO_DEPTH, 4, LowerBlocks, "SpaceToDepth"},
    {BuiltinOperator::DEPTH_TO_SPACE, 4, LowerBlocks, "DepthToSpace"},
    {BuiltinOperator::SPACE_TO_BATCH_ND, 5, LowerSpaceToBatch,
     "SpaceToBatchND"},
    {BuiltinOperator::BATCH_TO_SPACE_ND, 5, LowerMoved, "BatchToSpaceND"},
    {BuiltinOperator::SHAPE, 3, LowerShape},
    {BuiltinOperator::RANK, 2, LowerMoved, "Rank"},
    {BuiltinOperator::FILL, 5, LowerMoved, "Fill"},
    {BuiltinOperator::RANGE, 3, LowerMoved, "Range"},
    {BuiltinOperator::MATRIX_DIAG, 2, LowerMoved, "MatrixDiag"},
    {BuiltinOperator::MATRIX_SET_DIAG, 2, LowerMoved, "MatrixSetDiag"},
};

}  // namespace

absl::Span<const OperatorRow> ArrayRows() { return kRows; }

}  // namespace optfarm::tflite
