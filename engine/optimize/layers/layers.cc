#include "engine/optimize/layers/layers.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/op_defs.h"
#include "engine/graph/ops/op_table.h"
#include "engine/optimize/layers/comparison.h"
#include "engine/runtime/core/thread_pool.h"
#include "engine/runtime/plan/run_options.h"
#include "engine/runtime/session/session.h"

namespace optfarm::optimize {
namespace {

using graph::Graph;
using graph::NodeId;
using graph::TensorName;
using runtime::Tensor;

// The dtype of output 0; DT_INVALID when it is not known.
tensorflow::DataType OutputType(const graph::Node& node) {
  const tensorflow::OpDef* op = graph::FindOpDef(node.op());
  if (op == nullptr) return tensorflow::DT_INVALID;
  const auto types = graph::OutputTypes(*op, node.def());
  return types.ok() && !types->empty() ? graph::BaseType((*types)[0])
                                       : tensorflow::DT_INVALID;
}

// Nodes whose value depends on what is fed.
std::vector<bool> DependsOnInputs(const Graph& graph,
                                  absl::Span<const NodeId> order,
                                  absl::Span<const TensorName> inputs) {
  std::vector<bool> depends(graph.id_limit(), false);
  for (const TensorName& input : inputs) {
    const NodeId id = graph.Find(input.node);
    if (id != graph::kNoNode) depends[id] = true;
  }
  for (const NodeId id : order) {
    for (const graph::Endpoint& input : graph.node(id).inputs()) {
      if (depends[input.node]) depends[id] = true;
    }
  }
  return depends;
}

// Nodes of the result by the names they were made with.
class ResultNodes {
 public:
  ResultNodes(const Graph& result,
              absl::Span<const transforms::RenamedNode> name_map)
      : result_(result) {
    for (const transforms::RenamedNode& renamed : name_map) {
      last_names_[renamed.before] = renamed.after;
      taken_.insert(renamed.after);
    }
  }

  NodeId Find(const std::string& name) const {
    const auto renamed = last_names_.find(name);
    if (renamed != last_names_.end()) return result_.Find(renamed->second);
    // Another node may have got the name.
    return taken_.contains(name) ? graph::kNoNode : result_.Find(name);
  }

  const Graph& graph() const { return result_; }
  const graph::Node& node(NodeId id) const { return result_.node(id); }

 private:
  const Graph& result_;
  std::map<std::string, std::string> last_names_;
  std::set<std::string> taken_;
};

// Where the result has node `name`'s value; empty when it is gone.
std::vector<TensorName> FindInResult(const ResultNodes& result,
                                     const std::string& name) {
  const NodeId same = result.Find(name);
  if (same != graph::kNoNode) {
    if (OutputType(result.node(same)) != tensorflow::DT_FLOAT) return {};
    return {{result.node(same).name(), 0}};
  }
  // What quantize_nodes calls the 8-bit output of an op.
  for (const char* suffix : {"/eightbit/requantize", "/eightbit"}) {
    const NodeId id = result.Find(absl::StrCat(name, suffix));
    if (id == graph::kNoNode) continue;
    if (OutputType(result.node(id)) != tensorflow::DT_QUINT8) continue;
    const std::string& quantized = result.node(id).name();
    return {{quantized, 0}, {quantized, 1}, {quantized, 2}};
  }
  return {};
}

// Directly, or through the one op that the folding looks through.
bool FeedsBatchNorm(const Graph& graph, NodeId id, bool directly = false) {
  for (const graph::Use& use : graph.node(id).uses()) {
    const std::string& op = graph.node(use.consumer).op();
    const graph::OpRow& row = graph::RowOf(op);
    if (row.role == graph::OpRole::kBatchNorm ||
        row.role == graph::OpRole::kGlobalBatchNorm) {
      return true;
    }
    const bool is_concat =
        row.role == graph::OpRole::kConcat && !row.has_axis_first;
    if (!directly && (is_concat || op == "BatchToSpaceND") &&
        FeedsBatchNorm(graph, use.consumer, true)) {
      return true;
    }
  }
  return false;
}

// A convolution keeps its name but not its value when the batch norm behind it
// is folded into its weights.
bool WasScaled(const Graph& original, NodeId id, const ResultNodes& result) {
  const NodeId same = result.Find(original.node(id).name());
  return FeedsBatchNorm(original, id) &&
         (same == graph::kNoNode || !FeedsBatchNorm(result.graph(), same));
}

std::vector<Layer> Spread(std::vector<Layer> layers, size_t most) {
  if (layers.size() <= most) return layers;
  std::vector<Layer> kept;
  for (size_t i = 0; i < most; ++i) {
    kept.push_back(std::move(layers[i * layers.size() / most]));
  }
  return kept;
}

}  // namespace

absl::StatusOr<std::vector<Layer>> FindLayers(
    const Graph& original, const Graph& result,
    absl::Span<const transforms::RenamedNode> name_map,
    absl::Span<const TensorName> inputs, size_t most) {
  const ResultNodes result_nodes(result, name_map);
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<NodeId> order,
                           graph::ExecutionOrder(original));
  const std::vector<bool> depends = DependsOnInputs(original, order, inputs);
  std::set<std::string> fed;
  for (const TensorName& input : inputs) fed.insert(input.node);
  std::vector<Layer> layers;
  for (const NodeId id : order) {
    const graph::Node& node = original.node(id);
    if (!depends[id] || fed.count(node.name()) > 0 ||
        OutputType(node) != tensorflow::DT_FLOAT ||
        WasScaled(original, id, result_nodes)) {
      continue;
    }
    Layer layer{node.name(), node.op(),
                FindInResult(result_nodes, node.name())};
    if (!layer.result.empty()) layers.push_back(std::move(layer));
  }
  return Spread(std::move(layers), most);
}

absl::StatusOr<std::vector<bool>> MayBeCutOff(const Graph& graph) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<NodeId> order,
                           graph::ExecutionOrder(graph));
  std::vector<bool> may_be_cut(graph.id_limit(), false);
  for (const NodeId id : order) {
    const graph::Node& node = graph.node(id);
    if (graph::IsMerge(node.op()) || graph::IsExit(node.op())) continue;
    may_be_cut[id] = graph::IsSwitch(node.op());
    for (const graph::Endpoint& input : node.inputs()) {
      if (may_be_cut[input.node]) may_be_cut[id] = true;
    }
    for (const NodeId control : node.control_inputs()) {
      if (may_be_cut[control]) may_be_cut[id] = true;
    }
  }
  return may_be_cut;
}

absl::StatusOr<std::vector<Layer>> LayersOfEveryRun(
    const Graph& original, absl::Span<const Layer> layers) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<bool> may_be_cut,
                           MayBeCutOff(original));
  std::vector<Layer> kept;
  for (const Layer& layer : layers) {
    const NodeId id = original.Find(layer.name);
    if (id != graph::kNoNode && !may_be_cut[id]) kept.push_back(layer);
  }
  return kept;
}

absl::StatusOr<Tensor> Decode(const Tensor& values, float min, float max) {
  if (values.dtype() != tensorflow::DT_QUINT8) {
    return absl::InvalidArgumentError(
        absl::StrCat("quantized values of ",
                     graph::DataTypeName(values.dtype()), " are not decoded"));
  }
  OPTFARM_ASSIGN_OR_RETURN(
      Tensor out, Tensor::Allocate(tensorflow::DT_FLOAT, values.shape()));
  const float scale = (max - min) / 255.0f;
  const float lowest = scale > 0 ? std::round(min / scale) * scale : min;
  const absl::Span<const uint8_t> from = values.flat<uint8_t>();
  for (size_t i = 0; i < from.size(); ++i) {
    out.data<float>()[i] = lowest + static_cast<float>(from[i]) * scale;
  }
  return out;
}

absl::StatusOr<Tensor> ValueOf(const Layer& layer,
                               absl::Span<const Tensor> fetched, size_t at) {
  if (layer.result.size() == 1) return fetched[at];
  const Tensor& min = fetched[at + 1];
  const Tensor& max = fetched[at + 2];
  if (min.dtype() != tensorflow::DT_FLOAT || min.num_elements() != 1 ||
      max.dtype() != tensorflow::DT_FLOAT || max.num_elements() != 1) {
    return absl::InvalidArgumentError("a range is not two float scalars");
  }
  return Decode(fetched[at], min.data<float>()[0], max.data<float>()[0]);
}

namespace {

// UNITS: bytes of the tensors of one run.
constexpr int64_t kMostCompared = int64_t{1} << 28;

// What layers are compared between. OWNERSHIP: the caller's.
struct LayerGraphs {
  const Graph& original;
  const Graph& result;
  absl::Span<const TensorName> inputs;
  int threads;
};

// Compares layers of one sample, several at once, and frees their tensors. What
// cannot be compared is not usable any more.
void CompareSample(absl::Span<const Layer> layers, std::vector<Tensor> wanted,
                   std::vector<Tensor> have, runtime::ThreadPool* pool,
                   std::vector<TensorComparer>* comparers,
                   std::vector<char>* usable) {
  std::vector<size_t> places;
  size_t next = 0;
  for (const Layer& layer : layers) {
    places.push_back(next);
    next += layer.result.size();
  }
  pool->ParallelFor(
      static_cast<int64_t>(layers.size()), 1, [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i) {
          const auto value = ValueOf(layers[i], have, places[i]);
          if (!value.ok() || !(*comparers)[i].Add(wanted[i], *value).ok()) {
            (*usable)[i] = 0;
          }
          wanted[i] = Tensor();
          have[places[i]] = Tensor();
        }
      });
}

// ERRORS: ResourceExhausted when a run needs more than `most` bytes.
absl::StatusOr<std::vector<v1::TensorComparison>> CompareAtOnce(
    const LayerGraphs& graphs, absl::Span<const Layer> layers,
    absl::Span<const int64_t> samples, int64_t most, SampleReader* reader) {
  std::vector<TensorName> original_fetches;
  std::vector<TensorName> result_fetches;
  for (const Layer& layer : layers) {
    original_fetches.push_back({layer.name, 0});
    result_fetches.insert(result_fetches.end(), layer.result.begin(),
                          layer.result.end());
  }
  runtime::SessionOptions options;
  options.threads = graphs.threads;
  options.print = [](absl::string_view) {};
  OPTFARM_ASSIGN_OR_RETURN(
      const auto before,
      runtime::Session::Create(graphs.original, graphs.inputs, original_fetches,
                               options));
  OPTFARM_ASSIGN_OR_RETURN(
      const auto after, runtime::Session::Create(graphs.result, graphs.inputs,
                                                 result_fetches, options));
  runtime::RunOptions limits;
  limits.memory_limit = most;
  runtime::ThreadPool pool(std::max(1, graphs.threads));
  std::vector<TensorComparer> comparers(layers.size());
  std::vector<char> usable(layers.size(), 1);
  for (const int64_t index : samples) {
    const auto sample = reader->Read(index);
    if (!sample.has_value()) continue;
    OPTFARM_ASSIGN_OR_RETURN(std::vector<Tensor> wanted,
                             before->Run(*sample, limits));
    OPTFARM_ASSIGN_OR_RETURN(std::vector<Tensor> have,
                             after->Run(*sample, limits));
    CompareSample(layers, std::move(wanted), std::move(have), &pool, &comparers,
                  &usable);
  }
  std::vector<v1::TensorComparison> comparisons;
  for (size_t i = 0; i < layers.size(); ++i) {
    v1::TensorComparison comparison;
    if (usable[i] != 0) comparison = comparers[i].Result();
    comparison.set_name(layers[i].name);
    comparison.set_op(layers[i].op);
    comparisons.push_back(std::move(comparison));
  }
  return comparisons;
}

}  // namespace

absl::StatusOr<std::vector<v1::TensorComparison>> CompareLayers(
    const Graph& original, const Graph& result, absl::Span<const Layer> layers,
    absl::Span<const TensorName> inputs, absl::Span<const int64_t> samples,
    int threads, SampleReader* reader) {
  const LayerGraphs graphs = {original, result, inputs, threads};
  auto compared = CompareAtOnce(graphs, layers, samples, kMostCompared, reader);
  if (!absl::IsResourceExhausted(compared.status())) return compared;
  if (layers.size() == 1) {
    return CompareAtOnce(graphs, layers, samples,
                         std::numeric_limits<int64_t>::max(), reader);
  }
  // Too much to hold at once: the samples run more than once.
  const size_t half = layers.size() / 2;
  std::vector<v1::TensorComparison> all;
  for (const auto part : {layers.first(half), layers.subspan(half)}) {
    OPTFARM_ASSIGN_OR_RETURN(
        auto of_part, CompareLayers(original, result, part, inputs, samples,
                                    threads, reader));
    all.insert(all.end(), of_part.begin(), of_part.end());
  }
  return all;
}

}  // namespace optfarm::optimize
