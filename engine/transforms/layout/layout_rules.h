// The rules by kind of op, and the way from a node to its rule.

#ifndef OPTFARM_ENGINE_TRANSFORMS_LAYOUT_LAYOUT_RULES_H_
#define OPTFARM_ENGINE_TRANSFORMS_LAYOUT_LAYOUT_RULES_H_

#include <memory>

#include "engine/transforms/layout/layout_rule.h"

namespace optfarm::transforms {

// nullptr for a node whose axes have a fixed meaning, or of whose shapes too
// little is known. The rule borrows graph and shapes.
std::unique_ptr<LayoutRule> FindLayoutRule(const LayoutSubject& subject);

// Makers of rules; each gives nullptr where the node is not as it has to be.
using LayoutRuleMaker =
    std::unique_ptr<LayoutRule> (*)(const LayoutSubject& subject);

// --- Element by element (element_rules.cc) -----------------------------------

// Input 0 alone is carried; the others, if there are any, are the same for all
// elements.
std::unique_ptr<LayoutRule> MakeUnaryRule(const LayoutSubject& subject);
// Clips: a unary op whose limits are scalars.
std::unique_ptr<LayoutRule> MakeClipRule(const LayoutSubject& subject);
// All inputs are broadcast together.
std::unique_ptr<LayoutRule> MakeBroadcastRule(const LayoutSubject& subject);
// All inputs have one shape.
std::unique_ptr<LayoutRule> MakeAlikeRule(const LayoutSubject& subject);
// Scale and zero point may belong to an axis: QuantizeLinear and its inverse.
std::unique_ptr<LayoutRule> MakeLinearQuantizationRule(
    const LayoutSubject& subject);
// The last axis stays the last.
std::unique_ptr<LayoutRule> MakeLastAxisRule(const LayoutSubject& subject);

// The channels are the last or the second axis, as data_format says:
// InstanceNorm, GroupNorm.
std::unique_ptr<LayoutRule> MakeFormatRule(const LayoutSubject& subject);

// --- Along axes (axis_rules.cc) ----------------------------------------------

std::unique_ptr<LayoutRule> MakeConcatRule(const LayoutSubject& subject);
std::unique_ptr<LayoutRule> MakeSplitRule(const LayoutSubject& subject);
std::unique_ptr<LayoutRule> MakeSplitVRule(const LayoutSubject& subject);
std::unique_ptr<LayoutRule> MakeReductionRule(const LayoutSubject& subject);
std::unique_ptr<LayoutRule> MakeArgMaxRule(const LayoutSubject& subject);
std::unique_ptr<LayoutRule> MakeGatherRule(const LayoutSubject& subject);
// Input 1 lists axes, or is one: ReverseV2, Cumsum.
std::unique_ptr<LayoutRule> MakeAxesRule(const LayoutSubject& subject);

// --- By a number for each axis (extent_rules.cc) -----------------------------

// Inputs 1 (and 2 of Slice) have a row for each axis: Pad, Tile, Slice.
std::unique_ptr<LayoutRule> MakeExtentsRule(const LayoutSubject& subject);
std::unique_ptr<LayoutRule> MakeStridedSliceRule(const LayoutSubject& subject);
// Resize: attribute `axes`, all axes where it is empty.
std::unique_ptr<LayoutRule> MakeResizeRule(const LayoutSubject& subject);
// Shape: its readers get the sizes in the old order.
std::unique_ptr<LayoutRule> MakeShapeRule(const LayoutSubject& subject);

// --- Other shapes (reshape_rules.cc) -----------------------------------------

// Reshape, Squeeze, ExpandDims.
std::unique_ptr<LayoutRule> MakeReshapeRule(const LayoutSubject& subject);

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_LAYOUT_LAYOUT_RULES_H_
