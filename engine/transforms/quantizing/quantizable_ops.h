// The float ops that quantize_nodes replaces by ops on quantized values, as
// their rows say, and the question whether a certain node may be replaced.

#ifndef OPTFARM_ENGINE_TRANSFORMS_QUANTIZING_QUANTIZABLE_OPS_H_
#define OPTFARM_ENGINE_TRANSFORMS_QUANTIZING_QUANTIZABLE_OPS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/op_table.h"
#include "engine/graph/shape_inference.h"
#include "engine/transforms/quantizing/quantize_passes.h"

namespace optfarm::transforms {

// What quantize_nodes puts in a float op's place; nullptr for an op that it
// leaves in float. OWNERSHIP: constant data.
const graph::QuantizedForm* FindQuantizedForm(absl::string_view op);

// The attributes of a list in a QuantizedForm.
std::vector<absl::string_view> AttributesOf(absl::string_view list);

// What is asked about all nodes of one graph.
class QuantizationRules {
 public:
  // OWNERSHIP: all outlive the rules. `shapes` are the graph's; nodes that were
  // added since are not asked about.
  QuantizationRules(const graph::Graph& graph, const graph::ShapeMap& shapes);

  // Whether the node computes with floats, as its counterpart needs it. A node
  // that does not is none of quantization's business.
  bool HasFloatTensors(const graph::QuantizedForm& form,
                       graph::NodeId id) const;

  // Why the node has to stay in float; "" when it can be replaced.
  // REQUIRES: HasFloatTensors().
  std::string WhyFloat(const graph::QuantizedForm& form,
                       graph::NodeId id) const;

 private:
  std::string WhyFloatByAttributes(const graph::QuantizedForm& form,
                                   const graph::Node& node) const;
  std::string WhyFloatByInputs(const graph::QuantizedForm& form,
                               const graph::Node& node) const;

  const graph::Graph& graph_;
  const graph::ShapeMap& shapes_;
  // Nodes inside while loops, by NodeId.
  std::vector<bool> in_loop_;
};

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_QUANTIZING_QUANTIZABLE_OPS_H_
