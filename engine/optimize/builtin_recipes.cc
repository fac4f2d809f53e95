#include "engine/optimize/builtin_recipes.h"

namespace optfarm::optimize {
namespace {

constexpr BuiltInText kTexts[] = {
    {"fp32", R"(name: fp32
description: Folds constants and batch norms; the answers stay the same.
transforms:
  - strip_unused_nodes
  - fold_constants: {ignore_errors: true}
  - fold_batch_norms
  - fold_old_batch_norms
verification:
  samples: 32
  per_layer: true
  allow_random_inputs: true
bounds:
  min_snr_db: 60
)"},
    {"int8", R"(name: int8
description: 8-bit weights and 8-bit arithmetic, with ranges taken from your data.
transforms:
  - add_default_attributes
  - strip_unused_nodes
  - remove_nodes: {op: [Identity, CheckNumerics]}
  - fold_constants: {ignore_errors: true}
  - fold_batch_norms
  - fold_old_batch_norms
  - quantize_weights
  - quantize_nodes
  - strip_unused_nodes
  - sort_by_execution_order
calibration:
  max_samples: 100
  range_method: min_max
  seed: 1
verification:
  samples: 32
  per_layer: true
  allow_random_inputs: true
bounds:
  labels_decide: true
  max_accuracy_drop: 2
  min_top1_agreement: 0.9
  max_size_ratio: 1
keep_float:
  attempts:
    - keep_ops: [Add, AddV2, BiasAdd, Mul, Relu, Relu6, AvgPool, MaxPool, Reshape]
      transform_string: >-
        add_default_attributes
        strip_unused_nodes
        remove_nodes(op=Identity, op=CheckNumerics)
        fold_constants(ignore_errors=true)
        fold_batch_norms
        fold_old_batch_norms
        normalize_weights
        quantize_weights
        quantize_nodes(only_coded_weights=true)
        dequantize_wide
        strip_unused_nodes
        sort_by_execution_order
      correct_biases: true
  layer_attempts: 6
)"},
    {"weights8", R"(name: weights8
description: 8-bit weights, a quarter of the size; the arithmetic stays float.
transforms:
  - strip_unused_nodes
  - fold_constants: {ignore_errors: true}
  - fold_batch_norms
  - fold_old_batch_norms
  - quantize_weights
verification:
  samples: 32
  per_layer: true
  allow_random_inputs: true
bounds:
  labels_decide: true
  max_accuracy_drop: 2
  min_top1_agreement: 0.9
  max_size_ratio: 1
keep_float:
  attempts:
    - transform_string: >-
        strip_unused_nodes
        fold_constants(ignore_errors=true)
        fold_batch_norms
        fold_old_batch_norms
        normalize_weights
        quantize_weights
      correct_biases: true
)"},
    {"round", R"(name: round
description: Weights rounded to 256 values; same size, but compresses well.
transforms:
  - strip_unused_nodes
  - fold_constants: {ignore_errors: true}
  - fold_batch_norms
  - fold_old_batch_norms
  - round_weights: {num_steps: 256}
verification:
  samples: 32
  per_layer: true
  allow_random_inputs: true
bounds:
  labels_decide: true
  max_accuracy_drop: 2
  min_top1_agreement: 0.9
)"},
};

}  // namespace

absl::Span<const BuiltInText> BuiltInTexts() { return kTexts; }

}  // namespace optfarm::optimize
