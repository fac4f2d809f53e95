#include "engine/optimize/bias_correction.h"

#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/dataflow_order.h"
#include "engine/runtime/session.h"

namespace optfarm::optimize {
namespace {

using graph::Graph;
using graph::NodeId;
using runtime::Session;
using runtime::Tensor;

// An addition and its constant vector.
struct Bias {
  NodeId add = graph::kNoNode;
  NodeId constant = graph::kNoNode;
  int64_t channels = 0;
  // The addition's sum over samples and positions in the original, by channel.
  std::vector<double> wanted;
  int64_t positions = 0;
};

bool IsAddition(const graph::Node& node) {
  return node.op() == "Add" || node.op() == "AddV2" || node.op() == "BiasAdd";
}

// Length of a float vector that has one reader; 0 for anything else.
int64_t OwnVectorLength(const Graph& graph, NodeId id) {
  const graph::Node& node = graph.node(id);
  if (node.op() != "Const" || node.uses().size() != 1) return 0;
  const auto value = graph::GetTensor(node.def(), "value");
  if (!value.ok() || (*value)->dtype() != tensorflow::DT_FLOAT ||
      (*value)->tensor_shape().dim_size() != 1) {
    return 0;
  }
  return (*value)->tensor_shape().dim(0).size();
}

absl::StatusOr<std::vector<Bias>> FindBiases(const Graph& original,
                                             const Graph& optimized) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<NodeId> order,
                           graph::DataflowOrder(optimized));
  std::vector<Bias> biases;
  for (NodeId id : order) {
    const graph::Node& node = optimized.node(id);
    if (!IsAddition(node) || node.inputs().size() != 2 ||
        original.Find(node.name()) == graph::kNoNode) {
      continue;
    }
    for (const graph::Endpoint& e : node.inputs()) {
      const int64_t channels = OwnVectorLength(optimized, e.node);
      if (channels > 0) {
        biases.push_back({id, e.node, channels, {}, 0});
        break;
      }
    }
  }
  return biases;
}

// Adds up each channel (the last dimension) of a float tensor. False, and no
// change, when it has another form.
bool AddChannels(const Tensor& tensor, int64_t channels,
                 std::vector<double>* sums, int64_t* positions) {
  if (tensor.dtype() != tensorflow::DT_FLOAT || tensor.rank() < 1 ||
      tensor.dim(tensor.rank() - 1) != channels) {
    return false;
  }
  sums->resize(static_cast<size_t>(channels), 0.0);
  const absl::Span<const float> values = tensor.flat<float>();
  for (size_t i = 0; i < values.size(); ++i) {
    (*sums)[i % static_cast<size_t>(channels)] += values[i];
  }
  *positions += static_cast<int64_t>(values.size()) / channels;
  return true;
}

absl::StatusOr<std::unique_ptr<Session>> SessionFor(
    const Graph& graph, absl::Span<const graph::TensorName> inputs,
    const std::vector<graph::TensorName>& outputs, int threads) {
  runtime::SessionOptions options;
  options.threads = threads;
  return Session::Create(graph, inputs, outputs, options);
}

// Fills in what the original's channels sum up to; drops what does not fit.
absl::Status MeasureOriginal(const Graph& original, const Graph& optimized,
                             absl::Span<const graph::TensorName> inputs,
                             absl::Span<const std::vector<Tensor>> samples,
                             int threads, std::vector<Bias>* biases) {
  std::vector<graph::TensorName> names;
  for (const Bias& bias : *biases) {
    names.push_back({optimized.node(bias.add).name(), 0});
  }
  OPTFARM_ASSIGN_OR_RETURN(const auto session,
                           SessionFor(original, inputs, names, threads));
  std::vector<bool> fits(biases->size(), true);
  for (const std::vector<Tensor>& sample : samples) {
    OPTFARM_ASSIGN_OR_RETURN(const auto outputs, session->Run(sample));
    for (size_t i = 0; i < outputs.size(); ++i) {
      Bias& bias = (*biases)[i];
      fits[i] = fits[i] && AddChannels(outputs[i], bias.channels, &bias.wanted,
                                       &bias.positions);
    }
  }
  std::vector<Bias> kept;
  for (size_t i = 0; i < biases->size(); ++i) {
    if (fits[i] && (*biases)[i].positions > 0) {
      kept.push_back(std::move((*biases)[i]));
    }
  }
  *biases = std::move(kept);
  return absl::OkStatus();
}

// What must be added to the constant so that the channels' means become the
// original's; empty when the addition has not the form expected.
absl::StatusOr<std::vector<float>> FindShift(
    const Bias& bias, absl::Span<const graph::TensorName> inputs,
    absl::Span<const std::vector<Tensor>> samples, int threads,
    const Graph& optimized) {
  OPTFARM_ASSIGN_OR_RETURN(
      const auto session,
      SessionFor(optimized, inputs, {{optimized.node(bias.add).name(), 0}},
                 threads));
  std::vector<double> sums;
  int64_t positions = 0;
  for (const std::vector<Tensor>& sample : samples) {
    OPTFARM_ASSIGN_OR_RETURN(const auto outputs, session->Run(sample));
    if (!AddChannels(outputs[0], bias.channels, &sums, &positions)) {
      return std::vector<float>();
    }
  }
  if (positions != bias.positions) return std::vector<float>();
  std::vector<float> shift(sums.size());
  for (size_t c = 0; c < shift.size(); ++c) {
    shift[c] = static_cast<float>((bias.wanted[c] - sums[c]) /
                                  static_cast<double>(positions));
    // A NaN or an infinity in either graph is no reason to spread it.
    if (!std::isfinite(shift[c])) return std::vector<float>();
  }
  return shift;
}

}  // namespace

absl::StatusOr<transforms::ConstantShifts> CorrectBiases(
    const Graph& original, absl::Span<const graph::TensorName> inputs,
    absl::Span<const std::vector<Tensor>> samples, int threads,
    Graph* optimized) {
  transforms::ConstantShifts all;
  if (samples.empty()) return all;
  OPTFARM_ASSIGN_OR_RETURN(std::vector<Bias> biases,
                           FindBiases(original, *optimized));
  OPTFARM_RETURN_IF_ERROR(
      MeasureOriginal(original, *optimized, inputs, samples, threads, &biases));
  for (const Bias& bias : biases) {
    OPTFARM_ASSIGN_OR_RETURN(
        std::vector<float> shift,
        FindShift(bias, inputs, samples, threads, *optimized));
    if (shift.empty()) continue;
    // At once: the layers behind see the corrected values.
    const std::string& name = optimized->node(bias.constant).name();
    OPTFARM_RETURN_IF_ERROR(
        transforms::ShiftConstants({{name, shift}}, optimized));
    all.emplace(name, std::move(shift));
  }
  return all;
}

}  // namespace optfarm::optimize
