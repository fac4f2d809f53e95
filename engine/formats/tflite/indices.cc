// Operators with indices: gathering, scattering, sorting, and Fourier
// transforms, which no other family has.

#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/tflite/lowering.h"
#include "engine/formats/tflite/operator_table.h"
#include "engine/graph/attr.h"
#include "tflite/schema_generated.h"

namespace optfarm::tflite {
namespace {

absl::Status LowerMoved(const OperatorRow& row, OpLowering& c) {
  std::vector<Value> inputs;
  for (int i = 0; i < c.input_count(); ++i) inputs.push_back(c.Stored(i));
  c.SetStored(0, c.Add(row.op, row.op, inputs));
  return absl::OkStatus();
}

Value Gathered(OpLowering& c, const Value& table, const Value& indices,
               int64_t axis, int64_t batch_dims) {
  return c.Add("GatherV2", "gathered", {table, indices, c.Int("axis", axis)},
               [&](tensorflow::NodeDef* node) {
                 if (batch_dims == 0) return;
                 graph::SetInt(node, "batch_dims", batch_dims);
               });
}

absl::Status LowerGather(const OperatorRow&, OpLowering& c) {
  const auto* options = c.op().builtin_options_as_GatherOptions();
  const int64_t axis = options == nullptr ? 0 : options->axis();
  const int64_t batch_dims = options == nullptr ? 0 : options->batch_dims();
  const bool is_moved = c.InputFitsOutput(0, 0);
  const Value result = Gathered(c, is_moved ? c.Stored(0) : c.Real(0),
                                c.Stored(1), axis, batch_dims);
  is_moved ? c.SetStored(0, result) : c.SetReal(0, result);
  return absl::OkStatus();
}

// Rows of a table, which may be quantized where the result is not.
absl::Status LowerEmbeddingLookup(const OperatorRow&, OpLowering& c) {
  const bool is_moved = c.InputFitsOutput(1, 0);
  const Value result =
      Gathered(c, is_moved ? c.Stored(1) : c.Real(1), c.Stored(0), 0, 0);
  is_moved ? c.SetStored(0, result) : c.SetReal(0, result);
  return absl::OkStatus();
}

// Inputs are indices, updates and the shape.
absl::Status LowerScatterNd(const OperatorRow&, OpLowering& c) {
  c.SetReal(0, c.Add("ScatterNd", "scattered",
                     {c.Stored(0), c.Real(1), c.Stored(2)}));
  return absl::OkStatus();
}

absl::Status LowerSparseToDense(const OperatorRow&, OpLowering& c) {
  const auto* options = c.op().builtin_options_as_SparseToDenseOptions();
  c.SetStored(0, c.Add("SparseToDense", "dense",
                       {c.Stored(0), c.Stored(1), c.Stored(2), c.Stored(3)},
                       [&](tensorflow::NodeDef* node) {
                         graph::SetBool(
                             node, "validate_indices",
                             options != nullptr && options->validate_indices());
                       }));
  return absl::OkStatus();
}

absl::Status LowerOneHot(const OperatorRow&, OpLowering& c) {
  const auto* options = c.op().builtin_options_as_OneHotOptions();
  const int64_t axis = options == nullptr ? -1 : options->axis();
  c.SetStored(0, c.Add("OneHot", "OneHot",
                       {c.Stored(0), c.Stored(1), c.Stored(2), c.Stored(3)},
                       [&](tensorflow::NodeDef* node) {
                         graph::SetInt(node, "axis", axis);
                       }));
  return absl::OkStatus();
}

// Outputs of one node in their order, where the operator has them.
void SetOutputs(OpLowering& c, const Value& node, int count) {
  for (int i = 0; i < count && i < c.output_count(); ++i) {
    c.SetStored(i, c.Port(node, i));
  }
}

absl::Status LowerTopK(const OperatorRow&, OpLowering& c) {
  const Value largest = c.Add("TopKV2", "TopK", {c.Stored(0), c.Stored(1)});
  SetOutputs(c, largest, 2);
  return absl::OkStatus();
}

absl::Status LowerUnique(const OperatorRow&, OpLowering& c) {
  const auto* options = c.op().builtin_options_as_UniqueOptions();
  const bool is_wide =
      options != nullptr && options->idx_out_type() == TensorType::INT64;
  const Value unique =
      c.Add("Unique", "Unique", {c.Stored(0)}, [&](tensorflow::NodeDef* node) {
        graph::SetType(node, "out_idx",
                       is_wide ? tensorflow::DT_INT64 : tensorflow::DT_INT32);
      });
  SetOutputs(c, unique, 2);
  return absl::OkStatus();
}

absl::Status LowerBucketize(const OperatorRow&, OpLowering& c) {
  const auto* options = c.op().builtin_options_as_BucketizeOptions();
  if (options == nullptr || options->boundaries() == nullptr) {
    return absl::InvalidArgumentError("has no boundaries");
  }
  c.SetStored(0,
              c.Add("Bucketize", "Bucketize", {c.Stored(0)},
                    [&](tensorflow::NodeDef* node) {
                      auto* list =
                          (*node->mutable_attr())["boundaries"].mutable_list();
                      for (const float value : *options->boundaries()) {
                        list->add_f(value);
                      }
                    }));
  return absl::OkStatus();
}

// The chosen boxes, padded to the greatest number, and how many they are.
absl::Status LowerSuppressionV4(const OperatorRow&, OpLowering& c) {
  const Value chosen =
      c.Add("NonMaxSuppressionV4", "suppressed",
            {c.Real(0), c.Real(1), c.Stored(2), c.Real(3), c.Real(4)},
            [](tensorflow::NodeDef* node) {
              graph::SetBool(node, "pad_to_max_output_size", true);
            });
  SetOutputs(c, chosen, 2);
  return absl::OkStatus();
}

// With scores between, which sink where boxes overlap.
absl::Status LowerSuppressionV5(const OperatorRow&, OpLowering& c) {
  const Value chosen = c.Add(
      "NonMaxSuppressionV5", "suppressed",
      {c.Real(0), c.Real(1), c.Stored(2), c.Real(3), c.Real(4), c.Real(5)},
      [](tensorflow::NodeDef* node) {
        graph::SetBool(node, "pad_to_max_output_size", true);
      });
  SetOutputs(c, chosen, 3);
  return absl::OkStatus();
}

constexpr OperatorRow kRows[] = {
    {BuiltinOperator::GATHER, 8, LowerGather},
    {BuiltinOperator::GATHER_ND, 6, LowerMoved, "GatherNd"},
    {BuiltinOperator::EMBEDDING_LOOKUP, 5, LowerEmbeddingLookup},
    {BuiltinOperator::SCATTER_ND, 2, LowerScatterNd},
    {BuiltinOperator::SPARSE_TO_DENSE, 4, LowerSparseToDense},
    {BuiltinOperator::ONE_HOT, 2, LowerOneHot},
    {BuiltinOperator::TOPK_V2, 4, LowerTopK},
    {BuiltinOperator::WHERE, 3, LowerMoved, "Where"},
    {BuiltinOperator::UNIQUE, 2, LowerUnique},
    {BuiltinOperator::BUCKETIZE, 2, LowerBucketize},
    {BuiltinOperator::NON_MAX_SUPPRESSION_V4, 2, LowerSuppressionV4},
    {BuiltinOperator::NON_MAX_SUPPRESSION_V5, 2, LowerSuppressionV5},
    {BuiltinOperator::RFFT2D, 2, LowerMoved, "RFFT2D"},
};

}  // namespace

absl::Span<const OperatorRow> IndexRows() { return kRows; }

}  // namespace optfarm::tflite
