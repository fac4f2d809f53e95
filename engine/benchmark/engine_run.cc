#include "engine/benchmark/engine_run.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "engine/benchmark/answer_difference.h"
#include "engine/graph/attr.h"

namespace optfarm::benchmark {
namespace {

using engine_host::ElementType;
using engine_host::TensorInfo;
using engine_host::TensorValue;
using runtime::Shape;
using runtime::Tensor;

// Bytes of 8-bit quantized numbers are those of plain ones.
ElementType TypeOf(tensorflow::DataType dtype) {
  switch (dtype) {
    case tensorflow::DT_QUINT8:
      return ElementType::kUint8;
    case tensorflow::DT_QINT8:
      return ElementType::kInt8;
    default: {
      const auto type = static_cast<ElementType>(dtype);
      return engine_host::SizeOf(type) > 0 ? type : ElementType::kNone;
    }
  }
}

std::string TypeName(ElementType type) {
  return graph::DataTypeName(static_cast<tensorflow::DataType>(type));
}

// Where each of the engine's tensors is among ours: by name when all are found,
// else by order. Empty when their numbers differ.
std::vector<size_t> Match(const std::vector<TensorInfo>& theirs,
                          const std::vector<std::string>& ours) {
  std::vector<size_t> places(theirs.size());
  if (theirs.size() != ours.size()) return {};
  for (size_t i = 0; i < theirs.size(); ++i) {
    const auto found = std::find(ours.begin(), ours.end(), theirs[i].name);
    places[i] = static_cast<size_t>(found - ours.begin());
  }
  std::vector<size_t> sorted = places;
  std::sort(sorted.begin(), sorted.end());
  std::vector<size_t> all(ours.size());
  std::iota(all.begin(), all.end(), size_t{0});
  return sorted == all ? places : all;
}

absl::Status Misfit(const EngineProcess& engine, absl::string_view what) {
  return absl::FailedPreconditionError(absl::StrCat(engine.name(), ": ", what));
}

absl::Status CountsDiffer(const EngineProcess& engine, absl::string_view what,
                          size_t theirs, size_t ours) {
  return Misfit(engine, absl::StrCat("the file has ", theirs, " ", what,
                                     " where Optfarm's runtime has ", ours));
}

absl::StatusOr<TensorValue> Value(const EngineProcess& engine,
                                  const TensorInfo& info,
                                  const std::string& name,
                                  const Tensor& tensor) {
  const ElementType type = TypeOf(tensor.dtype());
  const absl::Span<const int64_t> dims = tensor.shape().dims();
  bool fits = info.dims.size() == dims.size();
  for (size_t i = 0; fits && i < dims.size(); ++i) {
    fits = info.dims[i] == -1 || info.dims[i] == dims[i] ||
           // TensorFlow Lite has 1 where a size is not fixed.
           info.dims[i] == 1;
  }
  if (type == ElementType::kNone || type != info.type || !fits) {
    return Misfit(
        engine,
        absl::StrCat("input '", name, "' is ", TypeName(info.type), " [",
                     absl::StrJoin(info.dims, ","), "] in the file and ",
                     graph::DataTypeName(tensor.dtype()), " ",
                     tensor.shape().ToString(), " in Optfarm's graph"));
  }
  TensorValue value;
  value.info = {info.name, type, {dims.begin(), dims.end()}};
  value.bytes.assign(static_cast<const char*>(tensor.raw()),
                     static_cast<size_t>(tensor.TotalBytes()));
  return value;
}

absl::StatusOr<Tensor> ToTensor(const TensorValue& value,
                                tensorflow::DataType like) {
  const tensorflow::DataType dtype =
      TypeOf(like) == value.info.type
          ? like
          : static_cast<tensorflow::DataType>(value.info.type);
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(value.info.dims));
  OPTFARM_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Zeros(dtype, shape));
  if (tensor.TotalBytes() != static_cast<int64_t>(value.bytes.size())) {
    return absl::InternalError("its bytes are not those of its shape");
  }
  if (!value.bytes.empty()) {
    std::memcpy(tensor.raw(), value.bytes.data(), value.bytes.size());
  }
  return tensor;
}

}  // namespace

absl::StatusOr<EngineLoad> LoadInEngine(const std::string& model_path,
                                        const ReferenceRun& reference,
                                        int threads, EngineProcess* engine) {
  OPTFARM_ASSIGN_OR_RETURN(engine_host::LoadedModel model,
                           engine->Load(model_path, threads));
  const std::vector<size_t> places = Match(model.inputs, reference.input_names);
  if (places.size() != reference.inputs.size()) {
    return CountsDiffer(*engine, "inputs", model.inputs.size(),
                        reference.inputs.size());
  }
  std::vector<TensorValue> values;
  for (size_t i = 0; i < places.size(); ++i) {
    OPTFARM_ASSIGN_OR_RETURN(
        values.emplace_back(),
        Value(*engine, model.inputs[i], reference.input_names[places[i]],
              reference.inputs[places[i]]));
  }
  OPTFARM_RETURN_IF_ERROR(engine->Feed(values));
  return EngineLoad{std::move(model.version), absl::Microseconds(model.load_us),
                    std::move(model.outputs)};
}

absl::StatusOr<v1::NumericCheck> CompareAnswers(const ReferenceRun& reference,
                                                const EngineLoad& load,
                                                EngineProcess* engine) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<TensorValue> answers,
                           engine->Fetch());
  const std::vector<size_t> places =
      Match(load.outputs, reference.output_names);
  if (places.size() != reference.outputs.size() ||
      answers.size() != places.size()) {
    return CountsDiffer(*engine, "outputs", answers.size(),
                        reference.outputs.size());
  }
  AnswerDifference difference;
  for (size_t i = 0; i < places.size(); ++i) {
    const std::string& name = reference.output_names[places[i]];
    const Tensor& ours = reference.outputs[places[i]];
    absl::StatusOr<Tensor> theirs = ToTensor(answers[i], ours.dtype());
    if (!theirs.ok()) {
      return Misfit(*engine, absl::StrCat("output '", name,
                                          "': ", theirs.status().message()));
    }
    const absl::Status added =
        difference.Add(name, *theirs, ours, "in Optfarm's runtime");
    if (!added.ok()) return Misfit(*engine, added.message());
  }
  v1::NumericCheck check =
      difference.Check(difference.Allowed(reference.is_quantized));
  const std::optional<double> snr = difference.SnrDb();
  check.set_message(absl::StrFormat(
      "On %d outputs %s %s differs from Optfarm's runtime by at most %.3g of "
      "%.3g%s.",
      check.outputs(), engine->name(), load.version, check.max_abs_error(),
      check.max_abs_value(),
      snr.has_value() ? absl::StrFormat(" (SNR %.1f dB)", *snr) : ""));
  return check;
}

}  // namespace optfarm::benchmark
