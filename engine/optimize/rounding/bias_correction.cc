#include "engine/optimize/rounding/bias_correction.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/dataflow_order.h"
#include "engine/graph/ops/op_table.h"
#include "engine/optimize/layers/layers.h"
#include "engine/optimize/layers/stepwise_runs.h"
#include "engine/runtime/core/thread_pool.h"
#include "engine/runtime/session/session.h"
#include "engine/transforms/nodes/constant_nodes.h"

namespace optfarm::optimize {
namespace {

using graph::Graph;
using graph::NodeId;
using runtime::Session;
using runtime::Tensor;

// UNITS: bytes of tensors kept between the layers.
constexpr int64_t kMostKept = int64_t{3} << 27;

// An addition and its constant vector.
struct Bias {
  NodeId add = graph::kNoNode;
  NodeId constant = graph::kNoNode;
  // What the constant is added to.
  graph::Endpoint operand;
  int64_t channels = 0;
};

// A tensor's sum over positions, by channel.
struct ChannelSums {
  std::vector<double> sums;
  int64_t positions = 0;
};

bool IsAddition(const graph::Node& node) {
  return graph::IsSumOrBias(node.op());
}

// Length of a float vector that has one reader; 0 for anything else.
int64_t OwnVectorLength(const Graph& graph, NodeId id) {
  const graph::Node& node = graph.node(id);
  if (!graph::IsConst(node.op()) || node.uses().size() != 1) return 0;
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
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<bool> may_be_cut,
                           MayBeCutOff(optimized));
  std::vector<Bias> biases;
  for (NodeId id : order) {
    const graph::Node& node = optimized.node(id);
    // It has no mean over all samples.
    if (may_be_cut[id]) continue;
    if (!IsAddition(node) || node.inputs().size() != 2 ||
        original.Find(node.name()) == graph::kNoNode) {
      continue;
    }
    for (int i = 0; i < 2; ++i) {
      const NodeId constant = node.inputs()[i].node;
      const int64_t channels = OwnVectorLength(optimized, constant);
      if (channels > 0) {
        biases.push_back({id, constant, node.inputs()[1 - i], channels});
        break;
      }
    }
  }
  return biases;
}

// Eight at once, which the compiler does not find by itself.
typedef float Floats __attribute__((vector_size(32)));
typedef double Doubles __attribute__((vector_size(64)));
constexpr size_t kLanes = 8;

// Sums up, over all positions, values of `kCount` times kLanes channels from
// `first` on, with what is added to each of them.
template <size_t kCount>
void SumLanes(absl::Span<const float> values, absl::Span<const float> added,
              size_t first, double* sums) {
  Floats offsets[kCount];
  std::memcpy(offsets, added.data() + first, sizeof(offsets));
  Doubles local[kCount] = {};
  for (size_t at = first; at < values.size(); at += added.size()) {
    for (size_t i = 0; i < kCount; ++i) {
      Floats v;
      std::memcpy(&v, values.data() + at + i * kLanes, sizeof(v));
      local[i] += __builtin_convertvector(v + offsets[i], Doubles);
    }
  }
  std::memcpy(sums + first, local, sizeof(local));
}

// Sums of each channel (the last dimension) of a float tensor plus a vector; no
// positions when it has another form.
ChannelSums SumChannels(const Tensor& tensor, absl::Span<const float> added) {
  const auto channels = static_cast<int64_t>(added.size());
  ChannelSums result;
  if (tensor.dtype() != tensorflow::DT_FLOAT || tensor.rank() < 1 ||
      tensor.dim(tensor.rank() - 1) != channels) {
    return result;
  }
  result.sums.resize(static_cast<size_t>(channels), 0.0);
  const absl::Span<const float> values = tensor.flat<float>();
  double* const sums = result.sums.data();
  size_t c = 0;
  for (; c + 2 * kLanes <= added.size(); c += 2 * kLanes) {
    SumLanes<2>(values, added, c, sums);
  }
  for (; c + kLanes <= added.size(); c += kLanes) {
    SumLanes<1>(values, added, c, sums);
  }
  for (; c < added.size(); ++c) {
    for (size_t at = c; at < values.size(); at += added.size()) {
      sums[c] += values[at] + added[c];
    }
  }
  result.positions = static_cast<int64_t>(values.size()) / channels;
  return result;
}

// Over all samples, in their order, so that it does not matter which thread was
// first; no positions when one of them has another form.
ChannelSums AddUp(absl::Span<const ChannelSums> samples) {
  ChannelSums all = samples[0];
  for (const ChannelSums& sample : samples.subspan(1)) {
    if (sample.positions == 0 || all.positions == 0) return {};
    for (size_t c = 0; c < all.sums.size(); ++c) all.sums[c] += sample.sums[c];
    all.positions += sample.positions;
  }
  return all;
}

// What the additions' channels sum up to in the original, one entry a bias.
absl::StatusOr<std::vector<ChannelSums>> MeasureOriginal(
    const Graph& original, const Graph& optimized,
    absl::Span<const Bias> biases, absl::Span<const graph::TensorName> inputs,
    absl::Span<const std::vector<Tensor>> samples, runtime::ThreadPool* pool) {
  std::vector<graph::TensorName> names;
  for (const Bias& bias : biases) {
    names.push_back({optimized.node(bias.add).name(), 0});
  }
  OPTFARM_ASSIGN_OR_RETURN(const auto session,
                           Session::Create(original, inputs, names));
  std::vector<std::vector<float>> nothing;
  for (const Bias& bias : biases) {
    nothing.emplace_back(static_cast<size_t>(bias.channels), 0.0f);
  }
  std::vector<std::vector<ChannelSums>> by_bias(
      biases.size(), std::vector<ChannelSums>(samples.size()));
  OPTFARM_RETURN_IF_ERROR(RunAtOnce(
      *session, samples, pool, [&](size_t i, std::vector<Tensor> outputs) {
        for (size_t k = 0; k < outputs.size(); ++k) {
          by_bias[k][i] = SumChannels(outputs[k], nothing[k]);
        }
      }));
  std::vector<ChannelSums> sums;
  for (const auto& sums_of_samples : by_bias) {
    sums.push_back(AddUp(sums_of_samples));
  }
  return sums;
}

// What must be added to the constant so that the channels' means become the
// original's; empty when the addition has not the form expected.
std::vector<float> FindShift(const ChannelSums& wanted,
                             const ChannelSums& have) {
  if (have.positions == 0 || have.positions != wanted.positions) return {};
  std::vector<float> shift(have.sums.size());
  for (size_t c = 0; c < shift.size(); ++c) {
    shift[c] = static_cast<float>((wanted.sums[c] - have.sums[c]) /
                                  static_cast<double>(have.positions));
    // A NaN or an infinity in either graph is no reason to spread it.
    if (!std::isfinite(shift[c])) return {};
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
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<Bias> biases,
                           FindBiases(original, *optimized));
  runtime::ThreadPool pool(std::max(1, threads));
  OPTFARM_ASSIGN_OR_RETURN(
      const std::vector<ChannelSums> wanted,
      MeasureOriginal(original, *optimized, biases, inputs, samples, &pool));
  std::vector<RunStep> steps;
  // What runs and is kept ends before the addition, whose constant changes.
  for (const Bias& bias : biases)
    steps.push_back({bias.operand, bias.constant});
  StepwiseRuns runs(*optimized, inputs, samples, std::move(steps), kMostKept,
                    &pool);
  for (size_t k = 0; k < biases.size(); ++k) {
    OPTFARM_ASSIGN_OR_RETURN(
        const Tensor bias,
        transforms::FloatConstValue(optimized->node(biases[k].constant)));
    std::vector<ChannelSums> sums(samples.size());
    OPTFARM_RETURN_IF_ERROR(runs.RunNext([&](size_t i, const Tensor& value) {
      sums[i] = SumChannels(value, bias.flat<float>());
    }));
    std::vector<float> shift = FindShift(wanted[k], AddUp(sums));
    if (shift.empty()) continue;
    // At once: the layers behind see the corrected values.
    const std::string& name = optimized->node(biases[k].constant).name();
    OPTFARM_RETURN_IF_ERROR(
        transforms::ShiftConstants({{name, shift}}, optimized));
    all.emplace(name, std::move(shift));
  }
  return all;
}

}  // namespace optfarm::optimize
