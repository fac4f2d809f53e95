// pool_constants: keeps small float constants together in a few large ones,
// because a node for each is most of what a constant of some numbers costs.
//
//   numbers                     a Const, Unpack
//   vectors                     a Const, SplitV; of 16-bit floats, and a Cast
//   negatives of vectors, too   a Neg before a second SplitV
//
// Nothing is computed in a run: whoever folds constants at load time folds
// these. Ranges of weights and biases are what quantize_layers makes many of.
// 16-bit floats may stand for what 8-bit layers and batch norms read; other
// vectors, by which boxes may be chosen or places be computed, stay exact.

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/op_table.h"
#include "engine/runtime/core/half.h"
#include "engine/transforms/machinery/builtin_transforms.h"
#include "engine/transforms/nodes/constant_nodes.h"

namespace optfarm::transforms {
namespace {

using graph::Endpoint;
using graph::Graph;
using graph::NodeId;
using runtime::Tensor;
using tensorflow::NodeDef;

// What a value may change by when it becomes a 16-bit float: so much of itself
// (21) or, where nobody divides by it, of the largest beside it.
constexpr float kMostOfItself = 0x1p-11f;
constexpr float kMostOfLargest = 0x1p-20f;

// Constants that may lie together.
struct Kind {
  std::string device;
  bool is_vector = false;
  bool is_negated = false;
  bool is_half = false;

  friend bool operator<(const Kind& a, const Kind& b) {
    return std::tie(a.device, a.is_vector, a.is_negated, a.is_half) <
           std::tie(b.device, b.is_vector, b.is_negated, b.is_half);
  }
};

struct Member {
  NodeId id = graph::kNoNode;
  // Nodes that give its negative.
  std::vector<NodeId> negatives;
  int64_t size = 0;
};

// A value that is given once for all elements takes no room already.
bool IsGivenOnce(const graph::Node& node) {
  const auto proto = graph::GetTensor(node.def(), "value");
  return proto.ok() && (*proto)->tensor_content().empty() &&
         (*proto)->float_val_size() <= 1;
}

bool MayPool(const graph::Node& node, const TransformContext& context) {
  const auto dtype =
      graph::GetTypeOr(node.def(), "dtype", tensorflow::DT_INVALID);
  const bool is_read =
      std::any_of(node.uses().begin(), node.uses().end(),
                  [](const graph::Use& use) { return !use.is_control(); });
  return IsConst(node) && dtype.ok() && *dtype == tensorflow::DT_FLOAT &&
         is_read && node.control_inputs().empty() &&
         !context.IsInputOrOutput(node.name());
}

// The nodes that give the constant's negative; none when nobody else reads it.
std::vector<NodeId> NegativesOf(const Graph& graph, NodeId id,
                                const TransformContext& context) {
  std::vector<NodeId> negatives;
  bool has_others = false;
  for (const graph::Use& use : graph.node(id).uses()) {
    const graph::Node& reader = graph.node(use.consumer);
    if (!use.is_control() && graph::IsNegate(reader.op()) &&
        reader.control_inputs().empty() &&
        reader.device() == graph.node(id).device() &&
        !context.IsInputOrOutput(reader.name())) {
      negatives.push_back(use.consumer);
    } else {
      has_others |= !use.is_control();
    }
  }
  if (!has_others) negatives.clear();
  return negatives;
}

// Whether only 8-bit layers and batch norms read the constant, or its negative.
bool IsReadByLayers(const Graph& graph, NodeId id,
                    absl::Span<const NodeId> negatives) {
  for (const graph::Use& use : graph.node(id).uses()) {
    if (use.is_control()) continue;
    const bool is_negative = std::find(negatives.begin(), negatives.end(),
                                       use.consumer) != negatives.end();
    if (is_negative && !IsReadByLayers(graph, use.consumer, {})) return false;
    const std::string& op = graph.node(use.consumer).op();
    if (!is_negative && !absl::StartsWith(op, "Quantized") &&
        !absl::StartsWith(op, "FusedBatchNorm")) {
      return false;
    }
  }
  return true;
}

// Whether halves may stand for the values; `is_range` when their own size
// counts, however small they are.
bool AreCloseAsHalves(absl::Span<const float> values, bool is_range) {
  float largest = 0;
  for (const float value : values) {
    if (!std::isfinite(value)) return false;
    largest = std::max(largest, std::abs(value));
  }
  return std::all_of(values.begin(), values.end(), [&](float value) {
    const float error =
        std::abs(runtime::HalfToFloat(runtime::FloatToHalf(value)) - value);
    return error <= kMostOfItself * std::abs(value) ||
           (!is_range && error <= kMostOfLargest * largest);
  });
}

class Pool {
 public:
  Pool(const Kind& kind, std::vector<Member> members, Graph* graph)
      : kind_(kind),
        members_(std::move(members)),
        before_(members_[0].id),
        graph_(graph) {}

  absl::Status Build() {
    std::vector<float> values;
    for (const Member& member : members_) {
      OPTFARM_ASSIGN_OR_RETURN(const FloatView view,
                               FloatView::Of(graph_->node(member.id)));
      values.insert(values.end(), view.values().begin(), view.values().end());
    }
    OPTFARM_ASSIGN_OR_RETURN(const Endpoint all, AddValues(values));
    const NodeId parts = kind_.is_vector ? AddSplit(all) : AddUnpack(all);
    NodeId negatives = graph::kNoNode;
    if (kind_.is_negated) {
      NodeDef def = Make("negative", "Neg");
      graph::SetType(&def, "T", tensorflow::DT_FLOAT);
      negatives = AddSplit({Add(std::move(def), {all}), 0});
    }
    for (size_t i = 0; i < members_.size(); ++i) {
      const auto port = static_cast<int>(i);
      for (const NodeId id : members_[i].negatives) {
        Replace(id, {negatives, port});
      }
      Replace(members_[i].id, {parts, port});
    }
    return absl::OkStatus();
  }

 private:
  NodeDef Make(absl::string_view name, absl::string_view op) const {
    NodeDef def;
    def.set_name(absl::StrCat("pool/", name));
    def.set_op(std::string(op));
    def.set_device(kind_.device);
    return def;
  }

  NodeId Add(NodeDef def, absl::Span<const Endpoint> inputs) {
    def.set_device(kind_.device);
    return graph_->Add(std::move(def), inputs, {}, before_);
  }

  absl::StatusOr<Endpoint> AddValues(const std::vector<float>& values) {
    const Tensor floats = Tensor::FromValues<float>(
        {static_cast<int64_t>(values.size())}, values);
    if (!kind_.is_half) {
      return Endpoint{Add(MakeConst("pool/values", floats), {}), 0};
    }
    OPTFARM_ASSIGN_OR_RETURN(const Tensor halves,
                             runtime::FloatAsHalf(floats, tensorflow::DT_HALF));
    const NodeId stored = Add(MakeConst("pool/halves", halves), {});
    NodeDef cast = Make("values", "Cast");
    graph::SetType(&cast, "SrcT", tensorflow::DT_HALF);
    graph::SetType(&cast, "DstT", tensorflow::DT_FLOAT);
    return Endpoint{Add(std::move(cast), {{stored, 0}}), 0};
  }

  NodeId AddUnpack(Endpoint all) {
    NodeDef def = Make("numbers", "Unpack");
    graph::SetType(&def, "T", tensorflow::DT_FLOAT);
    graph::SetInt(&def, "num", static_cast<int64_t>(members_.size()));
    return Add(std::move(def), {all});
  }

  NodeId AddSplit(Endpoint all) {
    if (sizes_.node == graph::kNoNode) AddSizes();
    NodeDef def = Make("vectors", "SplitV");
    graph::SetType(&def, "T", tensorflow::DT_FLOAT);
    graph::SetType(&def, "Tlen", tensorflow::DT_INT32);
    graph::SetInt(&def, "num_split", static_cast<int64_t>(members_.size()));
    return Add(std::move(def), {all, sizes_, dimension_});
  }

  void AddSizes() {
    NodeDef def = MakeConst(
        "pool/sizes",
        Tensor::FromValues<int32_t>({static_cast<int64_t>(members_.size())},
                                    std::vector<int32_t>(members_.size())));
    // As numbers, which take a byte or two each in the file.
    tensorflow::TensorProto* proto =
        (*def.mutable_attr())["value"].mutable_tensor();
    proto->clear_tensor_content();
    for (const Member& member : members_) {
      proto->add_int_val(static_cast<int32_t>(member.size));
    }
    sizes_ = {Add(std::move(def), {}), 0};
    dimension_ = {
        Add(MakeReadableConst("pool/dimension", Tensor::Scalar<int32_t>(0)),
            {}),
        0};
  }

  void Replace(NodeId id, Endpoint part) {
    graph_->RedirectUses({id, 0}, part);
    graph_->RedirectControlUses(id, part.node);
    graph_->Remove(id);
  }

  const Kind kind_;
  const std::vector<Member> members_;
  const NodeId before_;
  Endpoint sizes_{graph::kNoNode, 0}, dimension_{graph::kNoNode, 0};
  Graph* graph_;
};

absl::Status PoolConstants(Graph* graph, TransformContext* context) {
  const int64_t most = context->arguments().Int("maximum_size");
  const bool as_half = context->arguments().Bool("as_half");
  std::map<Kind, std::vector<Member>> pools;
  for (const NodeId id : graph->Ids()) {
    const graph::Node& node = graph->node(id);
    if (!MayPool(node, *context)) continue;
    OPTFARM_ASSIGN_OR_RETURN(const FloatView view, FloatView::Of(node));
    Kind kind;
    kind.device = node.device();
    kind.is_vector = view.shape().rank() == 1;
    Member member{id, {}, view.shape().num_elements()};
    if (view.shape().rank() > 1 || member.size < 1 || member.size > most ||
        (member.size > 1 && IsGivenOnce(node))) {
      continue;
    }
    if (kind.is_vector) {
      member.negatives = NegativesOf(*graph, id, *context);
      kind.is_negated = !member.negatives.empty();
      kind.is_half = as_half && IsReadByLayers(*graph, id, member.negatives) &&
                     AreCloseAsHalves(view.values(), kind.is_negated);
    }
    pools[kind].push_back(std::move(member));
  }
  for (auto& [kind, members] : pools) {
    // One constant is no pool.
    if (members.size() < 2) continue;
    context->CountChange(static_cast<int64_t>(members.size()));
    OPTFARM_RETURN_IF_ERROR(Pool(kind, std::move(members), graph).Build());
  }
  return absl::OkStatus();
}

}  // namespace

TransformDef PoolConstantsTransform() {
  return {.name = "pool_constants",
          .summary =
              "Pools float scalars and vectors in a few constants to make the "
              "file smaller.",
          .parameters = {{.name = "maximum_size",
                          .type = ParameterType::kInt,
                          .help = "Vectors with more elements are not "
                                  "changed.",
                          .default_value = "4096"},
                         {.name = "as_half",
                          .type = ParameterType::kBool,
                          .help = "Stores vectors that 8-bit layers and batch "
                                  "norms read as 16-bit floats, if no value "
                                  "changes by more than 2^-11 of itself.",
                          .default_value = "false"}},
          .run = PoolConstants};
}

}  // namespace optfarm::transforms
