// Three steps: name the outputs, name the inputs, settle the inputs' shapes.

#include "engine/graph/infer_io.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/infer_outputs.h"
#include "engine/graph/model_interface.h"
#include "engine/graph/op_defs.h"
#include "engine/graph/ops/op_table.h"
#include "engine/graph/shape_inference.h"
#include "engine/graph/spatial_attrs.h"

namespace optfarm::graph {
namespace {

using tensorflow::DataType;
using tensorflow::OpDef;

// How a shape is written in --inputs: 1x224x224x3 where that can be told from a
// port number, else in brackets.
std::string FlagShape(const PartialShape& shape, absl::string_view unknown) {
  std::vector<std::string> dims;
  for (int64_t dim : shape.dims()) {
    dims.push_back(dim == kUnknownDim ? std::string(unknown)
                                      : absl::StrCat(dim));
  }
  if (dims.size() >= 2) return absl::StrJoin(dims, "x");
  return absl::StrCat("[", absl::StrJoin(dims, ","), "]");
}

// Finds the tensor a user named.
absl::StatusOr<Endpoint> FindTensor(const Graph& graph, const std::string& text,
                                    absl::string_view flag) {
  const absl::StatusOr<Endpoint> tensor = ResolveTensor(graph, text);
  if (absl::IsNotFound(tensor.status())) return Annotate(tensor.status(), flag);
  if (!tensor.ok()) {
    return Annotate(tensor.status(), absl::StrCat(flag, ": '", text, "'"));
  }
  const Node& node = graph.node(tensor->node);
  const OpDef* op_def = FindOpDef(node.op());
  if (op_def == nullptr) return *tensor;
  const absl::StatusOr<int> ports = OutputCount(*op_def, node.def());
  if (ports.ok() && tensor->port >= *ports) {
    return absl::InvalidArgumentError(absl::StrCat(
        flag, ": there is no tensor '", text, "'; the node (", node.op(),
        ") has ", *ports, *ports == 1 ? " output" : " outputs"));
  }
  return *tensor;
}

// --- Inputs ------------------------------------------------------------------

PartialShape ShapeFromConsumers(const Graph& graph, const ShapeMap& shapes,
                                Endpoint tensor, int depth = 0);

// The shape of its input 1; unknown where it has none.
PartialShape SecondShape(const ShapeMap& shapes, const Node& node) {
  return node.inputs().size() > 1 ? shapes.Of(node.inputs()[1])
                                  : PartialShape();
}

PartialShape ImagesOfFilter(const ShapeMap& shapes, const Node& node) {
  PartialShape images = PartialShape::OfRank(4);
  const auto format = GetDataFormat(node.def());
  const PartialShape filter = SecondShape(shapes, node);
  if (filter.has_rank() && filter.rank() == 4 && format.ok()) {
    images.set_dim(HasChannelsFirst(*format) ? 1 : 3, filter.dim(2));
  }
  return images;
}

PartialShape MatrixBesideMatrix(const ShapeMap& shapes, const Node& node) {
  PartialShape left = PartialShape::OfRank(2);
  const auto transposed = GetBoolOr(node.def(), "transpose_b", false);
  const PartialShape right = SecondShape(shapes, node);
  if (right.has_rank() && right.rank() == 2 && transposed.ok()) {
    left.set_dim(1, right.dim(*transposed ? 1 : 0));
  }
  return left;
}

// What one reader of a tensor demands of its shape.
PartialShape ShapeFromConsumer(const Graph& graph, const ShapeMap& shapes,
                               const Use& use, int depth) {
  constexpr int kMostSteps = 8;
  const Node& consumer = graph.node(use.consumer);
  const InputDemand demand = RowOf(consumer.op()).demand;
  const int input = demand == InputDemand::kScalarSecond ? 1 : 0;
  if (use.input != input) return PartialShape();
  switch (demand) {
    case InputDemand::kNone:
      return PartialShape();
    case InputDemand::kScalar:
    case InputDemand::kScalarSecond:
      return PartialShape::Scalar();
    case InputDemand::kImages:
      return PartialShape::OfRank(4);
    case InputDemand::kFilterChannels:
      return ImagesOfFilter(shapes, consumer);
    case InputDemand::kMatrixDepth:
      return MatrixBesideMatrix(shapes, consumer);
    case InputDemand::kAsOutput:
      return depth == kMostSteps
                 ? PartialShape()
                 : ShapeFromConsumers(graph, shapes, {use.consumer, 0},
                                      depth + 1);
  }
  return PartialShape();
}

// What the ops that read a tensor demand of its shape, where they all demand
// something of its rank at least.
PartialShape ShapeFromConsumers(const Graph& graph, const ShapeMap& shapes,
                                Endpoint tensor, int depth) {
  PartialShape hint;
  for (const Use& use : graph.UsesOf(tensor)) {
    const PartialShape wanted = ShapeFromConsumer(graph, shapes, use, depth);
    const absl::StatusOr<PartialShape> merged = MergeShapes(hint, wanted);
    if (merged.ok()) hint = *merged;
  }
  return hint;
}

// The question about shapes that are not known, with the whole flag to give.
absl::Status ShapeQuestion(const std::vector<GraphTensor>& inputs) {
  std::string text;
  std::vector<std::string> flag;
  bool any_unranked = false;
  for (const GraphTensor& input : inputs) {
    flag.push_back(input.name);
    if (input.shape.is_static()) continue;
    if (input.shape.has_rank()) {
      absl::StrAppend(&text, "what are the unknown sizes (?) in the shape ",
                      input.shape.ToString(), " of input '", input.name, "' (",
                      DataTypeName(input.dtype), ")?\n");
      absl::StrAppend(&flag.back(), ":", FlagShape(input.shape, "N"));
    } else {
      any_unranked = true;
      absl::StrAppend(&text, "what is the shape of input '", input.name, "' (",
                      DataTypeName(input.dtype),
                      ")? The graph does not tell.\n");
      absl::StrAppend(&flag.back(), ":SHAPE");
    }
  }
  absl::StrAppend(&text, "Give: --inputs=", absl::StrJoin(flag, ","),
                  any_unranked ? " with a shape such as 1x224x224x3 for each "
                                 "SHAPE ([] is a scalar)"
                               : " with a number for each N");
  return absl::FailedPreconditionError(text);
}

// A fed tensor while its shape is being settled.
struct Feed {
  GraphTensor tensor;
  // Of the user; overrides what can be inferred.
  std::optional<PartialShape> asked;
};

class IoInference {
 public:
  IoInference(const Graph& graph, const IoRequest& request)
      : graph_(graph), request_(request) {}

  absl::StatusOr<GraphIo> Run() {
    if (request_.batch < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("a batch of ", request_.batch, " is not possible"));
    }
    OPTFARM_RETURN_IF_ERROR(NameOutputs());
    OPTFARM_RETURN_IF_ERROR(NameInputs());
    OPTFARM_RETURN_IF_ERROR(SettleShapes());
    OPTFARM_RETURN_IF_ERROR(DescribeOutputs());
    return std::move(io_);
  }

 private:
  absl::Status NameOutputs() {
    for (const std::string& text : request_.outputs) {
      OPTFARM_ASSIGN_OR_RETURN(const Endpoint tensor,
                               FindTensor(graph_, text, "--outputs"));
      if (std::find(outputs_.begin(), outputs_.end(), tensor) !=
          outputs_.end()) {
        return absl::InvalidArgumentError(
            absl::StrCat("--outputs: '", text, "' is given twice"));
      }
      outputs_.push_back(tensor);
    }
    if (outputs_.empty()) {
      for (const ModelTensor& output : ReadModelInterface(graph_).outputs) {
        outputs_.push_back(output.tensor);
      }
    }
    if (outputs_.empty()) {
      OPTFARM_ASSIGN_OR_RETURN(outputs_,
                               InferOutputs(graph_, request_.take_all_outputs));
    }
    return absl::OkStatus();
  }

  absl::Status NameInputs() {
    for (const InputRequest& input : request_.inputs) {
      OPTFARM_ASSIGN_OR_RETURN(const Endpoint tensor,
                               FindTensor(graph_, input.name, "--inputs"));
      if (std::find(outputs_.begin(), outputs_.end(), tensor) !=
          outputs_.end()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "'", input.name, "' is given both as input and as output"));
      }
      for (const Feed& feed : feeds_) {
        if (feed.tensor.tensor == tensor) {
          return absl::InvalidArgumentError(
              absl::StrCat("--inputs: '", input.name, "' is given twice"));
        }
      }
      OPTFARM_RETURN_IF_ERROR(AddRequested(input, tensor));
    }
    return AddPlaceholders();
  }

  absl::Status AddRequested(const InputRequest& input, Endpoint tensor) {
    const DataType dtype = TypeOf(graph_, tensor);
    if (input.dtype.has_value() && dtype != tensorflow::DT_INVALID &&
        *input.dtype != dtype) {
      return absl::InvalidArgumentError(
          absl::StrCat("input '", input.name, "' is ", DataTypeName(dtype),
                       " in the graph, not ", DataTypeName(*input.dtype)));
    }
    feeds_.push_back(
        {{graph_.NameOf(tensor), tensor,
          dtype == tensorflow::DT_INVALID ? input.dtype.value_or(dtype) : dtype,
          PartialShape()},
         input.shape});
    return absl::OkStatus();
  }

  // Marks what the outputs need; what is fed is not computed, so nothing
  // before it is needed. Fed tensors of a node with further outputs stop the
  // walk only along the edges that read them.
  std::vector<bool> NeededNodes() const {
    absl::flat_hash_set<Endpoint> fed;
    for (const Feed& feed : feeds_) fed.insert(feed.tensor.tensor);
    std::vector<bool> needed(graph_.id_limit(), false);
    std::vector<NodeId> stack;
    const auto visit = [&](NodeId id) {
      if (!needed[id]) stack.push_back(id);
      needed[id] = true;
    };
    for (const Endpoint& output : outputs_) visit(output.node);
    while (!stack.empty()) {
      const Node& node = graph_.node(stack.back());
      stack.pop_back();
      for (const Endpoint& input : node.inputs()) {
        if (!fed.contains(input)) visit(input.node);
      }
      for (NodeId input : node.control_inputs()) {
        // A placeholder that is fed has nothing left to wait for.
        if (!fed.contains({input, 0})) visit(input);
      }
    }
    return needed;
  }

  // All nodes; declared inputs in their order, then the others in file order.
  std::vector<NodeId> DeclaredInputsFirst() const {
    std::vector<NodeId> ids;
    absl::flat_hash_set<NodeId> declared;
    for (const ModelTensor& input : ReadModelInterface(graph_).inputs) {
      ids.push_back(input.tensor.node);
      declared.insert(input.tensor.node);
    }
    for (const NodeId id : graph_.Ids()) {
      if (!declared.contains(id)) ids.push_back(id);
    }
    return ids;
  }

  // Adds the placeholders that are needed, or asks for those that a list of
  // the user's leaves out.
  absl::Status AddPlaceholders() {
    const std::vector<bool> needed = NeededNodes();
    std::vector<std::string> missing;
    for (NodeId id : DeclaredInputsFirst()) {
      const Node& node = graph_.node(id);
      const Endpoint tensor{id, 0};
      if (!needed[id]) continue;
      if (IsOptionalPlaceholder(node)) {
        io_.optional_inputs.push_back(
            {node.name(), tensor, TypeOf(graph_, tensor), PartialShape()});
      } else if (IsPlaceholder(node)) {
        if (!request_.inputs.empty()) {
          missing.push_back(node.name());
          continue;
        }
        if (std::find(outputs_.begin(), outputs_.end(), tensor) !=
            outputs_.end()) {
          return absl::InvalidArgumentError(absl::StrCat(
              "output '", node.name(), "' is a placeholder: it must be fed"));
        }
        feeds_.push_back(
            {{node.name(), tensor, TypeOf(graph_, tensor), PartialShape()},
             std::nullopt});
      }
    }
    if (!missing.empty()) return MissingInputs(missing);
    if (feeds_.empty()) {
      io_.notes.push_back(
          "the outputs depend on no placeholder: the graph is run without "
          "inputs");
    }
    return absl::OkStatus();
  }

  absl::Status MissingInputs(const std::vector<std::string>& missing) const {
    std::vector<std::string> all;
    for (const InputRequest& input : request_.inputs) {
      all.push_back(input.name);
      if (input.shape.has_value() && input.shape->has_rank()) {
        absl::StrAppend(&all.back(), ":", FlagShape(*input.shape, "?"));
      }
    }
    all.insert(all.end(), missing.begin(), missing.end());
    return absl::FailedPreconditionError(absl::StrCat(
        "the outputs also need ", missing.size() == 1 ? "input '" : "inputs '",
        absl::StrJoin(missing, "', '"),
        "'. Give: --inputs=", absl::StrJoin(all, ",")));
  }

  // What the graph says of each input's shape, the user's word over it, the
  // batch, and a question for what is left.
  absl::Status SettleShapes() {
    OPTFARM_ASSIGN_OR_RETURN(const ShapeMap shapes, InferShapes(graph_));
    bool all_static = true;
    for (Feed& feed : feeds_) {
      GraphTensor& tensor = feed.tensor;
      OPTFARM_ASSIGN_OR_RETURN(PartialShape shape, KnownShape(feed, shapes));
      if (shape.has_rank() && shape.rank() > 0 && shape.dim(0) == kUnknownDim) {
        shape.set_dim(0, request_.batch);
        io_.notes.push_back(absl::StrCat("input '", tensor.name,
                                         "': the unknown first dimension is "
                                         "taken as a batch of ",
                                         request_.batch));
      }
      all_static = all_static && shape.is_static();
      tensor.shape = std::move(shape);
      io_.inputs.push_back(tensor);
    }
    for (GraphTensor& tensor : io_.optional_inputs) {
      tensor.shape = shapes.Of(tensor.tensor);
    }
    if (!all_static) return ShapeQuestion(io_.inputs);
    return absl::OkStatus();
  }

  absl::StatusOr<PartialShape> KnownShape(const Feed& feed,
                                          const ShapeMap& shapes) const {
    const PartialShape& inferred = shapes.Of(feed.tensor.tensor);
    const PartialShape hint =
        ShapeFromConsumers(graph_, shapes, feed.tensor.tensor);
    const absl::StatusOr<PartialShape> merged = MergeShapes(inferred, hint);
    const PartialShape known = merged.ok() ? *merged : inferred;
    if (!feed.asked.has_value()) return known;
    const absl::StatusOr<PartialShape> asked = MergeShapes(known, *feed.asked);
    if (!asked.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "input '", feed.tensor.name, "' has the shape ", known.ToString(),
          " in the graph; ", feed.asked->ToString(), " does not fit"));
    }
    return *asked;
  }

  // With the inputs' shapes, those of the outputs follow; and whether the
  // model can run with them at all.
  absl::Status DescribeOutputs() {
    ShapeOptions options;
    for (const GraphTensor& input : io_.inputs) {
      options.feeds[input.tensor] = input.shape;
    }
    OPTFARM_ASSIGN_OR_RETURN(const ShapeMap shapes,
                             InferShapes(graph_, options));
    const std::vector<bool> needed = NeededNodes();
    for (const ShapeProblem& problem : shapes.problems()) {
      // A branch that is not taken may hold shapes that do not fit.
      if (!needed[problem.node] || IsConditional(problem.node)) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "the model cannot run with these inputs: ", problem.text));
    }
    for (const Endpoint& output : outputs_) {
      io_.outputs.push_back({graph_.NameOf(output), output,
                             TypeOf(graph_, output), shapes.Of(output)});
    }
    return absl::OkStatus();
  }

  bool IsConditional(NodeId id) const {
    const std::vector<bool> before = ReachableFrom(graph_, {id});
    for (NodeId other : graph_.Ids()) {
      if (!before[other]) continue;
      if (IsSwitch(graph_.node(other).op())) return true;
    }
    return false;
  }

  const Graph& graph_;
  const IoRequest& request_;
  std::vector<Endpoint> outputs_;
  std::vector<Feed> feeds_;
  GraphIo io_;
};

}  // namespace

absl::StatusOr<std::vector<Endpoint>> FindOutputs(const Graph& graph) {
  return InferOutputs(graph, /*take_all=*/true);
}

absl::StatusOr<GraphIo> InferIo(const Graph& graph, const IoRequest& request) {
  return IoInference(graph, request).Run();
}

}  // namespace optfarm::graph
