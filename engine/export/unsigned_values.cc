#include "engine/export/unsigned_values.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/op_defs.h"
#include "engine/graph/ops/op_table.h"
#include "engine/runtime/core/tensor.h"

namespace optfarm::exporting {
namespace {

using graph::Endpoint;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using tensorflow::DataType;

// Whose elements are those of their inputs, in the order of their numbers.
const absl::flat_hash_set<std::string>& MovingOps() {
  static const auto* const ops = new absl::flat_hash_set<std::string>{
      "BroadcastTo",  "ConcatV2",  "DepthToSpace",
      "ExpandDims",   "Gather",    "GatherV2",
      "Identity",     "Maximum",   "MaxPool",
      "Minimum",      "MirrorPad", "Pack",
      "PadV2",        "Reshape",   "ResizeNearestNeighbor",
      "ReverseV2",    "Slice",     "SpaceToDepth",
      "Split",        "SplitV",    "Squeeze",
      "StridedSlice", "Tile",      "Transpose",
      "Unpack"};
  return *ops;
}

bool IsInt8(const Node& node, const char* attribute) {
  const absl::StatusOr<DataType> type =
      graph::GetTypeOr(node.def(), attribute, tensorflow::DT_INVALID);
  return type.ok() && *type == tensorflow::DT_INT8;
}

bool IsSignedConst(const Node& node) {
  return graph::IsConst(node.op()) && IsInt8(node, "dtype");
}

// The attribute that says the type of the values; "" for nodes that cannot
// change it.
const char* TypeAttribute(const Node& node) {
  if (graph::IsQuantizeLinear(node.op()) ||
      graph::IsDequantizeLinear(node.op())) {
    return "Q";
  }
  if (node.op() == "Gather" || node.op() == "GatherV2") return "Tparams";
  return MovingOps().contains(node.op()) ? "T" : "";
}

class Changer {
 public:
  Changer(absl::Span<const Endpoint> outputs, Graph* graph) : graph_(*graph) {
    for (const Endpoint& output : outputs) outputs_.insert(output.node);
  }

  absl::Status Run() {
    for (NodeId id : graph_.Ids()) {
      if (MayChange(id)) changing_.insert(id);
    }
    // What one may not change, those that share values with it may not.
    std::vector<NodeId> stay;
    for (const NodeId id : changing_) {
      if (!SharesOnlyWithChanging(id)) stay.push_back(id);
    }
    while (!stay.empty()) {
      const NodeId id = stay.back();
      stay.pop_back();
      if (changing_.erase(id) == 0) continue;
      for (const NodeId other : Neighbours(id)) {
        if (changing_.contains(other)) stay.push_back(other);
      }
    }
    for (const NodeId id : changing_) OPTFARM_RETURN_IF_ERROR(Change(id));
    return absl::OkStatus();
  }

 private:
  bool MayChange(NodeId id) const {
    const Node& node = graph_.node(id);
    const char* attribute = TypeAttribute(node);
    // Halves that leave the quantized value 0 would leave another one.
    const std::string rounding =
        graph::GetStringOr(node.def(), "rounding", "").value_or("");
    return *attribute != '\0' && IsInt8(node, attribute) &&
           rounding != "half_away" &&
           graph::GetIntOr(node.def(), "bits", 8).value_or(0) == 8;
  }

  // Inputs of int8: the values, and the zero point of those that convert.
  bool ReadsValues(NodeId id, size_t input) const {
    const Node& node = graph_.node(id);
    const tensorflow::OpDef* def = graph::FindOpDef(node.op());
    if (def == nullptr) return false;
    const auto types = graph::InputTypes(*def, node.def());
    return types.ok() && input < types->size() &&
           (*types)[input] == tensorflow::DT_INT8;
  }

  bool MakesValues(NodeId id) const {
    return !graph::IsDequantizeLinear(graph_.node(id).op());
  }

  bool SharesOnlyWithChanging(NodeId id) const {
    const Node& node = graph_.node(id);
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      if (!ReadsValues(id, i)) continue;
      const NodeId source = node.inputs()[i].node;
      if (!IsSignedConst(graph_.node(source)) && !changing_.contains(source)) {
        return false;
      }
    }
    if (!MakesValues(id)) return true;
    if (outputs_.contains(id)) return false;
    return std::all_of(node.uses().begin(), node.uses().end(),
                       [&](const graph::Use& use) {
                         return changing_.contains(use.consumer);
                       });
  }

  std::vector<NodeId> Neighbours(NodeId id) const {
    const Node& node = graph_.node(id);
    std::vector<NodeId> others;
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      if (ReadsValues(id, i)) others.push_back(node.inputs()[i].node);
    }
    if (!MakesValues(id)) return others;
    for (const graph::Use& use : node.uses()) others.push_back(use.consumer);
    return others;
  }

  absl::Status Change(NodeId id) {
    const size_t count = graph_.node(id).inputs().size();
    for (size_t i = 0; i < count; ++i) {
      const NodeId source = graph_.node(id).inputs()[i].node;
      if (!ReadsValues(id, i) || !IsSignedConst(graph_.node(source))) continue;
      OPTFARM_ASSIGN_OR_RETURN(const Endpoint constant, Unsigned(source));
      graph_.SetInput(id, static_cast<int>(i), constant);
    }
    const char* attribute = TypeAttribute(graph_.node(id));
    graph::SetType(graph_.mutable_node(id)->mutable_def(), attribute,
                   tensorflow::DT_UINT8);
    return absl::OkStatus();
  }

  // The same constant, 128 higher, as uint8.
  absl::StatusOr<Endpoint> Unsigned(NodeId id) {
    if (const auto it = unsigned_of_.find(id); it != unsigned_of_.end()) {
      return it->second;
    }
    const Node& node = graph_.node(id);
    OPTFARM_ASSIGN_OR_RETURN(const tensorflow::TensorProto* proto,
                             graph::GetTensor(node.def(), "value"));
    OPTFARM_ASSIGN_OR_RETURN(const runtime::Tensor tensor,
                             runtime::Tensor::FromProto(*proto));
    std::string bytes(static_cast<const char*>(tensor.raw()),
                      static_cast<size_t>(tensor.TotalBytes()));
    // In two's complement, adding 128 turns the highest bit.
    for (char& byte : bytes) byte = static_cast<char>(byte ^ '\x80');
    tensorflow::NodeDef def;
    def.set_name(absl::StrCat(node.name(), "/unsigned"));
    def.set_op("Const");
    graph::SetType(&def, "dtype", tensorflow::DT_UINT8);
    tensorflow::TensorProto* value =
        (*def.mutable_attr())["value"].mutable_tensor();
    value->set_dtype(tensorflow::DT_UINT8);
    *value->mutable_tensor_shape() = proto->tensor_shape();
    value->set_tensor_content(std::move(bytes));
    const Endpoint added = {graph_.Add(std::move(def), {}), 0};
    unsigned_of_.emplace(id, added);
    return added;
  }

  Graph& graph_;
  absl::flat_hash_set<NodeId> outputs_;
  // In the order of their numbers, so that files are the same each time.
  std::set<NodeId> changing_;
  std::map<NodeId, Endpoint> unsigned_of_;
};

}  // namespace

absl::Status MakeValuesUnsigned(absl::Span<const Endpoint> outputs,
                                Graph* graph) {
  return Changer(outputs, graph).Run();
}

bool QuantizesToInt8(const Graph& graph) {
  return absl::c_any_of(graph.Ids(), [&](NodeId id) {
    const Node& node = graph.node(id);
    return graph::IsQuantizeLinear(node.op()) && IsInt8(node, "Q") &&
           !node.inputs().empty() &&
           !graph::IsConst(graph.node(node.inputs()[0].node).op());
  });
}

}  // namespace optfarm::exporting
