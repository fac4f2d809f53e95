// What a step that multiplies quantized values is given: TensorFlow's
// QuantizedConv2D and QuantizedMatMul, and the ops that compute whole layers
// (kernels/quantized_layers.cc), as a layer that packs its weights.

#ifndef OPTFARM_ENGINE_RUNTIME_FUSION_INT8_OPERANDS_H_
#define OPTFARM_ENGINE_RUNTIME_FUSION_INT8_OPERANDS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "engine/runtime/fusion/int8_layer.h"
#include "engine/runtime/plan/plan_editor.h"
#include "engine/runtime/plan/step_chain.h"

namespace optfarm::runtime {

struct Int8Operands {
  // Without weights and input range. Its chain is what the op itself does
  // behind the product.
  Int8LayerPlan plan;
  // Slots of quantized values, min and max.
  std::vector<int> inputs;
  int filter_slot = kNoSlot;
  bool is_transposed = false;
  // Of what comes out.
  int rank = 4;
};

// Nothing for other ops, for weights that are not constant, and for what is
// left to the kernels.
std::optional<Int8Operands> ReadInt8Operands(const PlanEditor& plan,
                                             const Step& step,
                                             const Int8Kernels& kernels);

// Gives `operands->plan` the filter, to be packed. `bytes`, and ERRORS:
// PlanEditor::Pack's.
absl::Status PackInt8Filter(const Tensor& filter, PlanEditor* editor,
                            Int8Operands* operands, int64_t* bytes);

// Gives the filter back that was packed.
ChainConstant RestoredInt8Filter(const Tensor& filter,
                                 const Int8Operands& operands);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_FUSION_INT8_OPERANDS_H_
