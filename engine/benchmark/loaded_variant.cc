#include "engine/benchmark/loaded_variant.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "engine/benchmark/answer_difference.h"
#include "engine/formats/samples/npy.h"
#include "engine/formats/samples/wav.h"
#include "engine/formats/tensorflow/loaded_graph.h"
#include "engine/graph/attr.h"
#include "engine/graph/infer_io.h"
#include "engine/graph/model_interface.h"
#include "engine/graph/tensor_name.h"
#include "engine/graph/verify.h"
#include "engine/runtime/core/loaded_model.h"

namespace optfarm::benchmark {
namespace {

using runtime::Shape;
using runtime::Tensor;

// UNITS: elements of one made-up input.
constexpr int64_t kMaxElements = int64_t{1} << 28;

absl::StatusOr<graph::InputRequest> ToRequest(const v1::TensorSpec& spec) {
  graph::InputRequest request;
  request.name = spec.name();
  if (!spec.dtype().empty()) {
    OPTFARM_ASSIGN_OR_RETURN(request.dtype, graph::ParseDataType(spec.dtype()));
  }
  if (spec.shape_known()) {
    tensorflow::TensorShapeProto shape;
    for (const int64_t dim : spec.shape()) {
      shape.add_dim()->set_size(std::max<int64_t>(dim, -1));
    }
    OPTFARM_ASSIGN_OR_RETURN(request.shape,
                             graph::PartialShape::FromProto(shape));
  }
  return request;
}

template <typename T, typename Make>
void Fill(Tensor* tensor, std::mt19937_64* random, Make make) {
  for (T& value : tensor->flat<T>()) {
    value =
        static_cast<T>(make(static_cast<double>((*random)() >> 11) * 0x1p-53));
  }
}

// Whole numbers within [low, high], both included; any numbers within for
// floats.
absl::Status FillRange(const BenchmarkInputRange& range,
                       std::mt19937_64* random, Tensor* tensor) {
  const double width = range.high - range.low;
  const auto real = [&](double u) { return range.low + width * u; };
  const auto whole = [&](double u) {
    return std::min(std::floor(range.low + (width + 1) * u), range.high);
  };
  switch (tensor->dtype()) {
    case tensorflow::DT_FLOAT:
      Fill<float>(tensor, random, real);
      return absl::OkStatus();
    case tensorflow::DT_DOUBLE:
      Fill<double>(tensor, random, real);
      return absl::OkStatus();
    case tensorflow::DT_INT32:
      Fill<int32_t>(tensor, random, whole);
      return absl::OkStatus();
    case tensorflow::DT_INT64:
      Fill<int64_t>(tensor, random, whole);
      return absl::OkStatus();
    case tensorflow::DT_UINT8:
    case tensorflow::DT_QUINT8:
      Fill<uint8_t>(tensor, random, whole);
      return absl::OkStatus();
    default:
      return absl::InvalidArgumentError(absl::StrCat(
          "input '", range.input, "' is of ",
          graph::DataTypeName(tensor->dtype()), ", which has no range"));
  }
}

// `range` may be nullptr: what the dtype usually holds.
absl::StatusOr<Tensor> RandomValue(const graph::GraphTensor& input,
                                   const BenchmarkInputRange* range,
                                   std::mt19937_64* random) {
  std::vector<int64_t> dims;
  int64_t elements = 1;
  for (int i = 0; input.shape.has_rank() && i < input.shape.rank(); ++i) {
    dims.push_back(std::max<int64_t>(input.shape.dim(i), 1));
    if (__builtin_mul_overflow(elements, dims.back(), &elements) ||
        elements > kMaxElements) {
      return absl::InvalidArgumentError(
          absl::StrCat("input '", input.name, "' is too large to make up"));
    }
  }
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
  OPTFARM_ASSIGN_OR_RETURN(Tensor value, Tensor::Zeros(input.dtype, shape));
  if (range != nullptr) {
    OPTFARM_RETURN_IF_ERROR(FillRange(*range, random, &value));
    return value;
  }
  switch (input.dtype) {
    case tensorflow::DT_FLOAT:
      Fill<float>(&value, random, [](double u) { return 2 * u - 1; });
      break;
    case tensorflow::DT_DOUBLE:
      Fill<double>(&value, random, [](double u) { return 2 * u - 1; });
      break;
    case tensorflow::DT_UINT8:
    case tensorflow::DT_QUINT8:
      Fill<uint8_t>(&value, random, [](double u) { return 256 * u; });
      break;
    case tensorflow::DT_STRING:
      // The only strings that models we run take: one second of silence.
      for (std::string& text : value.flat<std::string>()) {
        text = formats::SerializeWav(std::vector<float>(16000), 16000);
      }
      break;
    default:
      // Indices, flags: zero is always allowed.
      break;
  }
  return value;
}

// The elements' bytes as they lie in memory.
absl::StatusOr<Tensor> RawValue(const std::string& path,
                                const graph::GraphTensor& input) {
  OPTFARM_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  std::mt19937_64 unused(1);
  OPTFARM_ASSIGN_OR_RETURN(Tensor value, RandomValue(input, nullptr, &unused));
  if (value.dtype() == tensorflow::DT_STRING) {
    return Tensor::Scalar<std::string>(bytes);
  }
  if (static_cast<int64_t>(bytes.size()) != value.TotalBytes()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", path, "' has ", bytes.size(), " bytes, input '", input.name,
        "' takes ", value.TotalBytes(), " (", value.DebugString(0),
        "); a file that is no .npy holds the elements and nothing else"));
  }
  std::memcpy(value.raw(), bytes.data(), bytes.size());
  return value;
}

absl::StatusOr<Tensor> FileValue(const std::string& path,
                                 const graph::GraphTensor& input) {
  if (!absl::EndsWith(path, ".npy")) return RawValue(path, input);
  OPTFARM_ASSIGN_OR_RETURN(const tensorflow::TensorProto proto,
                           formats::LoadNpy(path));
  absl::StatusOr<Tensor> value = Tensor::FromProto(proto);
  if (value.ok() && input.dtype != tensorflow::DT_INVALID &&
      value->dtype() != input.dtype) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", path, "' holds ", graph::DataTypeName(value->dtype()), ", input '",
        input.name, "' takes ", graph::DataTypeName(input.dtype)));
  }
  return value;
}

template <typename T>
void FillFirst(const std::vector<double>& values, Tensor* tensor) {
  for (size_t i = 0; i < values.size(); ++i) {
    tensor->flat<T>()[i] = static_cast<T>(values[i]);
  }
}

// `values` first, then zeros.
absl::StatusOr<Tensor> GivenValue(const graph::GraphTensor& input,
                                  const std::vector<double>& values) {
  std::mt19937_64 unused(1);
  OPTFARM_ASSIGN_OR_RETURN(Tensor made, RandomValue(input, nullptr, &unused));
  const auto fails = [&input](absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("values for input '", input.name, "': ", why));
  };
  if (static_cast<int64_t>(values.size()) > made.num_elements()) {
    return fails(
        absl::StrCat(values.size(), " values for ", made.shape().ToString()));
  }
  OPTFARM_ASSIGN_OR_RETURN(Tensor tensor,
                           Tensor::Zeros(input.dtype, made.shape()));
  switch (input.dtype) {
    case tensorflow::DT_FLOAT:
      FillFirst<float>(values, &tensor);
      break;
    case tensorflow::DT_DOUBLE:
      FillFirst<double>(values, &tensor);
      break;
    case tensorflow::DT_INT32:
      FillFirst<int32_t>(values, &tensor);
      break;
    case tensorflow::DT_INT64:
      FillFirst<int64_t>(values, &tensor);
      break;
    case tensorflow::DT_UINT8:
    case tensorflow::DT_QUINT8:
      FillFirst<uint8_t>(values, &tensor);
      break;
    case tensorflow::DT_BOOL:
      FillFirst<bool>(values, &tensor);
      break;
    default:
      return fails(absl::StrCat("not possible for type ",
                                graph::DataTypeName(input.dtype)));
  }
  return tensor;
}

// An input by the graph's name and by the model file's.
struct InputNames {
  absl::string_view graph, file;
  bool Have(absl::string_view name) const {
    return name == graph || name == file;
  }
};

// nullptr for an input without a range.
const BenchmarkInputRange* RangeOf(const InputNames& names,
                                   const BenchmarkRequest& request) {
  for (const BenchmarkInputRange& range : request.input_ranges) {
    if (names.Have(range.input)) return &range;
  }
  return nullptr;
}

absl::Status CheckRanges(absl::Span<const InputNames> inputs,
                         const BenchmarkRequest& request) {
  for (const BenchmarkInputRange& range : request.input_ranges) {
    const bool is_there = std::any_of(
        inputs.begin(), inputs.end(),
        [&](const InputNames& names) { return names.Have(range.input); });
    if (!is_there) {
      return absl::InvalidArgumentError(
          absl::StrCat("a range is for input '", range.input,
                       "', which the model does not have"));
    }
    if (!(range.low <= range.high)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the range of input '", range.input, "' goes from ",
                       range.low, " down to ", range.high));
    }
  }
  return absl::OkStatus();
}

// REQUIRES: `loaded` has the inputs' names.
absl::Status MakeInputs(const graph::GraphIo& io,
                        const BenchmarkVariant& variant,
                        const BenchmarkRequest& request,
                        LoadedVariant* loaded) {
  std::vector<InputNames> names;
  for (size_t i = 0; i < io.inputs.size(); ++i) {
    names.push_back({io.inputs[i].name, loaded->input_names[i]});
  }
  OPTFARM_RETURN_IF_ERROR(CheckRanges(names, request));
  std::mt19937_64 random(request.seed);
  std::set<std::string> used;
  std::vector<std::string> made_up;
  std::vector<std::string> files;
  std::vector<std::string> given;
  for (size_t i = 0; i < io.inputs.size(); ++i) {
    const graph::GraphTensor& input = io.inputs[i];
    // The inputs that were asked for come first, in their order.
    if (i < variant.input_values.size() && !variant.input_values[i].empty()) {
      OPTFARM_ASSIGN_OR_RETURN(loaded->inputs.emplace_back(),
                               GivenValue(input, variant.input_values[i]));
      given.push_back(input.name);
      continue;
    }
    const auto file =
        std::find_if(request.input_files.begin(), request.input_files.end(),
                     [&](const BenchmarkInputFile& f) {
                       return names[i].Have(f.input) ||
                              (f.input.empty() && io.inputs.size() == 1);
                     });
    if (file == request.input_files.end()) {
      OPTFARM_ASSIGN_OR_RETURN(
          loaded->inputs.emplace_back(),
          RandomValue(input, RangeOf(names[i], request), &random));
      made_up.push_back(input.name);
      continue;
    }
    used.insert(file->input);
    OPTFARM_ASSIGN_OR_RETURN(loaded->inputs.emplace_back(),
                             FileValue(file->path, input));
    files.push_back(BaseName(file->path));
  }
  for (const BenchmarkInputFile& file : request.input_files) {
    if (used.count(file.input) > 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("'", file.path, "' is for input '", file.input,
                     "', which the model does not have"));
  }
  std::vector<std::string> fed;
  if (!made_up.empty()) {
    fed.push_back(
        absl::StrCat("seeded random values (seed ", request.seed, ")"));
  }
  if (!files.empty()) {
    fed.push_back(absl::StrCat("values from ", absl::StrJoin(files, ", ")));
  }
  if (!given.empty()) fed.push_back("given values and zeros");
  loaded->inputs_fed = absl::StrJoin(fed, ", ");
  return absl::OkStatus();
}

// A fetch that runs a node for what it does.
absl::StatusOr<graph::TensorName> Operation(const std::string& name) {
  absl::StatusOr<graph::TensorName> parsed = graph::ParseTensorName(name);
  if (!parsed.ok()) return parsed.status();
  return graph::TensorName{parsed->node, graph::kControlPort};
}

// Runs the variant's init ops once, one after the other; what they assign
// stays in `resources`.
absl::Status Initialize(
    const std::shared_ptr<const runtime::LoadedModel>& model,
    const BenchmarkVariant& variant, const runtime::SessionOptions& options) {
  for (const std::string& name : variant.init_ops) {
    OPTFARM_ASSIGN_OR_RETURN(const graph::TensorName init, Operation(name));
    absl::Status status;
    const auto session = runtime::Session::Create(model, {}, {init}, options);
    status = session.ok() ? (*session)->Run({}).status() : session.status();
    if (!status.ok()) {
      return Annotate(status, absl::StrCat("init op '", name, "'"));
    }
  }
  return absl::OkStatus();
}

// What others than Optfarm's runtime know the graph by.
void NameTensors(const graph::Graph& graph, const graph::GraphIo& io,
                 LoadedVariant* loaded) {
  for (const graph::GraphTensor& input : io.inputs) {
    loaded->input_names.push_back(graph::TensorNameInFile(graph, input.tensor));
  }
  for (const graph::GraphTensor& output : io.outputs) {
    loaded->output_names.push_back(
        graph::TensorNameInFile(graph, output.tensor));
  }
  loaded->is_quantized = IsQuantized(graph);
}

absl::StatusOr<LoadedVariant> Load(const BenchmarkVariant& variant,
                                   const BenchmarkRequest& request,
                                   int threads) {
  LoadedVariant loaded;
  const absl::Time start = absl::Now();
  OPTFARM_ASSIGN_OR_RETURN(formats::LoadedGraph file,
                           variant.load_graph == nullptr
                               ? formats::LoadGraph(variant.graph_path)
                               : variant.load_graph(variant.graph_path));
  OPTFARM_ASSIGN_OR_RETURN(graph::Graph whole,
                           graph::Graph::FromDef(std::move(file.def)));
  OPTFARM_RETURN_IF_ERROR(graph::Verify(whole));
  graph::IoRequest wanted;
  wanted.outputs = variant.outputs;
  for (const v1::TensorSpec& spec : variant.inputs) {
    OPTFARM_ASSIGN_OR_RETURN(wanted.inputs.emplace_back(), ToRequest(spec));
  }
  OPTFARM_ASSIGN_OR_RETURN(const graph::GraphIo io,
                           graph::InferIo(whole, wanted));
  // As an app does: what is measured takes the memory that it takes there.
  const auto model = runtime::LoadedModel::Create(std::move(whole));
  const graph::Graph& graph = model->graph();
  const auto names = [&graph](absl::Span<const graph::GraphTensor> tensors) {
    std::vector<graph::TensorName> list;
    for (const graph::GraphTensor& t : tensors) {
      list.push_back({graph.node(t.tensor.node).name(), t.tensor.port});
    }
    return list;
  };
  std::vector<graph::TensorName> fetches = names(io.outputs);
  for (const std::string& target : variant.targets) {
    OPTFARM_ASSIGN_OR_RETURN(fetches.emplace_back(), Operation(target));
  }
  NameTensors(graph, io, &loaded);
  runtime::SessionOptions options;
  options.threads = threads;
  if (!request.processors.empty()) {
    loaded.pool = std::make_unique<runtime::ThreadPool>(threads);
    OPTFARM_RETURN_IF_ERROR(loaded.pool->SetAffinity(request.processors));
    options.pool = loaded.pool.get();
  }
  options.print = [](absl::string_view) {};
  options.find_region = formats::RegionsOf(std::move(file.package));
  options.resources = std::make_shared<runtime::ResourceContainer>();
  const absl::Time initialized_from = absl::Now();
  OPTFARM_RETURN_IF_ERROR(Initialize(model, variant, options));
  const absl::Duration initializing = absl::Now() - initialized_from;
  if (request.explain_fusions) options.fused_nodes = &loaded.fused_nodes;
  OPTFARM_ASSIGN_OR_RETURN(
      loaded.session,
      runtime::Session::Create(model, names(io.inputs), fetches, options));
  loaded.load_time = absl::Now() - start - initializing;
  if (request.count_flops) {
    OPTFARM_ASSIGN_OR_RETURN(loaded.flops, CountFlops(graph, io));
  }
  if (request.step_runs > 0) {
    std::vector<runtime::StepWorks::Feed> feeds;
    for (const graph::GraphTensor& input : io.inputs) {
      feeds.emplace_back(names({&input, 1}).front(), input.shape);
    }
    OPTFARM_ASSIGN_OR_RETURN(loaded.step_works,
                             runtime::StepWorks::Create(graph, feeds));
  }
  OPTFARM_RETURN_IF_ERROR(MakeInputs(io, variant, request, &loaded));
  return loaded;
}

}  // namespace

absl::StatusOr<LoadedVariant> LoadVariant(const BenchmarkVariant& variant,
                                          const BenchmarkRequest& request,
                                          int threads) {
  absl::StatusOr<LoadedVariant> loaded = Load(variant, request, threads);
  if (!loaded.ok()) {
    return Annotate(loaded.status(), absl::StrCat("While preparing variant '",
                                                  variant.name, "'"));
  }
  return loaded;
}

}  // namespace optfarm::benchmark
