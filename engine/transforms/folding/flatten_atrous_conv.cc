// flatten_atrous_conv: turns a dilated convolution that is written as
// SpaceToBatchND, convolution and BatchToSpaceND into one convolution whose
// filter has zeros between its taps: more arithmetic, fewer ops to know.
//
// What SpaceToBatchND pads and BatchToSpaceND crops decides whether the result
// is that of a SAME or a VALID convolution. TensorFlow takes SAME without
// looking.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/graph.h"
#include "engine/graph/spatial_attrs.h"
#include "engine/graph/tensor_proto.h"
#include "engine/transforms/machinery/builtin_transforms.h"
#include "engine/transforms/machinery/pattern.h"
#include "engine/transforms/nodes/constant_nodes.h"
#include "engine/transforms/nodes/convolution_weights.h"
#include "engine/transforms/nodes/unused_nodes.h"

namespace optfarm::transforms {
namespace {

using graph::Graph;
using graph::NodeId;
using runtime::Tensor;

// A filter that is larger is not worth it, and may be an attack on memory.
constexpr int64_t kMostElements = int64_t{1} << 26;

// What the one convolution will be.
struct FlatConvolution {
  Tensor filter;
  std::string padding;
};

// Integers of a constant input with `count` elements.
absl::StatusOr<std::vector<int64_t>> ConstIntegers(const Graph& graph,
                                                   NodeId id, size_t count) {
  const graph::Node& node = graph.node(id);
  if (!IsConst(node)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "'", node.name(), "' is not constant; fold_constants may make it so"));
  }
  OPTFARM_ASSIGN_OR_RETURN(const tensorflow::TensorProto* proto,
                           graph::GetTensor(node.def(), "value"));
  std::optional<std::vector<int64_t>> values =
      graph::ReadIntegers(*proto, static_cast<int64_t>(count));
  if (!values.has_value() || values->size() != count) {
    return absl::FailedPreconditionError(absl::StrCat(
        "'", node.name(), "' does not hold ", count, " whole numbers"));
  }
  return *std::move(values);
}

// new[block[0] * h, block[1] * w, i, o] = old[h, w, i, o], else 0.
absl::StatusOr<Tensor> Spread(const Tensor& filter,
                              const std::vector<int64_t>& block) {
  if (filter.rank() != 4 || filter.num_elements() == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("its filter has the shape ", filter.shape().ToString()));
  }
  const int64_t taps = filter.dim(2) * filter.dim(3);
  int64_t size[2];
  for (int i = 0; i < 2; ++i) {
    if (block[i] < 1 || block[i] > kMostElements) {
      return absl::FailedPreconditionError(
          absl::StrCat("a block of ", block[i], " is no dilation"));
    }
    size[i] = (filter.dim(i) - 1) * block[i] + 1;
  }
  if (size[0] > kMostElements / size[1] / taps) {
    return absl::FailedPreconditionError(
        absl::StrCat("its filter would be ", size[0], " by ", size[1],
                     ", more than this is good for"));
  }
  OPTFARM_ASSIGN_OR_RETURN(
      Tensor spread,
      Tensor::Allocate(tensorflow::DT_FLOAT,
                       {size[0], size[1], filter.dim(2), filter.dim(3)}));
  const absl::Span<const float> from = filter.flat<float>();
  const absl::Span<float> to = spread.flat<float>();
  std::fill(to.begin(), to.end(), 0.0f);
  for (int64_t h = 0; h < filter.dim(0); ++h) {
    for (int64_t w = 0; w < filter.dim(1); ++w) {
      const auto source = from.begin() + (h * filter.dim(1) + w) * taps;
      const int64_t at = h * block[0] * size[1] + w * block[1];
      std::copy(source, source + taps, to.begin() + at * taps);
    }
  }
  return spread;
}

// SAME or VALID, as what is padded and not cropped again tells. `window` is the
// flat filter's size.
absl::StatusOr<std::string> PaddingOf(const std::vector<int64_t>& paddings,
                                      const std::vector<int64_t>& crops,
                                      const int64_t (&window)[2]) {
  bool is_same = true, is_valid = true;
  for (int i = 0; i < 2; ++i) {
    const int64_t before = paddings[2 * i] - crops[2 * i];
    const int64_t after = paddings[2 * i + 1] - crops[2 * i + 1];
    const int64_t total = window[i] - 1;
    is_same = is_same && before == total / 2 && after == total - total / 2;
    is_valid = is_valid && before == 0 && after == 0;
  }
  // A window of one element is both.
  if (is_same) return std::string("SAME");
  if (is_valid) return std::string("VALID");
  return absl::FailedPreconditionError(
      "what is padded and cropped is neither SAME nor VALID");
}

absl::Status CheckConvolution(const graph::Node& conv) {
  OPTFARM_ASSIGN_OR_RETURN(const graph::Padding padding,
                           graph::GetPadding(conv.def()));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> strides,
                           graph::GetInts(conv.def(), "strides"));
  OPTFARM_ASSIGN_OR_RETURN(
      const std::vector<int64_t> dilations,
      graph::GetIntsOr(conv.def(), "dilations", {1, 1, 1, 1}));
  if (padding != graph::Padding::kValid) {
    return absl::FailedPreconditionError(
        absl::StrCat("its padding is ", graph::PaddingText(conv.def()),
                     ", which pads every block by itself"));
  }
  const auto is_one = [](int64_t n) { return n == 1; };
  if (!std::all_of(strides.begin(), strides.end(), is_one) ||
      !std::all_of(dilations.begin(), dilations.end(), is_one)) {
    return absl::FailedPreconditionError("it has strides or dilations");
  }
  if (!graph::IsNhwc(conv.def())) {
    return absl::FailedPreconditionError(
        absl::StrCat("its data_format is ", graph::DataFormatText(conv.def()),
                     ", where the blocks are not of height and width"));
  }
  return absl::OkStatus();
}

// ERRORS: why this match cannot be rewritten.
absl::StatusOr<FlatConvolution> Flatten(const Graph& graph, const Match& match,
                                        const TransformContext& context) {
  const graph::Node& conv = graph.node(match["conv"]);
  if (HasOtherOutputsRead(graph.node(match["space"]))) {
    return absl::FailedPreconditionError("an output it does not have is read");
  }
  if (const std::string shared =
          WhyShared(graph, context, match["conv"], match["space"]);
      !shared.empty()) {
    return absl::FailedPreconditionError(shared);
  }
  OPTFARM_RETURN_IF_ERROR(CheckConvolution(conv));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> block,
                           ConstIntegers(graph, match["block"], 2));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> block_out,
                           ConstIntegers(graph, match["block_out"], 2));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> paddings,
                           ConstIntegers(graph, match["paddings"], 4));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> crops,
                           ConstIntegers(graph, match["crops"], 4));
  if (block != block_out) {
    return absl::FailedPreconditionError(
        "it does not put the blocks together that were taken apart");
  }
  if (!IsConst(graph.node(match["filter"]))) {
    return absl::FailedPreconditionError(
        absl::StrCat("its filter '", graph.node(match["filter"]).name(),
                     "' is not constant"));
  }
  OPTFARM_ASSIGN_OR_RETURN(const Tensor filter,
                           FloatConstValue(graph.node(match["filter"])));
  FlatConvolution flat;
  OPTFARM_ASSIGN_OR_RETURN(flat.filter, Spread(filter, block));
  OPTFARM_ASSIGN_OR_RETURN(
      flat.padding,
      PaddingOf(paddings, crops, {flat.filter.dim(0), flat.filter.dim(1)}));
  return flat;
}

void Replace(const Match& match, const FlatConvolution& flat,
             const TransformContext& context, Graph* graph) {
  const NodeId conv = match["conv"];
  const NodeId space = match["space"];
  const NodeId batch = match["batch"];
  NodeId filter = match["filter"];
  if (WhyShared(*graph, context, filter, conv).empty()) {
    SetConstValue(graph->mutable_node(filter), flat.filter);
  } else {
    // Others read the filter as it is.
    tensorflow::NodeDef def =
        MakeConst(graph->node(filter).name(), flat.filter);
    def.set_device(graph->node(filter).device());
    const std::vector<NodeId> controls(
        graph->node(filter).control_inputs().begin(),
        graph->node(filter).control_inputs().end());
    filter = graph->Add(std::move(def), {}, controls, conv);
  }
  tensorflow::NodeDef* def = graph->mutable_node(conv)->mutable_def();
  graph::SetString(def, "padding", flat.padding);
  const graph::Endpoint source = graph->node(batch).inputs()[0];
  graph->SetInputs(conv, {source, {filter, 0}});
  InheritControlInputs(conv, batch, graph);
  InheritControlInputs(conv, space, graph);
  const std::string name = graph->node(space).name();
  graph->RedirectUses({space, 0}, {conv, 0});
  graph->RedirectControlUses(space, conv);
  graph->Remove(space);
  graph->Rename(conv, name);
  RemoveUnused({batch, match["block"], match["paddings"], match["block_out"],
                match["crops"]},
               context, graph);
}

absl::Status FlattenAtrousConv(Graph* graph, TransformContext* context) {
  const Pattern pattern = Inner(
      "BatchToSpaceND", "space",
      {Inner(
           kConvolutionOps, "conv",
           {Inner("SpaceToBatchND", "batch",
                  {Leaf("*", "x"), Leaf("*", "block"), Leaf("*", "paddings")}),
            Leaf("*", "filter")}),
       Leaf("*", "block_out"), Leaf("*", "crops")});
  return RewriteMatches(graph, pattern, [&](const Match& match) {
    const absl::StatusOr<FlatConvolution> flat =
        Flatten(*graph, match, *context);
    if (flat.ok()) {
      Replace(match, *flat, *context, graph);
      context->CountChange();
    } else {
      context->Skip(graph->node(match["space"]).name(),
                    flat.status().message());
    }
    return absl::OkStatus();
  });
}

}  // namespace

TransformDef FlattenAtrousConvTransform() {
  return {.name = "flatten_atrous_conv",
          .summary =
              "Turns a dilated convolution between SpaceToBatchND and "
              "BatchToSpaceND into a convolution with zeros in its filter.",
          .parameters = {},
          .run = FlattenAtrousConv};
}

}  // namespace optfarm::transforms
