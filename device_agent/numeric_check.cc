#include "device_agent/numeric_check.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "device_agent/benchmark_plan.h"
#include "engine/benchmark/answer_difference.h"
#include "engine/formats/tensorflow/loaded_graph.h"
#include "engine/graph/graph.h"
#include "engine/graph/tensor_name.h"
#include "engine/graph/verify.h"
#include "engine/runtime/core/tensor.h"
#include "engine/runtime/session/session.h"

namespace optfarm::device_agent {
namespace {

using runtime::Tensor;
using NamedTensors =
    google::protobuf::RepeatedPtrField<v1::CheckSample::NamedTensor>;

// UNITS: bytes of a check sample.
constexpr size_t kMaxSampleBytes = size_t{256} << 20;

struct Parsed {
  std::vector<graph::TensorName> names;
  std::vector<Tensor> tensors;
};

absl::StatusOr<Parsed> Parse(const NamedTensors& named) {
  Parsed parsed;
  for (const v1::CheckSample::NamedTensor& entry : named) {
    OPTFARM_ASSIGN_OR_RETURN(parsed.names.emplace_back(),
                             graph::ParseTensorName(entry.name()));
    tensorflow::TensorProto proto;
    if (!proto.ParseFromString(entry.tensor())) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the check sample's tensor '", entry.name(), "' is damaged"));
    }
    OPTFARM_ASSIGN_OR_RETURN(parsed.tensors.emplace_back(),
                             Tensor::FromProto(proto));
  }
  return parsed;
}

}  // namespace

absl::StatusOr<v1::NumericCheck> CheckNumbersOf(
    const std::string& graph_path, const std::string& sample_path) {
  OPTFARM_ASSIGN_OR_RETURN(const std::string bytes,
                           ReadFile(sample_path, kMaxSampleBytes));
  v1::CheckSample sample;
  if (!sample.ParseFromString(bytes)) {
    return absl::InvalidArgumentError("the check sample is damaged");
  }
  OPTFARM_ASSIGN_OR_RETURN(const Parsed inputs, Parse(sample.inputs()));
  OPTFARM_ASSIGN_OR_RETURN(const Parsed expected, Parse(sample.outputs()));
  OPTFARM_ASSIGN_OR_RETURN(formats::LoadedGraph file,
                           formats::LoadGraph(graph_path));
  OPTFARM_ASSIGN_OR_RETURN(const graph::Graph graph,
                           graph::Graph::FromDef(std::move(file.def)));
  OPTFARM_RETURN_IF_ERROR(graph::Verify(graph));
  runtime::SessionOptions options;
  options.print = [](absl::string_view) {};
  options.find_region = formats::RegionsOf(std::move(file.package));
  options.resources = std::make_shared<runtime::ResourceContainer>();
  OPTFARM_ASSIGN_OR_RETURN(
      const auto session,
      runtime::Session::Create(graph, inputs.names, expected.names, options));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs,
                           session->Run(inputs.tensors));
  benchmark::AnswerDifference difference;
  for (size_t i = 0; i < outputs.size(); ++i) {
    OPTFARM_RETURN_IF_ERROR(difference.Add(graph::ToString(expected.names[i]),
                                           outputs[i], expected.tensors[i],
                                           "on the worker"));
  }
  const double allowed = difference.Allowed(benchmark::IsQuantized(graph));
  v1::NumericCheck check = difference.Check(allowed);
  check.set_message(absl::StrFormat(
      "On %d outputs the device differs from the worker by at most %.3g, and "
      "%.3g is what another processor explains.",
      check.outputs(), check.max_abs_error(), allowed));
  return check;
}

absl::StatusOr<std::vector<std::optional<v1::NumericCheck>>> CheckNumbers(
    const v1::LeasedTask& lease, const rpc::TaskFolder& folder) {
  const std::vector<std::string> graphs = GraphPaths(lease, folder);
  const std::vector<std::string> samples = CheckPaths(lease, folder);
  std::vector<std::optional<v1::NumericCheck>> checks;
  for (size_t i = 0; i < graphs.size(); ++i) {
    std::optional<v1::NumericCheck>& check = checks.emplace_back();
    if (samples[i].empty()) continue;
    absl::StatusOr<v1::NumericCheck> made =
        CheckNumbersOf(graphs[i], samples[i]);
    if (!made.ok()) {
      return Annotate(
          made.status(),
          absl::StrCat("While checking the numbers of variant '",
                       lease.benchmark().variants(static_cast<int>(i)).name(),
                       "'"));
    }
    check = *std::move(made);
  }
  return checks;
}

}  // namespace optfarm::device_agent
