// factorize_products: two smaller products in place of a large one, where the
// weights nearly are a product themselves:
//
//   y = x W   becomes   y = (x A) B,   W (m x n) ~ A (m x r) B (r x n)
//
// with the least r that keeps |W - A B| within a share of |W| (Frobenius norm;
// no rank does better than the singular vectors). A convolution's weights are a
// matrix of all that an output sees by the outputs, so that it becomes one of r
// channels, followed by one of a single point. A product is left alone unless
// r (m + n) is below m n by a margin: two products cost more than one of their
// size.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/op_table.h"
#include "engine/transforms/machinery/builtin_transforms.h"
#include "engine/transforms/nodes/constant_nodes.h"
#include "engine/transforms/nodes/static_shapes.h"
#include "engine/transforms/pruning/channel_nodes.h"
#include "engine/transforms/pruning/low_rank.h"

namespace optfarm::transforms {
namespace {

using graph::Graph;
using graph::NodeId;
using graph::ShapeMap;
using runtime::Tensor;

// The decomposition of larger ones takes minutes.
constexpr int64_t kLongestShortSide = 2048;

struct FactorOptions {
  double tolerance = 0;
  double saving = 0;
  int64_t minimum = 0;
  absl::flat_hash_set<std::string> excluded;
};

// A constant that products read as their weights, all of them alike.
struct SharedWeights {
  NodeId constant = graph::kNoNode;
  std::vector<NodeId> products;
  bool is_transposed = false;
  // Of the matrix.
  int64_t rows = 0, columns = 0;
};

// Whether a product that sums over channels reads the constant as its weights.
bool IsDenseWeights(const Graph& graph, const graph::Use& use) {
  const graph::LayerProduct product =
      graph::FloatProductOf(graph.node(use.consumer).op());
  return !use.is_control() && use.input == 1 &&
         (product == graph::LayerProduct::kConvolution ||
          product == graph::LayerProduct::kMatrix);
}

// ERRORS: why these weights stay as they are.
absl::StatusOr<SharedWeights> ReadWeights(const Graph& graph,
                                          const ShapeMap& shapes, NodeId id,
                                          const FactorOptions& options,
                                          const TransformContext& context) {
  SharedWeights shared;
  shared.constant = id;
  if (context.IsInputOrOutput(graph.node(id).name())) {
    return absl::FailedPreconditionError("it is an input or output");
  }
  for (const graph::Use& use : graph.node(id).uses()) {
    const graph::Node& product = graph.node(use.consumer);
    if (!IsDenseWeights(graph, use)) {
      return absl::FailedPreconditionError(absl::StrCat(
          "node '", product.name(), "' reads it otherwise than as weights"));
    }
    const auto weights = ReadProductWeights(graph, shapes, use.consumer);
    if (!weights) {
      return absl::FailedPreconditionError(absl::StrCat(
          "node '", product.name(),
          "' has groups, another layout or an unknown number of channels"));
    }
    const bool is_transposed = weights->output_axis < weights->input_axis;
    const int64_t columns = weights->outputs();
    if (!shared.products.empty() &&
        (is_transposed != shared.is_transposed || columns != shared.columns)) {
      return absl::FailedPreconditionError("its readers differ");
    }
    shared.is_transposed = is_transposed;
    shared.columns = columns;
    shared.rows = weights->view.shape().num_elements() / columns;
    shared.products.push_back(use.consumer);
    if (options.excluded.contains(product.name())) {
      return absl::FailedPreconditionError("a reader is excluded");
    }
  }
  std::sort(shared.products.begin(), shared.products.end());
  if (std::min(shared.rows, shared.columns) > kLongestShortSide) {
    return absl::FailedPreconditionError(absl::StrCat("it has more than ",
                                                      kLongestShortSide,
                                                      " rows and "
                                                      "columns"));
  }
  return shared;
}

std::vector<float> Transposed(absl::Span<const float> values, int64_t columns) {
  const size_t wide = static_cast<size_t>(columns);
  const size_t high = values.size() / wide;
  std::vector<float> transposed(values.size());
  for (size_t row = 0; row < high; ++row) {
    for (size_t column = 0; column < wide; ++column) {
      transposed[column * high + row] = values[row * wide + column];
    }
  }
  return transposed;
}

// A factor in the form of the weights that it comes from.
Tensor FactorTensor(const SharedWeights& shared, std::vector<float> values,
                    int64_t columns, std::vector<int64_t> dims) {
  if (shared.is_transposed) {
    values = Transposed(values, columns);
    std::swap(dims[0], dims[1]);
  }
  return Tensor::FromValues<float>(runtime::Shape::FromDims(dims).value(),
                                   values);
}

// The second convolution sees one point.
void BecomePointwise(tensorflow::NodeDef* def) {
  if (graph::IsFloatMatMul(def->op())) return;
  auto* attributes = def->mutable_attr();
  attributes->erase("dilations");
  attributes->erase("explicit_paddings");
  auto* strides = (*attributes)["strides"].mutable_list();
  strides->clear_i();
  for (int i = 0; i < 4; ++i) strides->add_i(1);
  graph::SetString(def, "padding", "VALID");
}

void Factorize(const SharedWeights& shared, const LowRank& factors,
               Graph* graph) {
  const graph::Node& constant = graph->node(shared.constant);
  const Tensor old = ConstValue(constant).value();
  std::vector<int64_t> first(old.shape().dims().begin(),
                             old.shape().dims().end());
  if (shared.is_transposed) std::swap(first[0], first[1]);
  first.back() = factors.rank;
  std::vector<int64_t> second = {factors.rank, shared.columns};
  if (old.rank() == 4) second.insert(second.begin(), 2, 1);
  tensorflow::NodeDef def = MakeConst(
      absl::StrCat(constant.name(), "/first"),
      FactorTensor(shared, factors.first, factors.rank, std::move(first)));
  def.set_device(constant.device());
  const std::vector<NodeId> controls(constant.control_inputs().begin(),
                                     constant.control_inputs().end());
  const NodeId narrow =
      graph->Add(std::move(def), {}, controls, shared.constant);
  SetConstValue(
      graph->mutable_node(shared.constant),
      FactorTensor(shared, factors.second, shared.columns, std::move(second)));
  for (const NodeId id : shared.products) {
    tensorflow::NodeDef product = graph->node(id).def();
    product.set_name(absl::StrCat(product.name(), "/first"));
    const NodeId made = graph->Add(
        std::move(product), {graph->node(id).inputs()[0], {narrow, 0}}, {}, id);
    graph->SetInput(id, 0, {made, 0});
    BecomePointwise(graph->mutable_node(id)->mutable_def());
  }
}

bool IsWeights(const Graph& graph, NodeId id, const FactorOptions& options) {
  const graph::Node& node = graph.node(id);
  if (!IsConst(node) || options.excluded.contains(node.name())) return false;
  const auto view = FloatView::Of(node);
  if (!view.ok() || view->values().empty() ||
      view->shape().num_elements() < options.minimum) {
    return false;
  }
  return std::any_of(
      node.uses().begin(), node.uses().end(),
      [&](const graph::Use& use) { return IsDenseWeights(graph, use); });
}

// ERRORS: why these weights stay as they are.
absl::Status FactorizeConstant(NodeId id, const ShapeMap& shapes,
                               const FactorOptions& options,
                               const TransformContext& context, Graph* graph) {
  OPTFARM_ASSIGN_OR_RETURN(const SharedWeights shared,
                           ReadWeights(*graph, shapes, id, options, context));
  const double whole = static_cast<double>(shared.rows * shared.columns);
  const auto most_rank =
      static_cast<int64_t>((1 - options.saving) * whole /
                           static_cast<double>(shared.rows + shared.columns));
  std::vector<float> matrix;
  {
    OPTFARM_ASSIGN_OR_RETURN(const FloatView view,
                             FloatView::Of(graph->node(id)));
    matrix.assign(view.values().begin(), view.values().end());
  }
  if (shared.is_transposed) matrix = Transposed(matrix, shared.rows);
  const auto factors =
      most_rank < 1
          ? std::nullopt
          : FindLowRank(matrix, shared.columns, options.tolerance, most_rank);
  if (!factors) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "rank %d of %d, which saves enough, is not within the tolerance",
        most_rank, std::min(shared.rows, shared.columns)));
  }
  Factorize(shared, *factors, graph);
  return absl::OkStatus();
}

absl::StatusOr<FactorOptions> ReadOptions(const TransformContext& context) {
  const std::vector<std::string> nodes =
      context.arguments().Strings("exclude_node");
  FactorOptions options = {
      .tolerance = context.arguments().Float("tolerance"),
      .saving = context.arguments().Float("minimum_saving"),
      .minimum = context.arguments().Int("minimum_size"),
      .excluded = {nodes.begin(), nodes.end()}};
  for (const auto& [name, value] :
       {std::pair("tolerance", options.tolerance),
        std::pair("minimum_saving", options.saving)}) {
    if (value >= 0 && value < 1) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "parameter '", name, "' is ", value, ", not at least 0 and below 1"));
  }
  return options;
}

absl::Status FactorizeProducts(Graph* graph, TransformContext* context) {
  OPTFARM_ASSIGN_OR_RETURN(const FactorOptions options, ReadOptions(*context));
  OPTFARM_ASSIGN_OR_RETURN(const ShapeMap shapes,
                           InferShapesWithInputs(*graph, *context));
  for (const NodeId id : graph->Ids()) {
    if (!IsWeights(*graph, id, options)) continue;
    const absl::Status status =
        FactorizeConstant(id, shapes, options, *context, graph);
    if (status.ok()) {
      context->CountChange();
    } else {
      context->Skip(graph->node(id).name(), status.message());
    }
  }
  return absl::OkStatus();
}

}  // namespace

TransformDef FactorizeProductsTransform() {
  return {
      .name = "factorize_products",
      .summary =
          "Turns convolutions and matrix products whose weights are nearly of "
          "low rank into two smaller ones.",
      .parameters =
          {{.name = "tolerance",
            .type = ParameterType::kFloat,
            .help = "How far the product of the two new weights may be from "
                    "the old ones, as a share of them (Frobenius norm).",
            .default_value = "0.2"},
           {.name = "minimum_saving",
            .type = ParameterType::kFloat,
            .help = "The share of the weights that has to go; products that "
                    "save less are not changed.",
            .default_value = "0.2"},
           {.name = "minimum_size",
            .type = ParameterType::kInt,
            .help = "Weights with fewer elements are not changed.",
            .default_value = "4096"},
           {.name = "exclude_node",
            .help = "Name of weights that are not changed, or of a product "
                    "whose weights are not.",
            .repeated = true}},
      .run = FactorizeProducts};
}

}  // namespace optfarm::transforms
