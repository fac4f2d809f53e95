// One pass over nodes and edges that gathers problems, and one for cycles.

#include "engine/graph/verify.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/dataflow_order.h"
#include "engine/graph/op_defs.h"
#include "engine/graph/ops/op_table.h"
#include "engine/graph/tensor_proto.h"

namespace optfarm::graph {
namespace {

using tensorflow::DataType;
using tensorflow::OpDef;
using tensorflow::TensorProto;

// What a node's signature says of its tensors.
struct Signature {
  bool known = false;
  std::vector<DataType> inputs;
  std::vector<DataType> outputs;
};

class Verifier {
 public:
  Verifier(const Graph& graph, const VerifyOptions& options)
      : graph_(graph), options_(options) {
    for (const auto& function : graph.library().function()) {
      functions_.emplace(function.signature().name(), &function.signature());
    }
  }

  absl::Status Run() {
    const std::vector<NodeId> ids = graph_.Ids();
    signatures_.resize(graph_.id_limit());
    for (NodeId id : ids) ReadSignature(id);
    for (NodeId id : ids) {
      CheckName(id);
      CheckEdges(id);
      CheckTensors(id);
    }
    const absl::Status cycles = DataflowOrder(graph_).status();
    if (!cycles.ok()) problems_.push_back(std::string(cycles.message()));
    return Result();
  }

 private:
  void Report(NodeId id, absl::string_view what) {
    const Node& node = graph_.node(id);
    problems_.push_back(
        absl::StrCat("node '", node.name(), "' (", node.op(), "): ", what));
  }

  void ReadSignature(NodeId id) {
    const Node& node = graph_.node(id);
    const OpDef* op_def = FindOpDef(node.op());
    if (op_def == nullptr) {
      const auto function = functions_.find(node.op());
      if (function != functions_.end()) op_def = function->second;
    }
    if (op_def == nullptr) {
      if (options_.refuse_unknown_ops) Report(id, "the op is not known");
      return;
    }
    auto inputs = InputTypes(*op_def, node.def());
    auto outputs = OutputTypes(*op_def, node.def());
    if (!inputs.ok() || !outputs.ok()) {
      // The message names the node already.
      problems_.push_back(std::string(
          (inputs.ok() ? outputs.status() : inputs.status()).message()));
      return;
    }
    signatures_[id] = {true, *std::move(inputs), *std::move(outputs)};
  }

  void CheckName(NodeId id) {
    const std::string& name = graph_.node(id).name();
    if (absl::StartsWith(name, "^") || absl::StrContains(name, ':')) {
      Report(id, "a name with ':' or a leading '^' cannot be referred to");
    }
  }

  void CheckEdges(NodeId id) {
    const Node& node = graph_.node(id);
    const Signature& own = signatures_[id];
    if (own.known && own.inputs.size() != node.inputs().size()) {
      Report(id, absl::StrCat("it takes ", own.inputs.size(),
                              " inputs but has ", node.inputs().size()));
      return;
    }
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      const Endpoint& input = node.inputs()[i];
      const Signature& source = signatures_[input.node];
      if (!source.known) continue;
      const int ports = static_cast<int>(source.outputs.size());
      if (input.port >= ports) {
        Report(id, absl::StrCat("input ", i, " reads '", graph_.NameOf(input),
                                "', but that node (",
                                graph_.node(input.node).op(), ") has ", ports,
                                ports == 1 ? " output" : " outputs"));
      } else if (own.known) {
        CheckType(id, i, own.inputs[i], source.outputs[input.port]);
      }
    }
  }

  void CheckType(NodeId id, size_t index, DataType wanted, DataType given) {
    if (IsRefType(wanted) ? wanted == given
                          : BaseType(wanted) == BaseType(given)) {
      return;
    }
    const Endpoint& input = graph_.node(id).inputs()[index];
    Report(id, absl::StrCat("input ", index, " must be ", DataTypeName(wanted),
                            ", but '", graph_.NameOf(input), "' is ",
                            DataTypeName(given)));
  }

  void CheckTensors(NodeId id) {
    const Node& node = graph_.node(id);
    for (const auto& [name, value] : node.def().attr()) {
      if (!value.has_tensor()) continue;
      const absl::Status status = CheckTensorProto(value.tensor());
      if (!status.ok()) {
        Report(id, absl::StrCat("the tensor in '", name,
                                "' is damaged: ", status.message()));
      } else if (options_.refuse_nan && HasNan(value.tensor())) {
        Report(id, absl::StrCat("the tensor in '", name, "' has NaN values"));
      }
    }
    if (IsConst(node.op())) CheckConst(id);
  }

  void CheckConst(NodeId id) {
    const Node& node = graph_.node(id);
    const tensorflow::AttrValue* value = node.FindAttr("value");
    if (value == nullptr || !value->has_tensor()) {
      Report(id, "a constant must have a 'value'");
      return;
    }
    const tensorflow::AttrValue* dtype = node.FindAttr("dtype");
    if (dtype != nullptr && dtype->type() != value->tensor().dtype()) {
      Report(id, absl::StrCat("it declares ", DataTypeName(dtype->type()),
                              " but its value is ",
                              DataTypeName(value->tensor().dtype())));
    }
  }

  static bool HasNan(const TensorProto& tensor);

  absl::Status Result() const {
    if (problems_.empty()) return absl::OkStatus();
    const size_t shown = std::min<size_t>(
        problems_.size(),
        static_cast<size_t>(std::max(options_.max_problems, 1)));
    std::string text =
        absl::StrJoin(problems_.begin(), problems_.begin() + shown, "\n");
    if (shown < problems_.size()) {
      absl::StrAppend(&text, "\n... and ", problems_.size() - shown,
                      " more problems");
    }
    return absl::InvalidArgumentError(text);
  }

  const Graph& graph_;
  const VerifyOptions& options_;
  absl::flat_hash_map<std::string, const OpDef*> functions_;
  std::vector<Signature> signatures_;
  std::vector<std::string> problems_;
};

// Bits of a NaN: all ones in the exponent, something in the fraction.
bool IsNan16(uint16_t bits, uint16_t exponent) {
  return (bits & exponent) == exponent &&
         (bits & static_cast<uint16_t>(0x7fff ^ exponent)) != 0;
}

template <typename T, typename Predicate>
bool AnyInContent(const std::string& content, Predicate is_nan) {
  for (size_t at = 0; at + sizeof(T) <= content.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, content.data() + at, sizeof(T));
    if (is_nan(value)) return true;
  }
  return false;
}

template <typename Values, typename Predicate>
bool AnyOf(const Values& values, Predicate is_nan) {
  for (const auto& value : values) {
    if (is_nan(value)) return true;
  }
  return false;
}

bool Verifier::HasNan(const TensorProto& tensor) {
  const std::string& content = tensor.tensor_content();
  const auto is_nan = [](auto value) { return std::isnan(value); };
  const bool half = tensor.dtype() == tensorflow::DT_HALF;
  const auto is_nan16 = [half](auto bits) {
    return IsNan16(static_cast<uint16_t>(bits), half ? 0x7c00 : 0x7f80);
  };
  switch (tensor.dtype()) {
    case tensorflow::DT_FLOAT:
      return AnyInContent<float>(content, is_nan) ||
             AnyOf(tensor.float_val(), is_nan);
    case tensorflow::DT_DOUBLE:
      return AnyInContent<double>(content, is_nan) ||
             AnyOf(tensor.double_val(), is_nan);
    case tensorflow::DT_HALF:
    case tensorflow::DT_BFLOAT16:
      return AnyInContent<uint16_t>(content, is_nan16) ||
             AnyOf(tensor.half_val(), is_nan16);
    default:
      return false;
  }
}

}  // namespace

absl::Status Verify(const Graph& graph, const VerifyOptions& options) {
  return Verifier(graph, options).Run();
}

}  // namespace optfarm::graph
