#include "tests/bench/bench_net.h"

#include <algorithm>
#include <map>
#include <random>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "engine/formats/graph_file.h"
#include "engine/graph/infer_io.h"
#include "engine/graph/partial_shape.h"
#include "engine/transforms/pipeline.h"
#include "engine/transforms/transform_string.h"
#include "tests/bench/full_size_models.h"

namespace optfarm::bench {
namespace {

using runtime::Tensor;

// Numbers between -1 and 1, the same in every run; zeros for other types.
absl::StatusOr<Tensor> MakeFeed(tensorflow::DataType dtype,
                                const graph::PartialShape& dims) {
  std::vector<int64_t> known;
  for (int64_t dim : dims.dims()) known.push_back(dim < 0 ? 1 : dim);
  OPTFARM_ASSIGN_OR_RETURN(const runtime::Shape shape,
                           runtime::Shape::FromDims(known));
  OPTFARM_ASSIGN_OR_RETURN(Tensor feed, Tensor::Zeros(dtype, shape));
  if (dtype == tensorflow::DT_FLOAT) {
    std::mt19937 random(1);
    std::uniform_real_distribution<float> number(-1.0f, 1.0f);
    for (float& value : feed.flat<float>()) value = number(random);
  }
  return feed;
}

// What the command line says of inputs and outputs. `values`: by name, what
// fills an input.
absl::StatusOr<graph::IoRequest> ReadRequest(
    const NetOptions& options, std::map<std::string, float>* values) {
  graph::IoRequest request;
  request.outputs = options.outputs;
  for (const std::string& input : options.inputs) {
    const std::vector<std::string> parts = absl::StrSplit(input, '=');
    if (parts.size() < 2 || parts.size() > 3) {
      return absl::InvalidArgumentError(
          absl::StrCat("--input '", input, "' is not NAME=SHAPE[=VALUE]"));
    }
    OPTFARM_ASSIGN_OR_RETURN(graph::PartialShape shape,
                             graph::PartialShape::Parse(parts[1]));
    request.inputs.push_back({parts[0], {}, std::move(shape)});
    float value = 0;
    if (parts.size() == 3 && absl::SimpleAtof(parts[2], &value)) {
      (*values)[parts[0]] = value;
    }
  }
  return request;
}

void Fill(float value, Tensor* feed) {
  if (feed->dtype() == tensorflow::DT_FLOAT) {
    for (float& element : feed->flat<float>()) element = value;
  } else if (feed->dtype() == tensorflow::DT_INT32) {
    for (int32_t& element : feed->flat<int32_t>()) {
      element = static_cast<int32_t>(value);
    }
  }
}

absl::StatusOr<Net> LoadFile(const std::string& path,
                             const NetOptions& options) {
  OPTFARM_ASSIGN_OR_RETURN(tensorflow::GraphDef def,
                           formats::LoadGraphDef(path));
  OPTFARM_ASSIGN_OR_RETURN(graph::Graph graph,
                           graph::Graph::FromDef(std::move(def)));
  std::map<std::string, float> values;
  OPTFARM_ASSIGN_OR_RETURN(const graph::IoRequest request,
                           ReadRequest(options, &values));
  OPTFARM_ASSIGN_OR_RETURN(const graph::GraphIo io,
                           graph::InferIo(graph, request));
  Net net{std::move(graph), {}, {}, {}};
  for (const graph::GraphTensor& input : io.inputs) {
    OPTFARM_ASSIGN_OR_RETURN(net.inputs.emplace_back(),
                             graph::ParseTensorName(input.name));
    OPTFARM_ASSIGN_OR_RETURN(net.feeds.emplace_back(),
                             MakeFeed(input.dtype, input.shape));
    const auto value = values.find(input.name);
    if (value != values.end()) Fill(value->second, &net.feeds.back());
  }
  for (const graph::GraphTensor& output : io.outputs) {
    OPTFARM_ASSIGN_OR_RETURN(net.outputs.emplace_back(),
                             graph::ParseTensorName(output.name));
  }
  return net;
}

absl::StatusOr<Net> LoadFullSize(const std::string& name) {
  OPTFARM_ASSIGN_OR_RETURN(FullSizeModel model, MakeFullSizeModel(name));
  OPTFARM_ASSIGN_OR_RETURN(graph::Graph graph,
                           graph::Graph::FromDef(std::move(model.graph)));
  Net net{std::move(graph), {}, {}, {}};
  OPTFARM_ASSIGN_OR_RETURN(net.inputs, graph::ParseTensorNames(model.input));
  OPTFARM_ASSIGN_OR_RETURN(net.outputs, graph::ParseTensorNames(model.output));
  OPTFARM_ASSIGN_OR_RETURN(const graph::PartialShape shape,
                           graph::PartialShape::Parse(model.input_shape));
  OPTFARM_ASSIGN_OR_RETURN(net.feeds.emplace_back(),
                           MakeFeed(tensorflow::DT_FLOAT, shape));
  return net;
}

std::string Chain(const std::string& name) {
  const std::string fold =
      "strip_unused_nodes remove_nodes(op=Identity, op=CheckNumerics) "
      "fold_constants(ignore_errors=true) fold_batch_norms "
      "fold_old_batch_norms ";
  if (name == "fp32") return fold;
  if (name == "int8") {
    return absl::StrCat("add_default_attributes ", fold,
                        "quantize_weights quantize_nodes strip_unused_nodes "
                        "sort_by_execution_order");
  }
  return "";
}

}  // namespace

absl::StatusOr<Net> LoadNet(const std::string& name,
                            const NetOptions& options) {
  const std::vector<std::string> full_size = FullSizeModelNames();
  const bool is_file =
      std::find(full_size.begin(), full_size.end(), name) == full_size.end();
  OPTFARM_ASSIGN_OR_RETURN(
      Net net, is_file ? LoadFile(name, options) : LoadFullSize(name));
  OPTFARM_ASSIGN_OR_RETURN(const auto steps,
                           transforms::ParseTransforms(Chain(options.chain)));
  OPTFARM_RETURN_IF_ERROR(
      transforms::RunTransforms(&net.graph, steps, net.inputs, net.outputs)
          .status());
  return net;
}

}  // namespace optfarm::bench
