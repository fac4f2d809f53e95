// A TensorFlow Lite file whose structure can be trusted: everything that refers
// to something else refers to something that is there. The reader opens a file
// here and then looks at operators without checking indices again.
//
// Classes of the format itself (Model, Tensor, ...) are generated from
// schema.fbs; headers of this room only name them.

#ifndef OPTFARM_ENGINE_FORMATS_TFLITE_MODEL_FILE_H_
#define OPTFARM_ENGINE_FORMATS_TFLITE_MODEL_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optfarm::tflite {

struct Model;
struct Operator;
struct SubGraph;
struct Tensor;
enum class BuiltinOperator : int32_t;

// A file names its operators once, in a table.
struct OperatorKind {
  BuiltinOperator code{};
  // "CONV_2D", or the name of a custom operator; for a code that we do not
  // know, its number.
  std::string name;
  int version = 1;
  bool is_custom = false;
};

// THREADS: const methods may run concurrently.
class ModelFile {
 public:
  // Verifies the file. `name` stands in messages. OWNERSHIP: `bytes` must
  // outlive the file.
  // ERRORS: InvalidArgument saying what is damaged, in which subgraph and
  // tensor; Unimplemented for another version of the schema and for data in
  // files beside the model.
  static absl::StatusOr<std::unique_ptr<ModelFile>> Open(
      absl::string_view bytes, absl::string_view name);
  ModelFile(const ModelFile&) = delete;
  ModelFile& operator=(const ModelFile&) = delete;

  // Those of the file, what stands behind the model included.
  absl::string_view bytes() const { return bytes_; }
  const Model& model() const { return *model_; }
  // REQUIRES: an index below the number of subgraphs.
  const SubGraph& subgraph(int index) const { return *subgraphs_[index]; }
  int subgraph_count() const { return static_cast<int>(subgraphs_.size()); }
  const OperatorKind& KindOf(const Operator& op) const;
  // The bytes that a tensor's buffer holds, empty for none.
  absl::string_view DataOf(const Tensor& tensor) const;
  // The bytes of a buffer. REQUIRES: an index that the file uses.
  absl::string_view Buffer(uint32_t index) const { return buffers_[index]; }

 private:
  ModelFile() = default;
  absl::Status FindModel(absl::string_view bytes);
  absl::Status CheckBuffers();
  absl::Status CheckOperatorCodes();
  absl::Status CheckSubgraph(int index) const;
  absl::Status CheckOperators(const SubGraph& subgraph) const;
  absl::Status CheckMetadata() const;

  // Used where the caller's bytes are not aligned.
  std::vector<uint64_t> aligned_;
  absl::string_view bytes_;
  const Model* model_ = nullptr;
  std::vector<const SubGraph*> subgraphs_;
  std::vector<absl::string_view> buffers_;
  std::vector<OperatorKind> kinds_;
};

// How many tensors a subgraph has. They are numbered from 0.
int TensorCount(const SubGraph& subgraph);
// "tensor 12 'conv1/weights'".
std::string Describe(const SubGraph& subgraph, int tensor);

}  // namespace optfarm::tflite

#endif  // OPTFARM_ENGINE_FORMATS_TFLITE_MODEL_FILE_H_
