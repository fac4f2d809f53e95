#include "tests/bench/bench_net.h"

#include <algorithm>
#include <map>
#include <random>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "engine/formats/tensorflow/graph_file.h"
#include "engine/graph/infer_io.h"
#include "engine/graph/partial_shape.h"
#include "engine/transforms/machinery/pipeline.h"
#include "engine/transforms/machinery/transform_string.h"
#include "tests/bench/frozen_net.h"
#include "tests/bench/full_size_models.h"

namespace optfarm::bench {
namespace {

using runtime::Tensor;

// Numbers between -1 and 1, the same in every run; zeros for other types.
void FillAtRandom(uint32_t seed, Tensor* feed) {
  if (feed->dtype() != tensorflow::DT_FLOAT) return;
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> number(-1.0f, 1.0f);
  for (float& value : feed->flat<float>()) value = number(random);
}

absl::StatusOr<Tensor> MakeFeed(tensorflow::DataType dtype,
                                const graph::PartialShape& dims) {
  std::vector<int64_t> known;
  for (int64_t dim : dims.dims()) known.push_back(dim < 0 ? 1 : dim);
  OPTFARM_ASSIGN_OR_RETURN(const runtime::Shape shape,
                           runtime::Shape::FromDims(known));
  OPTFARM_ASSIGN_OR_RETURN(Tensor feed, Tensor::Zeros(dtype, shape));
  FillAtRandom(1, &feed);
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
  Net net{std::move(graph), {}, {}, {}, {}};
  for (const graph::GraphTensor& input : io.inputs) {
    OPTFARM_ASSIGN_OR_RETURN(net.inputs.emplace_back(),
                             graph::ParseTensorName(input.name));
    OPTFARM_ASSIGN_OR_RETURN(net.feeds.emplace_back(),
                             MakeFeed(input.dtype, input.shape));
    const auto value = values.find(input.name);
    net.is_given.push_back(value != values.end());
    if (net.is_given.back()) Fill(value->second, &net.feeds.back());
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
  Net net{std::move(graph), {}, {}, {}, {false}};
  OPTFARM_ASSIGN_OR_RETURN(net.inputs, graph::ParseTensorNames(model.input));
  OPTFARM_ASSIGN_OR_RETURN(net.outputs, graph::ParseTensorNames(model.output));
  OPTFARM_ASSIGN_OR_RETURN(const graph::PartialShape shape,
                           graph::PartialShape::Parse(model.input_shape));
  OPTFARM_ASSIGN_OR_RETURN(net.feeds.emplace_back(),
                           MakeFeed(tensorflow::DT_FLOAT, shape));
  return net;
}

// --- Chains ------------------------------------------------------------------

constexpr char kConstants[] =
    "strip_unused_nodes remove_nodes(op=Identity, op=CheckNumerics) "
    "fold_constants(ignore_errors=true) ";
constexpr char kFold[] = "fold_batch_norms fold_old_batch_norms ";
constexpr char kSort[] = "strip_unused_nodes sort_by_execution_order";

// The transforms up to where ranges are frozen.
std::string Chain(const std::string& name) {
  if (name == "fp32") return absl::StrCat(kConstants, kFold);
  if (name == "int8" || name == "int8-frozen") {
    return absl::StrCat("add_default_attributes ", kConstants, kFold,
                        "quantize_weights quantize_nodes ", kSort);
  }
  if (name == "layers" || name == "layers-uint8") {
    return absl::StrCat("add_default_attributes ", kConstants,
                        "fold_scale_and_shift ", kFold,
                        "quantize_layers dequantize_wide ", kSort);
  }
  return "";
}

absl::Status Transform(const std::string& steps, Net* net) {
  OPTFARM_ASSIGN_OR_RETURN(const auto parsed,
                           transforms::ParseTransforms(steps));
  return transforms::RunTransforms(&net->graph, parsed, net->inputs,
                                   net->outputs)
      .status();
}

// With what a few runs on made-up inputs find.
absl::Status Freeze(Net* net) {
  std::vector<std::vector<Tensor>> samples = {net->feeds};
  for (uint32_t seed = 2; seed <= 4; ++seed) {
    std::vector<Tensor>& sample = samples.emplace_back();
    for (size_t i = 0; i < net->feeds.size(); ++i) {
      const Tensor& feed = net->feeds[i];
      if (net->is_given[i]) {
        sample.push_back(feed);
        continue;
      }
      OPTFARM_ASSIGN_OR_RETURN(sample.emplace_back(),
                               Tensor::Zeros(feed.dtype(), feed.shape()));
      FillAtRandom(seed, &sample.back());
    }
  }
  return FreezeOn(samples, net->inputs, &net->graph);
}

absl::Status ApplyChain(const std::string& chain, Net* net) {
  OPTFARM_RETURN_IF_ERROR(Transform(Chain(chain), net));
  const bool has_layers = chain == "layers" || chain == "layers-uint8";
  if (!has_layers && chain != "int8-frozen") return absl::OkStatus();
  OPTFARM_RETURN_IF_ERROR(Freeze(net));
  if (has_layers) {
    OPTFARM_RETURN_IF_ERROR(
        Transform(absl::StrCat("fuse_requantization ", kSort), net));
  }
  if (chain != "layers-uint8") return absl::OkStatus();
  OPTFARM_RETURN_IF_ERROR(UseUnsignedWeights(&net->graph));
  return Transform(kSort, net);
}

}  // namespace

std::vector<std::string> ChainNames() {
  return {"fp32", "int8", "int8-frozen", "layers", "layers-uint8", "none"};
}

absl::StatusOr<Net> LoadNet(const std::string& name,
                            const NetOptions& options) {
  const std::vector<std::string> full_size = FullSizeModelNames();
  const bool is_file =
      std::find(full_size.begin(), full_size.end(), name) == full_size.end();
  OPTFARM_ASSIGN_OR_RETURN(
      Net net, is_file ? LoadFile(name, options) : LoadFullSize(name));
  OPTFARM_RETURN_IF_ERROR(ApplyChain(options.chain, &net));
  return net;
}

absl::StatusOr<std::unique_ptr<runtime::Session>> MakeSession(
    const Net& net, runtime::ThreadPool* pool, bool fast_kernels) {
  runtime::SessionOptions options;
  options.pool = pool;
  options.fast_kernels = fast_kernels;
  return runtime::Session::Create(net.graph, net.inputs, net.outputs, options);
}

}  // namespace optfarm::bench
