// ONNX models written down as text, and their answers.

#ifndef OPTFARM_TESTS_ENGINE_FORMATS_ONNX_ONNX_MODEL_H_
#define OPTFARM_TESTS_ENGINE_FORMATS_ONNX_ONNX_MODEL_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "engine/formats/models/load_model.h"
#include "engine/graph/graph.h"
#include "engine/graph/infer_io.h"
#include "engine/graph/verify.h"
#include "engine/runtime/session/session.h"
#include "google/protobuf/text_format.h"
#include "onnx/onnx.pb.h"

namespace optfarm::formats {

// The bytes of a model with this graph, written for this opset.
inline std::string OnnxBytes(const std::string& graph, int opset = 17,
                             const std::string& more = "") {
  onnx::ModelProto model;
  const bool fits = google::protobuf::TextFormat::ParseFromString(
      absl::StrCat("ir_version: 8 opset_import { version: ", opset, " } ", more,
                   " graph { ", graph, " }"),
      &model);
  return fits ? model.SerializeAsString() : "";
}

// "name: 'x' type {...}" of a float tensor; -1 is a size that is not known.
inline std::string FloatValue(const std::string& name,
                              const std::vector<int64_t>& dims) {
  std::string shape;
  for (const int64_t dim : dims) {
    absl::StrAppend(&shape,
                    dim < 0 ? "dim { dim_param: 'n' } "
                            : absl::StrCat("dim { dim_value: ", dim, " } "));
  }
  return absl::StrCat("name: '", name,
                      "' type { tensor_type { elem_type: 1 shape { ", shape,
                      "} } }");
}

inline absl::StatusOr<graph::Graph> ReadOnnxGraph(
    const std::string& bytes, const std::string& folder = "") {
  auto file = LoadModelFromMemory(bytes, std::nullopt, "the model", folder);
  if (!file.ok()) return file.status();
  auto graph = graph::Graph::FromDef(std::move(file->def));
  if (!graph.ok()) return graph.status();
  const absl::Status status = graph::Verify(*graph);
  if (!status.ok()) return status;
  return graph;
}

// The declared outputs for the declared inputs, in the file's order.
inline absl::StatusOr<std::vector<runtime::Tensor>> Answers(
    const std::string& bytes, const std::vector<runtime::Tensor>& inputs,
    const std::string& folder = "") {
  auto graph = ReadOnnxGraph(bytes, folder);
  if (!graph.ok()) return graph.status();
  const auto io = graph::InferIo(*graph);
  if (!io.ok()) return io.status();
  const auto names = [&](const std::vector<graph::GraphTensor>& tensors) {
    std::vector<graph::TensorName> list;
    for (const graph::GraphTensor& tensor : tensors) {
      list.push_back(
          {graph->node(tensor.tensor.node).name(), tensor.tensor.port});
    }
    return list;
  };
  auto session =
      runtime::Session::Create(*graph, names(io->inputs), names(io->outputs));
  if (!session.ok()) return session.status();
  return (*session)->Run(inputs);
}

}  // namespace optfarm::formats

#endif  // OPTFARM_TESTS_ENGINE_FORMATS_ONNX_ONNX_MODEL_H_
