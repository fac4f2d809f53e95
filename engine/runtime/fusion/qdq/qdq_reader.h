// Reads the steps of an explicitly quantized graph: what QuantizeLinear and
// DequantizeLinear say of their tensors.

#ifndef OPTFARM_ENGINE_RUNTIME_FUSION_QDQ_QDQ_READER_H_
#define OPTFARM_ENGINE_RUNTIME_FUSION_QDQ_QDQ_READER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/runtime/fusion/qdq/qdq_kernel.h"
#include "engine/runtime/plan/plan_editor.h"

namespace optfarm::runtime {

// A tensor of 8-bit values that a DequantizeLinear makes floats of.
struct QdqSource {
  // Of the floats, and of the quantized values.
  int floats = kNoSlot;
  int values = kNoSlot;
  QdqTensor tensor;
};

// Constant quantized weights or biases.
struct QdqConstant {
  const Tensor* values = nullptr;
  // One, or one for each element of dimension `axis`.
  std::vector<float> scales;
  std::vector<int32_t> zero_points;
  int axis = 0;
};

// Whether the step is a node of this op, and is not fused.
bool IsNode(const Step* step, const char* op);

// Who makes a slot of floats from 8-bit values that are not constant, one scale
// for all. Nothing for other slots.
std::optional<QdqSource> ReadQdqSource(const PlanEditor& plan, int slot);

// The same for constants of any type.
std::optional<QdqConstant> ReadQdqConstant(const PlanEditor& plan, int slot);

// What a QuantizeLinear makes, if it is 8-bit values of one scale.
std::optional<QdqTensor> ReadQdqResult(const PlanEditor& plan,
                                       const Step& quantize);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_FUSION_QDQ_QDQ_READER_H_
