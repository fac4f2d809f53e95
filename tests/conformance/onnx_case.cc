#include "tests/conformance/onnx_case.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "engine/formats/onnx/reader.h"
#include "engine/formats/onnx/tensors.h"
#include "engine/graph/graph.h"
#include "engine/graph/model_interface.h"
#include "engine/graph/verify.h"
#include "engine/runtime/core/half.h"
#include "engine/runtime/session/session.h"
#include "onnx/onnx.pb.h"

namespace optfarm::testing {
namespace {

using runtime::Tensor;

constexpr char kSuite[] = "/usr/share/libonnx-testdata/data";

// --- Scope -------------------------------------------------------------------

// Operators that need what we leave out, and what that is.
std::string ReasonAgainst(const onnx::NodeProto& node) {
  if (!node.domain().empty() && node.domain() != "ai.onnx") {
    return absl::StrCat("domain ", node.domain());
  }
  const std::string& op = node.op_type();
  if (absl::StartsWith(op, "Sequence") || absl::StrContains(op, "Sequence") ||
      absl::StartsWith(op, "Optional")) {
    return op == "ReverseSequence" ? "" : "sequences and optional values";
  }
  if (absl::StartsWith(op, "Random") || op == "Bernoulli" ||
      op == "Multinomial") {
    return "random numbers";
  }
  if (op == "StringNormalizer" || op == "TfIdfVectorizer") return "texts";
  if (op == "MaxUnpool") return "unpooling";
  if (op == "Dropout" && node.input_size() > 2) return "training";
  for (const onnx::AttributeProto& attr : node.attribute()) {
    if (attr.name() == "training_mode" && attr.i() != 0) return "training";
    if (op == "Cast" && attr.name() == "to") {
      if (attr.i() == onnx::TensorProto::STRING) return "texts";
      if (attr.i() == onnx::TensorProto::BFLOAT16) return "bfloat16";
    }
  }
  return "";
}

std::string ReasonAgainst(const onnx::TypeProto& type) {
  if (!type.has_tensor_type()) return "sequences and optional values";
  const int element = type.tensor_type().elem_type();
  if (element == onnx::TensorProto::STRING) return "texts";
  if (element == onnx::TensorProto::BFLOAT16) return "bfloat16";
  return "";
}

void Collect(const onnx::GraphProto& graph, CaseOutcome* outcome,
             std::string* reason) {
  const auto note = [reason](const std::string& found) {
    if (reason->empty()) *reason = found;
  };
  for (const auto& input : graph.input()) {
    if (input.has_type()) note(ReasonAgainst(input.type()));
  }
  for (const auto& output : graph.output()) {
    if (output.type().value_case() != 0) note(ReasonAgainst(output.type()));
  }
  for (const onnx::NodeProto& node : graph.node()) {
    outcome->operators.insert(node.op_type());
    note(ReasonAgainst(node));
    for (const onnx::AttributeProto& attr : node.attribute()) {
      if (attr.has_g()) Collect(attr.g(), outcome, reason);
    }
  }
}

// --- Tensors -----------------------------------------------------------------

absl::StatusOr<Tensor> ReadTensor(const std::string& path) {
  OPTFARM_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  onnx::TensorProto proto;
  if (!proto.ParseFromString(bytes)) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is no tensor"));
  }
  OPTFARM_ASSIGN_OR_RETURN(const tensorflow::TensorProto tensor,
                           formats::ReadOnnxTensor(proto, ""));
  return Tensor::FromProto(tensor);
}

absl::StatusOr<std::vector<Tensor>> ReadTensors(const std::string& folder,
                                                const std::string& kind) {
  std::vector<Tensor> tensors;
  for (int i = 0;; ++i) {
    const std::string path = absl::StrCat(folder, "/", kind, "_", i, ".pb");
    if (!std::filesystem::exists(path)) return tensors;
    OPTFARM_ASSIGN_OR_RETURN(tensors.emplace_back(), ReadTensor(path));
  }
}

// The suite's rule: equal when they are whole numbers or truths.
template <typename T>
bool IsClose(T value, T wanted) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(wanted)) return std::isnan(value);
    if (std::isinf(wanted)) return value == wanted;
    return std::abs(value - wanted) <= T(1e-7) + T(1e-3) * std::abs(wanted);
  } else {
    return value == wanted;
  }
}

template <typename T>
std::string FirstDifference(const Tensor& value, const Tensor& wanted) {
  for (int64_t i = 0; i < wanted.num_elements(); ++i) {
    const T v = value.data<T>()[i];
    const T w = wanted.data<T>()[i];
    if (!IsClose(v, w)) {
      return absl::StrCat("element ", i, " is ", +v, ", not ", +w);
    }
  }
  return "";
}

std::string Difference(Tensor value, Tensor wanted) {
  if (value.dtype() != wanted.dtype()) {
    return absl::StrCat("is of type ", tensorflow::DataType_Name(value.dtype()),
                        ", not ", tensorflow::DataType_Name(wanted.dtype()));
  }
  if (!(value.shape() == wanted.shape())) {
    return absl::StrCat("has shape ", value.shape().ToString(), ", not ",
                        wanted.shape().ToString());
  }
  if (runtime::IsHalf(value.dtype())) {
    auto wide = runtime::HalfAsFloat(value);
    auto wide_wanted = runtime::HalfAsFloat(wanted);
    if (!wide.ok() || !wide_wanted.ok()) return "cannot be compared";
    value = *wide;
    wanted = *wide_wanted;
  }
  switch (value.dtype()) {
#define OPTFARM_CASE(dtype, type) \
  case tensorflow::dtype:         \
    return FirstDifference<type>(value, wanted)
    OPTFARM_CASE(DT_FLOAT, float);
    OPTFARM_CASE(DT_DOUBLE, double);
    OPTFARM_CASE(DT_INT8, int8_t);
    OPTFARM_CASE(DT_INT16, int16_t);
    OPTFARM_CASE(DT_INT32, int32_t);
    OPTFARM_CASE(DT_INT64, int64_t);
    OPTFARM_CASE(DT_UINT8, uint8_t);
    OPTFARM_CASE(DT_UINT16, uint16_t);
    OPTFARM_CASE(DT_UINT32, uint32_t);
    OPTFARM_CASE(DT_UINT64, uint64_t);
    OPTFARM_CASE(DT_BOOL, bool);
#undef OPTFARM_CASE
    default:
      return "is of a type that the test does not compare";
  }
}

// --- Running -----------------------------------------------------------------

struct LoadedCase {
  graph::Graph graph;
  graph::ModelInterface interface;
};

absl::StatusOr<LoadedCase> Load(const std::string& bytes,
                                const std::string& name) {
  OPTFARM_ASSIGN_OR_RETURN(tensorflow::GraphDef def,
                           formats::ReadOnnx(bytes, name, ""));
  LoadedCase loaded;
  OPTFARM_ASSIGN_OR_RETURN(loaded.graph, graph::Graph::FromDef(std::move(def)));
  OPTFARM_RETURN_IF_ERROR(graph::Verify(loaded.graph));
  loaded.interface = graph::ReadModelInterface(loaded.graph);
  return loaded;
}

// Names of the data set's inputs: those of the graph, which may or may not
// count the ones that are constants.
std::vector<std::string> InputNames(const onnx::GraphProto& graph,
                                    size_t files) {
  std::set<std::string> constants;
  for (const auto& tensor : graph.initializer())
    constants.insert(tensor.name());
  std::vector<std::string> all, free;
  for (const auto& input : graph.input()) {
    all.push_back(input.name());
    if (constants.count(input.name()) == 0) free.push_back(input.name());
  }
  return files == all.size() ? all : free;
}

// What differs; empty when everything agrees.
absl::StatusOr<std::string> RunDataSet(const onnx::ModelProto& model,
                                       const LoadedCase& loaded,
                                       const std::string& folder) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<Tensor> given,
                           ReadTensors(folder, "input"));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<Tensor> wanted,
                           ReadTensors(folder, "output"));
  if (wanted.empty()) {
    return absl::InvalidArgumentError("the case says no outputs");
  }
  const std::vector<std::string> names =
      InputNames(model.graph(), given.size());
  const auto tensor_name = [&](const graph::ModelTensor& tensor) {
    return graph::TensorName{loaded.graph.node(tensor.tensor.node).name(),
                             tensor.tensor.port};
  };
  std::vector<graph::TensorName> feeds, fetches;
  std::vector<Tensor> values;
  for (const graph::ModelTensor& input : loaded.interface.inputs) {
    const auto at = std::find(names.begin(), names.end(), input.name);
    const size_t index = static_cast<size_t>(at - names.begin());
    if (index >= given.size()) continue;
    feeds.push_back(tensor_name(input));
    values.push_back(given[index]);
  }
  for (const graph::ModelTensor& output : loaded.interface.outputs) {
    fetches.push_back(tensor_name(output));
  }
  OPTFARM_ASSIGN_OR_RETURN(
      const auto session,
      runtime::Session::Create(loaded.graph, feeds, fetches));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<Tensor> answers,
                           session->Run(values));
  if (answers.size() < wanted.size()) {
    return absl::StrCat("gives ", answers.size(), " outputs, not ",
                        wanted.size());
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    const std::string difference = Difference(answers[i], wanted[i]);
    if (!difference.empty()) {
      return absl::StrCat("output ", i, " ", difference);
    }
  }
  return std::string();
}

void Note(const absl::Status& status, CaseOutcome* outcome) {
  outcome->result = absl::IsUnimplemented(status) ? CaseResult::kRefused
                                                  : CaseResult::kFailed;
  outcome->reason = std::string(status.message());
}

}  // namespace

std::vector<std::string> OnnxCases() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& group : std::filesystem::directory_iterator(kSuite, error)) {
    if (!group.is_directory()) continue;
    for (const auto& entry :
         std::filesystem::directory_iterator(group.path(), error)) {
      if (!std::filesystem::exists(entry.path() / "model.onnx")) continue;
      names.push_back(absl::StrCat(group.path().filename().string(), "/",
                                   entry.path().filename().string()));
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

CaseOutcome RunOnnxCase(const std::string& name) {
  CaseOutcome outcome;
  const std::string folder = absl::StrCat(kSuite, "/", name);
  const auto bytes = ReadFile(absl::StrCat(folder, "/model.onnx"));
  onnx::ModelProto model;
  if (!bytes.ok() || !model.ParseFromString(*bytes)) {
    outcome.result = CaseResult::kFailed;
    outcome.reason = "the file is no model";
    return outcome;
  }
  for (const auto& import : model.opset_import()) {
    if (import.domain().empty() || import.domain() == "ai.onnx") {
      outcome.opset = static_cast<int>(import.version());
    }
  }
  std::string reason;
  Collect(model.graph(), &outcome, &reason);
  if (!reason.empty()) {
    outcome.result = CaseResult::kOutOfScope;
    outcome.reason = reason;
    return outcome;
  }
  const auto loaded = Load(*bytes, name);
  if (!loaded.ok()) {
    Note(loaded.status(), &outcome);
    return outcome;
  }
  for (int set = 0;; ++set) {
    const std::string data = absl::StrCat(folder, "/test_data_set_", set);
    if (!std::filesystem::exists(data)) return outcome;
    const auto difference = RunDataSet(model, *loaded, data);
    if (!difference.ok()) {
      Note(difference.status(), &outcome);
      return outcome;
    }
    if (!difference->empty()) {
      outcome.result = CaseResult::kWrong;
      outcome.reason = *difference;
      return outcome;
    }
  }
}

}  // namespace optfarm::testing
