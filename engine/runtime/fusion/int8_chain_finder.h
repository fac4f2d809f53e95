// Follows the steps behind an 8-bit product as far as one kernel can go.

#ifndef OPTFARM_ENGINE_RUNTIME_FUSION_INT8_CHAIN_FINDER_H_
#define OPTFARM_ENGINE_RUNTIME_FUSION_INT8_CHAIN_FINDER_H_

#include <optional>
#include <vector>

#include "engine/runtime/core/quantization.h"
#include "engine/runtime/fusion/int8_chain.h"
#include "engine/runtime/plan/plan_editor.h"

namespace optfarm::runtime {

// A product and the steps up to a place where it may end.
struct Int8ChainCut {
  Int8Chain chain;
  // Numbers of the steps, ascending.
  std::vector<int> members;
  // Slots: quantized values, min, max; or floats alone.
  std::vector<int> outputs;
};

// The range in two constant slots. Nothing when they are not constant, or no
// range.
std::optional<Range> ConstantRange(const PlanEditor& plan, int min, int max);

// Everything that may be made one step with `begin`, which gives numbers of
// `rank` dimensions; the longest first, `begin` alone last.
std::vector<Int8ChainCut> FindInt8Chains(const PlanEditor& plan,
                                         Int8ChainCut begin, int rank);

// Min and Max over all values of a tensor, as quantize_nodes writes them before
// QuantizeV2. Steps `list`, `min` and `max` are theirs.
struct Int8FoundRange {
  int list = kNoStep;
  int min = kNoStep;
  int max = kNoStep;
};
std::optional<Int8FoundRange> FindRangeSteps(const PlanEditor& plan,
                                             const Step& quantize);
// Whether a QuantizeV2 is one that chains know.
bool IsPlainQuantize(const Step& step);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_FUSION_INT8_CHAIN_FINDER_H_
