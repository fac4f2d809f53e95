// Reads a written model back and compares its answers with the graph's.

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/export/export_model.h"
#include "engine/formats/models/load_model.h"
#include "engine/formats/tensorflow/loaded_graph.h"
#include "engine/graph/attr.h"
#include "engine/graph/model_interface.h"
#include "engine/graph/ops/op_table.h"
#include "engine/runtime/core/half.h"
#include "engine/runtime/core/tensor.h"
#include "engine/runtime/session/session.h"
#include "engine/transforms/layout/lay_out_model.h"

namespace optfarm::exporting {
namespace {

using graph::Graph;
using graph::GraphIo;
using graph::GraphTensor;
using runtime::Tensor;
using tensorflow::DataType;

// Whole numbers are often indices; small ones are valid for most tables.
constexpr int kMostInteger = 1;

// Floats between 0 and 1, like pictures.
absl::StatusOr<Tensor> RandomInput(const GraphTensor& input,
                                   std::mt19937* random) {
  if (!input.shape.is_static()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the shape of input '", input.name, "' is not known"));
  }
  OPTFARM_ASSIGN_OR_RETURN(const runtime::Shape shape,
                           runtime::Shape::FromDims(input.shape.dims()));
  OPTFARM_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Zeros(input.dtype, shape));
  const int64_t count = tensor.num_elements();
  // The generator's own numbers are the same everywhere; distributions are not.
  if (input.dtype == tensorflow::DT_FLOAT) {
    for (int64_t i = 0; i < count; ++i) {
      tensor.data<float>()[i] =
          static_cast<float>((*random)() >> 8) / 16777216.0f;
    }
  } else if (input.dtype == tensorflow::DT_UINT8 ||
             input.dtype == tensorflow::DT_INT8) {
    auto* bytes = static_cast<uint8_t*>(tensor.raw());
    for (int64_t i = 0; i < count; ++i) {
      bytes[i] = static_cast<uint8_t>((*random)() >> 24);
    }
  } else if (input.dtype == tensorflow::DT_INT32) {
    for (int64_t i = 0; i < count; ++i) {
      tensor.data<int32_t>()[i] =
          static_cast<int32_t>((*random)() % (kMostInteger + 1));
    }
  } else if (input.dtype == tensorflow::DT_INT64) {
    for (int64_t i = 0; i < count; ++i) {
      tensor.data<int64_t>()[i] = (*random)() % (kMostInteger + 1);
    }
  }
  return tensor;
}

// The same tensors in the graph that was read back, by the file's names.
absl::StatusOr<std::vector<graph::TensorName>> NamesIn(
    const Graph& written, const Graph& original,
    const std::vector<GraphTensor>& tensors) {
  std::vector<graph::TensorName> names;
  for (const GraphTensor& tensor : tensors) {
    OPTFARM_ASSIGN_OR_RETURN(
        const graph::Endpoint found,
        graph::ResolveTensor(written,
                             graph::TensorNameInFile(original, tensor.tensor)));
    names.push_back({written.node(found.node).name(), found.port});
  }
  return names;
}

// As doubles; whole numbers included.
absl::StatusOr<std::vector<double>> Numbers(const Tensor& tensor) {
  if (tensor.dtype() == tensorflow::DT_FLOAT) {
    const auto flat = tensor.flat<float>();
    return std::vector<double>(flat.begin(), flat.end());
  }
  if (tensor.dtype() == tensorflow::DT_DOUBLE) {
    const auto flat = tensor.flat<double>();
    return std::vector<double>(flat.begin(), flat.end());
  }
  if (tensor.dtype() == tensorflow::DT_BOOL) {
    const auto flat = tensor.flat<bool>();
    return std::vector<double>(flat.begin(), flat.end());
  }
  if (runtime::IsHalf(tensor.dtype())) {
    OPTFARM_ASSIGN_OR_RETURN(const Tensor wide, runtime::HalfAsFloat(tensor));
    return Numbers(wide);
  }
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> integers,
                           tensor.AsInt64s());
  return std::vector<double>(integers.begin(), integers.end());
}

// The only input that is no constant; no node where there are more.
graph::Endpoint OnlyInput(const Graph& graph, const graph::Node& node) {
  graph::Endpoint only;
  for (const graph::Endpoint& input : node.inputs()) {
    if (graph::IsConst(graph.node(input.node).op())) continue;
    if (only.node != graph::kNoNode) return {};
    only = input;
  }
  return only;
}

// Between neighbouring values of a tensor that QuantizeLinear or
// DequantizeLinear with one scale makes; 0 for any other.
double StepOf(const Graph& graph, const GraphTensor& tensor) {
  graph::Endpoint at = tensor.tensor;
  while (true) {
    const graph::Node& node = graph.node(at.node);
    const graph::ValueFlow flow = graph::RowOf(node.op()).flow;
    if (flow != graph::ValueFlow::kDataMovement &&
        flow != graph::ValueFlow::kReshaping &&
        flow != graph::ValueFlow::kForwarding) {
      break;
    }
    const graph::Endpoint input = OnlyInput(graph, node);
    if (input.node == graph::kNoNode) return 0;
    at = input;
  }
  const graph::Node& node = graph.node(at.node);
  if (graph::IsQuantizeLinear(node.op())) return 1;
  if (!graph::IsDequantizeLinear(node.op()) || node.inputs().size() < 2) {
    return 0;
  }
  const graph::Node& scale = graph.node(node.inputs()[1].node);
  if (!graph::IsConst(scale.op())) return 0;
  const auto value = graph::GetTensor(scale.def(), "value");
  if (!value.ok()) return 0;
  const auto number = Tensor::FromProto(**value);
  if (!number.ok() || number->num_elements() != 1) return 0;
  const auto numbers = Numbers(*number);
  return numbers.ok() ? numbers->front() : 0;
}

// Whether an output is farther off: by more than one step, and for its size.
bool IsWorse(const ExportDifference& a, const ExportDifference& b) {
  if (a.IsOneStep() != b.IsOneStep()) return b.IsOneStep();
  return a.largest * b.magnitude > b.largest * a.magnitude;
}

// `step`: StepOf the output.
absl::Status Compare(const std::string& name, double step, const Tensor& wanted,
                     const Tensor& got, ExportDifference* difference) {
  if (wanted.dtype() != got.dtype() || !(wanted.shape() == got.shape())) {
    return absl::FailedPreconditionError(absl::StrCat(
        "output '", name, "' is ", graph::DataTypeName(wanted.dtype()),
        wanted.shape().ToString(), " in the graph and ",
        graph::DataTypeName(got.dtype()), got.shape().ToString(),
        " in the written model"));
  }
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<double> a, Numbers(wanted));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<double> b, Numbers(got));
  double largest = 0, magnitude = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) {
      magnitude = std::max(magnitude, std::abs(a[i]));
      continue;
    }
    ++difference->unequal;
    const double apart = std::abs(a[i] - b[i]);
    // Not a number in one of them is as far as it gets.
    largest = std::isnan(apart) ? HUGE_VAL : std::max(largest, apart);
    if (std::isfinite(a[i])) magnitude = std::max(magnitude, std::abs(a[i]));
  }
  difference->elements += static_cast<int64_t>(a.size());
  ExportDifference worst = *difference;
  worst.largest = largest;
  worst.output = name;
  worst.magnitude = magnitude;
  worst.step = step;
  if (difference->output.empty() || difference->largest == 0 ||
      IsWorse(worst, *difference)) {
    *difference = std::move(worst);
  }
  return absl::OkStatus();
}

std::vector<graph::TensorName> OwnNames(
    const Graph& graph, const std::vector<GraphTensor>& tensors) {
  std::vector<graph::TensorName> names;
  for (const GraphTensor& tensor : tensors) {
    names.push_back(
        {graph.node(tensor.tensor.node).name(), tensor.tensor.port});
  }
  return names;
}

// Inputs or outputs without those that are state, and the latter in the order
// of `states`.
struct Parted {
  std::vector<GraphTensor> own, states;
};

Parted PartStates(const Graph& graph, const std::vector<GraphTensor>& tensors,
                  const std::vector<ExposedState>& states,
                  std::string ExposedState::*name) {
  Parted parted;
  parted.states.resize(states.size());
  for (const GraphTensor& tensor : tensors) {
    const std::string& node = graph.node(tensor.tensor.node).name();
    const auto found = std::find_if(
        states.begin(), states.end(),
        [&](const ExposedState& state) { return state.*name == node; });
    if (found == states.end()) {
      parted.own.push_back(tensor);
    } else {
      parted.states[static_cast<size_t>(found - states.begin())] = tensor;
    }
  }
  return parted;
}

std::vector<GraphTensor> Joined(const Parted& parted) {
  std::vector<GraphTensor> all = parted.own;
  all.insert(all.end(), parted.states.begin(), parted.states.end());
  return all;
}

// Runs enough for state to come back from the end of a model to its start.
constexpr int kSteps = 4;

}  // namespace

absl::StatusOr<ExportDifference> CompareExported(
    const Graph& graph, const GraphIo& io, absl::string_view bytes,
    const StatefulModel& stateful) {
  const Parted inputs =
      PartStates(graph, io.inputs, stateful.states, &ExposedState::input);
  const Parted outputs =
      PartStates(graph, io.outputs, stateful.states, &ExposedState::output);
  const Graph& original =
      stateful.original == nullptr ? graph : *stateful.original;
  OPTFARM_ASSIGN_OR_RETURN(
      const std::unique_ptr<runtime::Session> wanted,
      runtime::Session::Create(original, OwnNames(graph, inputs.own),
                               OwnNames(graph, outputs.own)));
  OPTFARM_ASSIGN_OR_RETURN(
      formats::LoadedGraph loaded,
      formats::LoadModelFromMemory(bytes, std::nullopt, "the written model"));
  OPTFARM_ASSIGN_OR_RETURN(Graph written,
                           Graph::FromDef(std::move(loaded.def)));
  // As every command reads it: Transposes would keep layers off integers.
  OPTFARM_RETURN_IF_ERROR(transforms::LayOutModel({}, &written));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<graph::TensorName> feeds,
                           NamesIn(written, graph, Joined(inputs)));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<graph::TensorName> fetches,
                           NamesIn(written, graph, Joined(outputs)));
  OPTFARM_ASSIGN_OR_RETURN(const std::unique_ptr<runtime::Session> got,
                           runtime::Session::Create(written, feeds, fetches));
  std::mt19937 random(20261123);
  std::vector<Tensor> state;
  for (const ExposedState& one : stateful.states) state.push_back(one.initial);
  ExportDifference difference;
  for (int step = 0; step < (state.empty() ? 1 : kSteps); ++step) {
    std::vector<Tensor> fed;
    for (const GraphTensor& input : inputs.own) {
      OPTFARM_ASSIGN_OR_RETURN(fed.emplace_back(), RandomInput(input, &random));
    }
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<Tensor> right, wanted->Run(fed));
    fed.insert(fed.end(), state.begin(), state.end());
    OPTFARM_ASSIGN_OR_RETURN(std::vector<Tensor> answers, got->Run(fed));
    for (size_t i = 0; i < right.size(); ++i) {
      const GraphTensor& output = outputs.own[i];
      OPTFARM_RETURN_IF_ERROR(Compare(output.name, StepOf(graph, output),
                                      right[i], answers[i], &difference));
    }
    state.assign(answers.begin() + static_cast<ptrdiff_t>(right.size()),
                 answers.end());
  }
  return difference;
}

}  // namespace optfarm::exporting
