// What all graphs of one ONNX model share while it is read: versions,
// functions, and the reasons for which it is refused, which are collected so
// that all of them are said at once.

#ifndef OPTFARM_ENGINE_FORMATS_ONNX_MODEL_CONTEXT_H_
#define OPTFARM_ENGINE_FORMATS_ONNX_MODEL_CONTEXT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "onnx/onnx.pb.h"
#include "tensorflow/core/framework/function.pb.h"

namespace optfarm::formats {

// Versions that we read.
inline constexpr int kNewestOnnxIr = 13;
inline constexpr int kNewestOnnxOpset = 26;

// "" for ONNX's own domain, however it is spelled.
std::string OnnxDomain(absl::string_view domain);

// Versions by domain.
using OnnxOpsets = std::map<std::string, int, std::less<>>;
// ERRORS: InvalidArgument for a version that is none; Unimplemented for one of
// ONNX's own domain that is too new.
absl::Status ReadOpsets(
    const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports,
    OnnxOpsets* opsets);

class OnnxModelContext {
 public:
  // OWNERSHIP: `model` outlives the context. Empty folder: no external data.
  OnnxModelContext(const onnx::ModelProto& model, std::string folder);

  const std::string& external_data_folder() const { return folder_; }
  const OnnxOpsets& opsets() const { return opsets_; }
  OnnxOpsets* mutable_opsets() { return &opsets_; }
  // nullptr when the model has no such function.
  const onnx::FunctionProto* FindFunction(const onnx::NodeProto& node) const;

  // Functions of the graph, made of subgraphs.
  tensorflow::FunctionDefLibrary* mutable_library() { return &library_; }
  std::string NewFunctionName(absl::string_view prefix);

  // Counts a node that is lowered; false when there were too many, because
  // functions that call functions grow fast.
  bool CountNode();

  // What the file's constants may still take together where they take more
  // than they have in the file: sparse ones, and those of functions that are
  // called again. UNITS: bytes.
  int64_t constant_bytes_left() const { return constant_bytes_left_; }
  // ERRORS: ResourceExhausted.
  absl::Status TakeConstantBytes(int64_t bytes);

  // --- Reasons ---------------------------------------------------------------

  void AddReason(const absl::Status& reason);
  void AddUnknownOperator(const std::string& domain, const std::string& op,
                          int opset);
  bool has_reasons() const { return !unknown_.empty() || !reasons_.empty(); }
  // All of them, one to a line. REQUIRES: has_reasons().
  absl::Status Refusal(absl::string_view name) const;

 private:
  const std::string folder_;
  OnnxOpsets opsets_;
  std::map<std::string, const onnx::FunctionProto*> functions_;
  tensorflow::FunctionDefLibrary library_;
  int64_t nodes_ = 0;
  int64_t constant_bytes_left_;
  // "com.microsoft.Foo" and how many nodes have it.
  std::map<std::string, int> unknown_;
  std::vector<std::string> reasons_;
  bool is_invalid_ = false;
};

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_ONNX_MODEL_CONTEXT_H_
