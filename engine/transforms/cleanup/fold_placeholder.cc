// fold_placeholder: a tensor that used to be fed gets a value for good, and
// what only another value needed goes away: the training branch behind
// keras_learning_phase or is_training, dropout behind keep_prob.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/graph.h"
#include "engine/graph/op_defs.h"
#include "engine/graph/ops/op_table.h"
#include "engine/transforms/cleanup/dead_branches.h"
#include "engine/transforms/machinery/builtin_transforms.h"
#include "engine/transforms/nodes/constant_nodes.h"
#include "engine/transforms/nodes/static_shapes.h"
#include "engine/transforms/nodes/unused_nodes.h"

namespace optfarm::transforms {
namespace {

using graph::Endpoint;
using graph::Graph;
using graph::NodeId;
using graph::PartialShape;
using runtime::Tensor;
using tensorflow::DataType;

bool IsPlaceholder(const graph::Node& node) {
  return graph::IsPlaceholder(node.op()) ||
         graph::IsOptionalPlaceholder(node.op());
}

// --- The value ---------------------------------------------------------------

bool ParseElement(absl::string_view text, float* value) {
  return absl::SimpleAtof(text, value);
}
bool ParseElement(absl::string_view text, double* value) {
  return absl::SimpleAtod(text, value);
}
bool ParseElement(absl::string_view text, bool* value) {
  return absl::SimpleAtob(text, value);
}
bool ParseElement(absl::string_view text, std::string* value) {
  *value = std::string(text);
  return true;
}
template <typename T>
bool ParseElement(absl::string_view text, T* value) {
  int64_t wide = 0;
  if (!absl::SimpleAtoi(text, &wide)) return false;
  *value = static_cast<T>(wide);
  return static_cast<int64_t>(*value) == wide;
}

// One element fills the shape; several must be as many as it has.
template <typename T>
absl::StatusOr<Tensor> ParseElements(
    const std::vector<absl::string_view>& pieces, const runtime::Shape& shape) {
  OPTFARM_ASSIGN_OR_RETURN(
      Tensor tensor, Tensor::Allocate(runtime::DataTypeOf<T>::kValue, shape));
  const int64_t count = shape.num_elements();
  const int64_t given = static_cast<int64_t>(pieces.size());
  if (given != 1 && given != count) {
    return absl::InvalidArgumentError(
        absl::StrCat("there are ", given, " values for the ", count,
                     " elements of shape ", shape.ToString()));
  }
  T* out = tensor.data<T>();
  for (int64_t i = 0; i < given && i < count; ++i) {
    if (!ParseElement(pieces[static_cast<size_t>(i)], &out[i])) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", pieces[static_cast<size_t>(i)], "' is no value of type ",
          graph::DataTypeName(tensor.dtype())));
    }
  }
  if (count > 0) std::fill(out + std::min(given, count), out + count, out[0]);
  return tensor;
}

absl::StatusOr<Tensor> ParseTensor(absl::string_view text, DataType dtype,
                                   const runtime::Shape& shape) {
  std::vector<absl::string_view> pieces = absl::StrSplit(text, ',');
  switch (dtype) {
    case tensorflow::DT_FLOAT:
      return ParseElements<float>(pieces, shape);
    case tensorflow::DT_DOUBLE:
      return ParseElements<double>(pieces, shape);
    case tensorflow::DT_INT32:
      return ParseElements<int32_t>(pieces, shape);
    case tensorflow::DT_INT64:
      return ParseElements<int64_t>(pieces, shape);
    case tensorflow::DT_UINT8:
      return ParseElements<uint8_t>(pieces, shape);
    case tensorflow::DT_BOOL:
      return ParseElements<bool>(pieces, shape);
    case tensorflow::DT_STRING:
      // A text may hold commas, so it is one value.
      return ParseElements<std::string>({text}, shape);
    default:
      return absl::UnimplementedError(
          absl::StrCat("a value of type ", graph::DataTypeName(dtype),
                       " cannot be written as a parameter"));
  }
}

// The shape to fill: the tensor's, or the user's where that is not known. A
// tensor of which nothing is known is what the number of values says.
absl::StatusOr<std::vector<int64_t>> ValueDims(
    const TransformArguments& arguments, const PartialShape& known,
    absl::string_view text) {
  std::vector<int64_t> dims;
  if (arguments.Has("shape")) {
    const PartialShape given = arguments.Shape("shape");
    if (!given.is_static()) {
      return absl::InvalidArgumentError(
          "a constant needs every dimension of 'shape'");
    }
    dims.assign(given.dims().begin(), given.dims().end());
    return dims;
  }
  if (known.is_static()) {
    dims.assign(known.dims().begin(), known.dims().end());
    return dims;
  }
  if (known.has_rank() && known.rank() != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "its shape ", known.ToString(), " is not known; give 'shape'"));
  }
  const int64_t values = 1 + std::count(text.begin(), text.end(), ',');
  if (known.has_rank() || values > 1) dims.push_back(values);
  return dims;
}

absl::StatusOr<DataType> TypeOf(const Graph& graph, Endpoint tensor) {
  const graph::Node& node = graph.node(tensor.node);
  const tensorflow::OpDef* op_def = graph::FindOpDef(node.op());
  if (op_def == nullptr) {
    return absl::UnimplementedError(
        absl::StrCat("its op '", node.op(), "' is not known"));
  }
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<DataType> types,
                           graph::OutputTypes(*op_def, node.def()));
  if (tensor.port >= static_cast<int>(types.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("its node has ", types.size(), " outputs"));
  }
  return graph::BaseType(types[static_cast<size_t>(tensor.port)]);
}

// `text` is the user's value; empty for an optional placeholder's own.
absl::StatusOr<Tensor> MakeValue(const Graph& graph, Endpoint tensor,
                                 const std::string* text,
                                 const TransformContext& context) {
  const graph::Node& node = graph.node(tensor.node);
  if (text == nullptr) {
    if (!graph::IsOptionalPlaceholder(node.op()) || node.inputs().size() != 1 ||
        !IsConst(graph.node(node.inputs()[0].node))) {
      return absl::InvalidArgumentError(
          "it has no default of its own; give 'value'");
    }
    return ConstValue(graph.node(node.inputs()[0].node));
  }
  OPTFARM_ASSIGN_OR_RETURN(const DataType dtype, TypeOf(graph, tensor));
  OPTFARM_ASSIGN_OR_RETURN(const graph::ShapeMap shapes,
                           graph::InferShapes(graph));
  OPTFARM_ASSIGN_OR_RETURN(
      const std::vector<int64_t> dims,
      ValueDims(context.arguments(), shapes.Of(tensor), *text));
  OPTFARM_ASSIGN_OR_RETURN(const runtime::Shape shape,
                           runtime::Shape::FromDims(dims));
  return ParseTensor(*text, dtype, shape);
}

// --- The graph ---------------------------------------------------------------

// A constant in a branch or a loop would be there before the branch is taken.
absl::Status CheckUnconditional(const Graph& graph, NodeId id) {
  const std::vector<bool> above = graph::ReachableFrom(graph, {id});
  for (NodeId other : graph.Ids()) {
    const std::string& op = graph.node(other).op();
    if (above[other] &&
        (graph::IsSwitch(op) || op == "_SwitchN" || graph::IsEnter(op))) {
      return absl::FailedPreconditionError(absl::StrCat(
          "it depends on a condition or a loop ('", graph.node(other).name(),
          "'); only a tensor that is always computed can be folded"));
    }
  }
  return absl::OkStatus();
}

// Lets everything that reads `tensor` read the constant.
void Substitute(Endpoint tensor, const Tensor& value, TransformContext* context,
                Graph* graph) {
  graph::Node* node = graph->mutable_node(tensor.node);
  const std::string name = graph->NameOf(tensor);
  std::vector<NodeId> freed = {tensor.node};
  for (const Endpoint& e : node->inputs()) freed.push_back(e.node);
  if (IsPlaceholder(*node) && !context->IsInput(node->name())) {
    node->mutable_def()->set_op("Const");
    SetConstValue(node, value);
    graph->SetInputs(tensor.node, {});
  } else {
    if (context->IsInput(node->name())) {
      context->Warn(
          absl::StrCat("the input '", name,
                       "' has a fixed value now; what is fed to it changes "
                       "nothing"));
    }
    tensorflow::NodeDef def =
        MakeReadableConst(absl::StrCat(node->name(), "/folded"), value);
    def.set_device(node->device());
    const NodeId constant = graph->Add(std::move(def), {}, {}, tensor.node);
    graph->RedirectUses(tensor, {constant, 0});
  }
  context->CountChange();
  context->CountChange(
      RemoveUnusedWithInputs(std::move(freed), *context, graph));
}

absl::Status FoldOne(const std::string& name, const std::string* text,
                     TransformContext* context, Graph* graph) {
  OPTFARM_ASSIGN_OR_RETURN(const graph::TensorName parsed,
                           graph::ParseTensorName(name));
  OPTFARM_ASSIGN_OR_RETURN(const Endpoint tensor, graph->Resolve(parsed));
  OPTFARM_RETURN_IF_ERROR(CheckUnconditional(*graph, tensor.node));
  OPTFARM_ASSIGN_OR_RETURN(const Tensor value,
                           MakeValue(*graph, tensor, text, *context));
  Substitute(tensor, value, context, graph);
  return absl::OkStatus();
}

// Optional placeholders that nobody is going to feed.
std::vector<std::string> UnfedOptions(const Graph& graph,
                                      const TransformContext& context) {
  std::vector<std::string> names;
  for (NodeId id : graph.Ids()) {
    const graph::Node& node = graph.node(id);
    if (graph::IsOptionalPlaceholder(node.op()) && node.inputs().size() == 1 &&
        IsConst(graph.node(node.inputs()[0].node)) &&
        !context.IsInput(node.name())) {
      names.push_back(node.name());
    }
  }
  return names;
}

absl::Status FoldPlaceholder(Graph* graph, TransformContext* context) {
  std::vector<std::string> names = context->arguments().Strings("name");
  const std::vector<std::string> values = context->arguments().Strings("value");
  if (!values.empty() && values.size() != names.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'name' is given ", names.size(), " times and 'value' ", values.size(),
        " times; give each name its value, or no value at all"));
  }
  if (names.empty()) names = UnfedOptions(*graph, *context);
  for (size_t i = 0; i < names.size(); ++i) {
    const absl::Status folded = FoldOne(
        names[i], values.empty() ? nullptr : &values[i], context, graph);
    if (!folded.ok()) {
      return Annotate(folded,
                      absl::StrCat("folding the tensor '", names[i], "'"));
    }
  }
  return RemoveDeadBranches(context, graph);
}

}  // namespace

TransformDef FoldPlaceholderTransform() {
  return {
      .name = "fold_placeholder",
      .summary =
          "Replaces fed tensors with constants and removes the branches that "
          "are then never taken.",
      .parameters =
          {{.name = "name",
            .help = "Tensor to replace, for instance keras_learning_phase or "
                    "is_training. Default: all optional placeholders that are "
                    "not inputs.",
            .repeated = true},
           {.name = "value",
            .help = "Value of the tensor at the same position: one for all "
                    "elements, or a list with commas. Default: the defaults "
                    "of optional placeholders.",
            .repeated = true},
           {.name = "shape",
            .type = ParameterType::kShape,
            .help = "Shape of the values if the graph does not define it."}},
      .run = FoldPlaceholder};
}

}  // namespace optfarm::transforms
