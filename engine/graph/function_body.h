// One call's copy of a function's body: the first half of inlining
// (function_inlining.h), which knows how functions name their tensors.

#ifndef OPTFARM_ENGINE_GRAPH_FUNCTION_BODY_H_
#define OPTFARM_ENGINE_GRAPH_FUNCTION_BODY_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/graph/graph.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/op_def.pb.h"

namespace optfarm::graph {

using FunctionAttributes =
    google::protobuf::Map<std::string, tensorflow::AttrValue>;

// The functions of a library by name. OWNERSHIP: the library's.
using FunctionIndex =
    absl::flat_hash_map<std::string, const tensorflow::FunctionDef*>;

// Of a SelectV2 with a condition of one element: it stands for an output of an
// If of this name, whose branches are nodes of the graph itself. Those with one
// name have one condition.
inline constexpr char kBranchesAttr[] = "_branches";

// The nodes of one body: first all of them, then their edges, because a loop's
// edges lead back. All errors are InvalidArgument and name the function.
class FunctionBody {
 public:
  // Nodes will be called "prefix/...". Those without inputs wait for `gate`,
  // constants excepted; kNoNode for none.
  FunctionBody(const tensorflow::FunctionDef& function,
               const FunctionAttributes& attributes,
               const FunctionIndex& library, const std::string& prefix,
               NodeId gate, std::vector<Endpoint> arguments, Graph* graph)
      : function_(function),
        attributes_(attributes),
        library_(library),
        prefix_(prefix),
        gate_(gate),
        arguments_(std::move(arguments)),
        graph_(*graph) {}

  absl::Status Add();
  // What the function returns, in order. REQUIRES: Add() succeeded.
  absl::StatusOr<std::vector<Endpoint>> Results() const;
  const std::vector<NodeId>& nodes() const { return nodes_; }

 private:
  absl::Status BindArguments();
  absl::Status AddNode(const tensorflow::NodeDef& def);
  absl::Status Connect(int i);
  // The tensors that "argument", "node:output" or "node:output:3" stand for.
  absl::StatusOr<std::vector<Endpoint>> Resolve(const std::string& name) const;
  // The outputs of a node that one name of its signature covers.
  absl::StatusOr<std::vector<Endpoint>> OutputsOf(
      NodeId node, absl::string_view output) const;
  absl::Status Substitute(tensorflow::AttrValue* value) const;
  const tensorflow::OpDef* SignatureOf(const std::string& op) const;
  absl::Status Error(absl::string_view what) const;

  const tensorflow::FunctionDef& function_;
  const FunctionAttributes& attributes_;
  const FunctionIndex& library_;
  const std::string prefix_;
  const NodeId gate_;
  const std::vector<Endpoint> arguments_;
  Graph& graph_;
  absl::flat_hash_map<std::string, std::vector<Endpoint>> argument_of_;
  absl::flat_hash_map<std::string, NodeId> node_of_;
  std::vector<NodeId> nodes_;
};

}  // namespace optfarm::graph

#endif  // OPTFARM_ENGINE_GRAPH_FUNCTION_BODY_H_
