// The float ops that have an 8-bit counterpart, and the question whether a
// certain node may be replaced by it.

#ifndef OPTFARM_ENGINE_TRANSFORMS_QUANTIZING_QUANTIZABLE_OPS_H_
#define OPTFARM_ENGINE_TRANSFORMS_QUANTIZING_QUANTIZABLE_OPS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/graph/graph.h"
#include "engine/graph/shape_inference.h"
#include "engine/transforms/quantizing/quantize_passes.h"

namespace optfarm::transforms {

struct QuantizableOp {
  std::string op;
  std::string quantized_op;
  // Attributes that the quantized op takes over.
  std::vector<std::string> copied;
  // Attributes that are quint8 in the quantized op.
  std::vector<std::string> code_types;
  // The attribute that is qint32; "" when the op gives 8-bit codes.
  std::string result_type;
  // The input that stays as it is; -1 for none.
  int plain_input = -1;
  // Whether all minima come before all maxima; else min, max, min, max, ...
  bool has_separate_ranges = false;

  bool has_32_bit_result() const { return !result_type.empty(); }
};

// nullptr for an op without counterpart. OWNERSHIP: lives for the process.
const QuantizableOp* FindQuantizableOp(absl::string_view op);

// What is asked about all nodes of one graph.
class QuantizationRules {
 public:
  // OWNERSHIP: all outlive the rules. `shapes` are the graph's; nodes that were
  // added since are not asked about.
  QuantizationRules(const graph::Graph& graph, const graph::ShapeMap& shapes);

  // Whether the node computes with floats, as its counterpart needs it. A node
  // that does not is none of quantization's business.
  bool HasFloatTensors(const QuantizableOp& op, graph::NodeId id) const;

  // Why the node has to stay in float; "" when it can be replaced.
  // REQUIRES: HasFloatTensors().
  std::string WhyFloat(const QuantizableOp& op, graph::NodeId id) const;

 private:
  std::string WhyFloatByAttributes(const QuantizableOp& op,
                                   const graph::Node& node) const;
  std::string WhyFloatByInputs(const QuantizableOp& op,
                               const graph::Node& node) const;

  const graph::Graph& graph_;
  const graph::ShapeMap& shapes_;
  // Nodes inside while loops, by NodeId.
  std::vector<bool> in_loop_;
};

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_QUANTIZING_QUANTIZABLE_OPS_H_
