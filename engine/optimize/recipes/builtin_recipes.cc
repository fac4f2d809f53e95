#include "engine/optimize/recipes/builtin_recipes.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace optfarm::optimize {
namespace {

// What several recipes have in common.

constexpr char kFolding[] = R"(  - strip_unused_nodes
  - fold_constants: {ignore_errors: true}
  - fold_batch_norms
  - fold_old_batch_norms
)";

constexpr char kIntegerChain[] = R"(transforms:
  - fold_placeholder
  - add_default_attributes
  - strip_unused_nodes
  - remove_nodes: {op: [Identity, CheckNumerics]}
  - fold_constants: {ignore_errors: true}
  - fix_reshapes
  - fold_scale_and_shift
  - fold_batch_norms
  - fold_old_batch_norms
  - quantize_layers
  - dequantize_wide
  - normalize_weights: {minimum_size: 64}
  - quantize_weights: {minimum_size: 160, ignore_op: [Add, AddV2, BiasAdd, Mul,
      FusedBatchNorm, FusedBatchNormV2, FusedBatchNormV3]}
  - strip_unused_nodes
  - remove_default_attributes
  - sort_by_execution_order
calibration:
  max_samples: 100
  range_method: percentile
  min_percentile: 5
  max_percentile: 5
  seed: 1
)";

constexpr char kVerification[] = R"(verification:
  per_layer: true
  allow_random_inputs: true
)";

constexpr char kBounds[] = R"(bounds:
  labels_decide: true
  classes_decide: true
  max_accuracy_drop: 2
  min_top1_agreement: 0.9
  min_snr_db: 20
  max_size_ratio: 1
)";

// Noise of 4-bit weights is near to 22 dB below the weights.
constexpr char kWeights4Bounds[] = R"(bounds:
  labels_decide: true
  classes_decide: true
  max_accuracy_drop: 2
  min_top1_agreement: 0.9
  min_snr_db: 15
  max_size_ratio: 1
)";

constexpr char kFileSize[] = R"(file_size:
  aim_ratio: 0.27
  from_bytes: 1000000
  shorten_names: true
)";

// In the order that they are listed in.
std::vector<std::string> MakeTexts() {
  return {
      absl::StrCat(R"(name: fp32
description: Folds constants and batch norms; the answers stay the same.
transforms:
)",
                   kFolding, kVerification, R"(bounds:
  min_snr_db: 60
)"),
      absl::StrCat(R"(name: int8
description: 8-bit weights and 8-bit arithmetic, with ranges from your data.
)",
                   kIntegerChain, kVerification, kBounds, R"(keep_float:
  correct_biases: true
  adapt_rounding: true
  input_layers_gain_db: 3
  aim_agreement: 0.9
  aim_snr_db: 20
  attempts:
    - {range_method: percentile, min_percentile: 10, max_percentile: 10, adapt_rounding: true, correct_biases: true}
    - {range_method: mse, adapt_rounding: true, correct_biases: true}
    - keep_ops: [Add, AddV2, BiasAdd, Mul, Relu, Relu6, AvgPool, MaxPool, Reshape]
      transform_string: >-
        add_default_attributes
        strip_unused_nodes
        remove_nodes(op=Identity, op=CheckNumerics)
        fold_constants(ignore_errors=true)
        fold_batch_norms
        fold_old_batch_norms
        normalize_weights(minimum_size=64)
        quantize_weights(minimum_size=64)
        quantize_nodes(only_coded_weights=true)
        dequantize_wide
        strip_unused_nodes
        sort_by_execution_order
      correct_biases: true
  layer_attempts: 6
)",
                   kFileSize),
      absl::StrCat(R"(name: int8-fast
description: Like int8, but no layer goes back to float; the bounds tell whether the net survives.
)",
                   kIntegerChain, kVerification, kBounds, R"(keep_float:
  correct_biases: true
  adapt_rounding: true
)",
                   kFileSize),
      absl::StrCat(R"(name: int8-tf14
description: TensorFlow 1.4's own 8-bit chain with dynamic ranges, for comparison; no bounds.
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
)",
                   kVerification),
      absl::StrCat(R"(name: weights8
description: 8-bit weights, a quarter of the size; float arithmetic.
transforms:
)",
                   kFolding, R"(  - quantize_weights
)",
                   kVerification, kBounds, R"(keep_float:
  aim_agreement: 0.99
  aim_snr_db: 30
  attempts:
    - transform_string: >-
        strip_unused_nodes
        fold_constants(ignore_errors=true)
        fold_batch_norms
        fold_old_batch_norms
        normalize_weights
        quantize_weights
      correct_biases: true
)"),
      absl::StrCat(R"(name: weights8-per-channel
description: 8-bit weights with per-channel ranges; float arithmetic.
transforms:
)",
                   kFolding, R"(  - normalize_weights: {minimum_size: 64}
  - quantize_weights: {minimum_size: 64, ignore_op: [Add, AddV2, BiasAdd, Mul]}
)",
                   kVerification, R"(bounds:
  labels_decide: true
  classes_decide: true
  max_accuracy_drop: 1
  min_top1_agreement: 0.9
  min_snr_db: 20
  max_size_ratio: 1
keep_float:
  aim_agreement: 1
  aim_snr_db: 1000
  attempts:
    - correct_biases: true
)"),
      absl::StrCat(R"(name: weights4
description: 4-bit weights in blocks for matrix products, 8-bit weights for the rest; float arithmetic.
transforms:
)",
                   kFolding, R"(  - quantize_product_weights: {tables: true}
  - quantize_weights
)",
                   kVerification, kWeights4Bounds, R"(keep_float:
  aim_agreement: 0.95
  aim_snr_db: 15
  attempts:
    - transform_string: >-
        strip_unused_nodes
        fold_constants(ignore_errors=true)
        fold_batch_norms
        fold_old_batch_norms
        quantize_product_weights(block_size=16)
        normalize_weights
        quantize_weights
      correct_biases: true
    - leave_out: [quantize_product_weights]
)"),
      absl::StrCat(R"(name: fp16-weights
description: Weights as 16-bit floats, half the size; the answers hardly change.
transforms:
)",
                   kFolding, R"(  - weights_to_half
)",
                   kVerification, R"(bounds:
  labels_decide: true
  classes_decide: true
  max_accuracy_drop: 0.5
  min_top1_agreement: 0.99
  min_snr_db: 50
  max_size_ratio: 1
)"),
      absl::StrCat(R"(name: round
description: Weights rounded to 256 values; the same size, but it compresses well.
transforms:
)",
                   kFolding, R"(  - round_weights: {num_steps: 256}
)",
                   kVerification, R"(bounds:
  labels_decide: true
  classes_decide: true
  max_accuracy_drop: 2
  min_top1_agreement: 0.9
  min_snr_db: 20
)"),
  };
}

std::vector<BuiltInText> MakeViews() {
  // Never freed: views of them are handed out.
  static const auto* const kTexts = new std::vector<std::string>(MakeTexts());
  std::vector<BuiltInText> views;
  for (const std::string& text : *kTexts) {
    // "name: int8", the first line.
    const absl::string_view line =
        absl::string_view(text).substr(0, text.find('\n'));
    views.push_back({absl::StripPrefix(line, "name: "), text});
  }
  return views;
}

}  // namespace

absl::Span<const BuiltInText> BuiltInTexts() {
  static const auto* const kViews = new std::vector<BuiltInText>(MakeViews());
  return *kViews;
}

}  // namespace optfarm::optimize
