#include "engine/optimize/quantized_model.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/optimize/recipes/recipe_steps.h"
#include "engine/transforms/machinery/pipeline.h"
#include "engine/transforms/machinery/transform_string.h"
#include "engine/transforms/nodes/quantized_layers.h"

namespace optfarm::optimize {
namespace {

using graph::Graph;
using transforms::QuantizedLayers;
using transforms::TransformStep;

constexpr char kToFloat[] = "dequantize_model";

// What the graph is compared with has no dequantized constants either.
constexpr char kFloatChain[] =
    "dequantize_model fold_constants(ignore_errors=true)";

// Steps that change weights, values or the layers that they belong to.
bool Quantizes(const std::string& name) {
  static const auto* const kOps = new absl::flat_hash_set<std::string>{
      "normalize_weights",    "dequantize_wide",  "weights_to_half",
      "round_weights",        "fold_batch_norms", "fold_old_batch_norms",
      "fold_scale_and_shift", "prune_channels",   "factorize_products",
      "cluster_weights"};
  return absl::StartsWith(name, "quantize_") || kOps->contains(name);
}

v1::TransformStep ToProto(const TransformStep& step) {
  v1::TransformStep proto;
  proto.set_name(step.name);
  for (const auto& parameter : step.parameters) {
    v1::TransformParam& param = *proto.add_params();
    param.set_key(parameter.key);
    param.set_value(parameter.value);
  }
  return proto;
}

void SetSteps(const std::vector<TransformStep>& steps, v1::Recipe* recipe) {
  recipe->clear_transforms();
  recipe->clear_transform_string();
  for (const TransformStep& step : steps) {
    *recipe->add_transforms() = ToProto(step);
  }
}

absl::StatusOr<bool> Dequantizes(const v1::Recipe& recipe) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<TransformStep> steps,
                           StepsOfRecipe(recipe));
  return absl::c_any_of(
      steps, [](const TransformStep& step) { return step.name == kToFloat; });
}

std::string KeptNote(const QuantizedLayers& found, const std::string& recipe) {
  return absl::StrCat(
      "The model is quantized already (", Describe(found),
      "): its weights, scales and zero points were kept as they are, and "
      "recipe '",
      recipe,
      "' quantized nothing. 'float' is the model as it came. --dequantize "
      "turns it into float first.");
}

// Whether the recipe quantizes what layers read, not their weights alone.
absl::StatusOr<bool> QuantizesValues(const v1::Recipe& recipe) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<TransformStep> steps,
                           StepsOfRecipe(recipe));
  return absl::c_any_of(steps, [](const TransformStep& step) {
    return absl::StartsWith(step.name, "quantize_") &&
           step.name != "quantize_weights" &&
           step.name != "quantize_product_weights";
  });
}

// A model whose weights alone are quantized: dynamic range.
absl::Status FitToQuantizedWeights(const QuantizedLayers& found,
                                   FittedRecipe* fitted) {
  const std::string came =
      absl::StrCat("The model came with ", found.weight_bits,
                   "-bit weights and float values"
                   " in ",
                   found.weights_only, " of ", found.layers,
                   " layers (dynamic range, or weights only)");
  const std::string recipe =
      absl::StrCat("recipe '", fitted->recipe.name(), "'");
  OPTFARM_ASSIGN_OR_RETURN(const bool quantizes_values,
                           QuantizesValues(fitted->recipe));
  if (quantizes_values) {
    fitted->notes.push_back(absl::StrCat(
        came, ": ", recipe,
        " quantizes values too, so the weights became floats first and have "
        "new scales. Recipe weights8 keeps them as they are. 'float' computes "
        "with the weights as they came."));
    return absl::OkStatus();
  }
  OPTFARM_ASSIGN_OR_RETURN(fitted->recipe, KeepingQuantized(fitted->recipe));
  fitted->notes.push_back(absl::StrCat(
      came, ": these weights and their scales were kept as they are, and ",
      recipe,
      " quantized nothing. --dequantize turns them into floats first."));
  return absl::OkStatus();
}

}  // namespace

absl::Status BeginWithDequantizing(v1::Recipe* recipe) {
  OPTFARM_ASSIGN_OR_RETURN(std::vector<TransformStep> steps,
                           StepsOfRecipe(*recipe));
  steps.insert(steps.begin(), TransformStep{kToFloat, {}});
  SetSteps(steps, recipe);
  if (!recipe->has_keep_float()) return absl::OkStatus();
  for (v1::ChainChange& change :
       *recipe->mutable_keep_float()->mutable_attempts()) {
    if (change.transform_string().empty()) continue;
    change.set_transform_string(
        absl::StrCat(kToFloat, " ", change.transform_string()));
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::Recipe> KeepingQuantized(const v1::Recipe& recipe) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<TransformStep> steps,
                           StepsOfRecipe(recipe));
  std::vector<TransformStep> left;
  for (TransformStep step : steps) {
    if (Quantizes(step.name)) continue;
    if (step.name == "fold_constants") {
      step.parameters.push_back({"exclude_op", "DequantizeLinear"});
      step.parameters.push_back({"exclude_op", "DequantizeBlocks"});
    }
    left.push_back(std::move(step));
  }
  if (left.empty()) left.push_back({"strip_unused_nodes", {}});
  v1::Recipe kept = recipe;
  SetSteps(left, &kept);
  kept.clear_keep_float();
  kept.clear_file_size();
  kept.mutable_bounds()->clear_max_size_ratio();
  if (kept.has_calibration()) {
    kept.mutable_calibration()->set_required(false);
    kept.mutable_calibration()->set_freeze_inputs(false);
  }
  return kept;
}

absl::StatusOr<FittedRecipe> FitRecipe(
    const v1::Recipe& asked, absl::Span<const graph::TensorName> inputs,
    absl::Span<const graph::TensorName> outputs, Graph* graph) {
  FittedRecipe fitted = {asked, {}};
  const QuantizedLayers found = transforms::CountQuantizedLayers(*graph);
  OPTFARM_ASSIGN_OR_RETURN(const bool dequantizes, Dequantizes(asked));
  if (dequantizes) {
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<TransformStep> steps,
                             transforms::ParseTransforms(kFloatChain));
    OPTFARM_RETURN_IF_ERROR(
        transforms::RunTransforms(graph, steps, inputs, outputs).status());
    if (found.quantized + found.weights_only > 0) {
      fitted.notes.push_back(absl::StrCat(
          "The model came quantized (", Describe(found),
          ") and was turned into float first: 'float' is that, and the result "
          "has scales and weights of its own."));
    }
    return fitted;
  }
  if (found.are_most()) {
    OPTFARM_ASSIGN_OR_RETURN(fitted.recipe, KeepingQuantized(asked));
    fitted.notes.push_back(KeptNote(found, asked.name()));
  } else if (found.quantized > 0) {
    fitted.notes.push_back(absl::StrCat(
        "The model came with some quantized layers (", Describe(found),
        "); the recipe treats it as a float model."));
  } else if (found.weights_only > 0) {
    OPTFARM_RETURN_IF_ERROR(FitToQuantizedWeights(found, &fitted));
  }
  return fitted;
}

}  // namespace optfarm::optimize
