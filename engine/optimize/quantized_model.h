// What becomes of a recipe when the model comes quantized, as ONNX and
// TensorFlow Lite files may: the model's own numbers are kept, unless the
// recipe begins by turning it into float (dequantize_model).

#ifndef OPTFARM_ENGINE_OPTIMIZE_QUANTIZED_MODEL_H_
#define OPTFARM_ENGINE_OPTIMIZE_QUANTIZED_MODEL_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "engine/graph/tensor_name.h"
#include "optfarm/v1/recipes.pb.h"

namespace optfarm::optimize {

// Makes every chain of the recipe begin with dequantize_model.
// ERRORS: InvalidArgument for a transform string that does not parse.
absl::Status BeginWithDequantizing(v1::Recipe* recipe);

// The recipe for a model whose layers are quantized: without the steps that
// quantize weights or activations, without what it tries when it misses its
// bounds or its size, and without a bound on the size.
// ERRORS: as BeginWithDequantizing.
absl::StatusOr<v1::Recipe> KeepingQuantized(const v1::Recipe& recipe);

// A recipe as a model gets it.
struct FittedRecipe {
  v1::Recipe recipe;
  // What the user should know, one sentence each.
  std::vector<std::string> notes;
};

// For a graph whose layers are quantized: KeepingQuantized, or, where the
// recipe begins with dequantize_model, the recipe as it is; `graph` then
// computes in float, so that the result is compared with that. For a graph
// whose weights alone are quantized: KeepingQuantized, unless the recipe
// quantizes values. Other graphs and their recipes stay as they are.
// ERRORS: those of KeepingQuantized and of the transforms.
absl::StatusOr<FittedRecipe> FitRecipe(
    const v1::Recipe& asked, absl::Span<const graph::TensorName> inputs,
    absl::Span<const graph::TensorName> outputs, graph::Graph* graph);

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_QUANTIZED_MODEL_H_
