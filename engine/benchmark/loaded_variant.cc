#include "engine/benchmark/loaded_variant.h"

#include <algorithm>
#include <random>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "engine/formats/graph_file.h"
#include "engine/formats/npy.h"
#include "engine/formats/wav.h"
#include "engine/graph/attr.h"
#include "engine/graph/infer_io.h"
#include "engine/graph/verify.h"

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

absl::StatusOr<Tensor> RandomValue(const graph::GraphTensor& input,
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

absl::StatusOr<Tensor> FileValue(const std::string& path,
                                 const graph::GraphTensor& input) {
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

absl::Status MakeInputs(const graph::GraphIo& io,
                        const BenchmarkRequest& request,
                        LoadedVariant* loaded) {
  std::mt19937_64 random(request.seed);
  std::set<std::string> used;
  std::vector<std::string> made_up;
  std::vector<std::string> files;
  for (const graph::GraphTensor& input : io.inputs) {
    const auto file =
        std::find_if(request.input_files.begin(), request.input_files.end(),
                     [&](const BenchmarkInputFile& f) {
                       return f.input == input.name ||
                              (f.input.empty() && io.inputs.size() == 1);
                     });
    if (file == request.input_files.end()) {
      OPTFARM_ASSIGN_OR_RETURN(loaded->inputs.emplace_back(),
                               RandomValue(input, &random));
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
  if (!made_up.empty()) {
    loaded->inputs_fed =
        absl::StrCat("seeded random values (seed ", request.seed, ")");
  }
  if (!files.empty()) {
    absl::StrAppend(&loaded->inputs_fed, made_up.empty() ? "" : ", ",
                    "values from ", absl::StrJoin(files, ", "));
  }
  return absl::OkStatus();
}

absl::StatusOr<LoadedVariant> Load(const BenchmarkVariant& variant,
                                   const BenchmarkRequest& request,
                                   int threads) {
  LoadedVariant loaded;
  const absl::Time start = absl::Now();
  OPTFARM_ASSIGN_OR_RETURN(tensorflow::GraphDef def,
                           formats::LoadGraphDef(variant.graph_path));
  OPTFARM_ASSIGN_OR_RETURN(const graph::Graph graph,
                           graph::Graph::FromDef(std::move(def)));
  OPTFARM_RETURN_IF_ERROR(graph::Verify(graph));
  graph::IoRequest wanted;
  wanted.outputs = variant.outputs;
  for (const v1::TensorSpec& spec : variant.inputs) {
    OPTFARM_ASSIGN_OR_RETURN(wanted.inputs.emplace_back(), ToRequest(spec));
  }
  OPTFARM_ASSIGN_OR_RETURN(const graph::GraphIo io,
                           graph::InferIo(graph, wanted));
  const auto names = [&graph](absl::Span<const graph::GraphTensor> tensors) {
    std::vector<graph::TensorName> list;
    for (const graph::GraphTensor& t : tensors) {
      list.push_back({graph.node(t.tensor.node).name(), t.tensor.port});
    }
    return list;
  };
  runtime::SessionOptions options;
  options.threads = threads;
  options.print = [](absl::string_view) {};
  OPTFARM_ASSIGN_OR_RETURN(
      loaded.session, runtime::Session::Create(graph, names(io.inputs),
                                               names(io.outputs), options));
  loaded.load_time = absl::Now() - start;
  OPTFARM_RETURN_IF_ERROR(MakeInputs(io, request, &loaded));
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
