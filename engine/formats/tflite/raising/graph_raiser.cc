// The loop over the nodes.

#include "engine/formats/tflite/raising/graph_raiser.h"

#include <set>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/formats/tflite/raising/raising_table.h"
#include "engine/graph/op_defs.h"
#include "engine/graph/ops/op_table.h"

namespace optfarm::formats::tflite_raising {
namespace {

using graph::NodeId;

class GraphRaiser {
 public:
  explicit GraphRaiser(RaisedTensors* tensors) : tensors_(*tensors) {}

  std::vector<std::string> Run() && {
    for (NodeId id : tensors_.view().order()) {
      const graph::Node& node = tensors_.view().graph().node(id);
      const bool makes_nothing = graph::IsConst(node.op()) ||
                                 graph::IsNoOp(node.op()) ||
                                 PassesOn(node.op());
      if (makes_nothing || raised_.contains(id) || IsKnown(node)) continue;
      const absl::Status status = Raise(id);
      if (!status.ok()) Refuse(id, status);
    }
    return std::move(reasons_);
  }

 private:
  // Constants are made where they are read.
  bool IsKnown(const graph::Node& node) const {
    const NodeId id = tensors_.view().graph().Find(node.name());
    if (tensors_.view().IsConstant({id, 0})) return true;
    if (node.uses().empty()) return false;
    for (const graph::Use& use : node.uses()) {
      if (use.is_control()) continue;
      const graph::PartialValue* value =
          tensors_.view().shapes().ValueOf({id, use.port});
      if (value == nullptr || !value->is_known()) return false;
    }
    return true;
  }

  absl::Status Raise(NodeId id) {
    const graph::Node& node = tensors_.view().graph().node(id);
    const RaisingRow* row = FindRaising(node.op());
    if (row == nullptr) {
      return absl::UnimplementedError(
          "TensorFlow Lite has no operator for it that is written");
    }
    const tensorflow::OpDef* op_def = graph::FindOpDef(node.op());
    if (op_def == nullptr) {
      return absl::UnimplementedError("the op is not known");
    }
    const auto inputs = graph::InputCount(*op_def, node.def());
    if (!inputs.ok()) return inputs.status();
    if (*inputs != static_cast<int>(node.inputs().size())) {
      return absl::InvalidArgumentError(absl::StrCat(
          "it has ", node.inputs().size(), " inputs instead of ", *inputs));
    }
    NodeRaiser raiser(&tensors_, &raised_, id, row->builtin, row->rule);
    return row->raise(raiser);
  }

  void Refuse(NodeId id, const absl::Status& why) {
    const graph::Node& node = tensors_.view().graph().node(id);
    const int number = static_cast<int>(reasons_.size());
    reasons_.push_back(absl::StrCat("node '", node.name(), "' (", node.op(),
                                    "): ", why.message()));
    std::vector<TensorId> inputs;
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      inputs.push_back(tensors_.Tensor(node.inputs()[i]));
    }
    std::set<int> ports;
    for (const graph::Use& use : node.uses()) {
      if (!use.is_control()) ports.insert(use.port);
    }
    ports.insert(0);
    std::vector<TensorId> outputs;
    for (int port : ports) {
      if (tensors_.HasTensor({id, port})) continue;
      outputs.push_back(tensors_.NewTensor({id, port}));
      tensors_.SetTensor({id, port}, outputs.back());
    }
    tensors_.draft().AddRefusal(number, std::move(inputs), std::move(outputs));
  }

  RaisedTensors& tensors_;
  absl::flat_hash_set<NodeId> raised_;
  std::vector<std::string> reasons_;
};

}  // namespace

std::vector<std::string> RaiseGraph(RaisedTensors* tensors) {
  return GraphRaiser(tensors).Run();
}

}  // namespace optfarm::formats::tflite_raising
