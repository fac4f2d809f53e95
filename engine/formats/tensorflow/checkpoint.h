// Checkpoints: the values of a graph's variables, by name. Start here; the two
// file formats are behind Open.
//
//   V2  PREFIX.index and PREFIX.data-00000-of-00002, ...: tensor_bundle.h
//   V1  one or several table files: checkpoint_v1.h
//
// Files are not trusted: sizes are checked against the files before memory is
// taken, and every checksum is compared.

#ifndef OPTFARM_ENGINE_FORMATS_TENSORFLOW_CHECKPOINT_H_
#define OPTFARM_ENGINE_FORMATS_TENSORFLOW_CHECKPOINT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/formats/tensorflow/tensor_slice.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/framework/tensor_shape.pb.h"
#include "tensorflow/core/framework/types.pb.h"

namespace optfarm::formats {

// UNITS: bytes. The largest tensor that can be read: a graph cannot hold more.
inline constexpr int64_t kMaxCheckpointTensorBytes = (int64_t{1} << 31) - 1;

// A stored part of a tensor.
struct SavedPiece {
  TensorSlice slice;
  // Where it is: a number with a meaning to the format.
  size_t place = 0;
};

struct SavedTensor {
  std::string name;
  tensorflow::DataType dtype = tensorflow::DT_INVALID;
  std::vector<int64_t> shape;
  // One piece that is the whole tensor, or the parts of a partitioned one.
  std::vector<SavedPiece> pieces;
};

// THREADS: const methods may be called from several threads.
class Checkpoint {
 public:
  // Opens what `path` names: a V2 checkpoint's prefix (or one of its files), a
  // V1 file, the prefix of V1 shards (NAME-00000-of-00002, also written as
  // NAME-?????-of-00002), or several V1 files separated by commas.
  // ERRORS: NotFound saying what was looked for; DataLoss naming the file, what
  // is damaged and where; InvalidArgument for a folder (with the checkpoints in
  // it) or a checkpoint made for a newer reader.
  static absl::StatusOr<std::unique_ptr<Checkpoint>> Open(
      const std::string& path);

  virtual ~Checkpoint() = default;

  // What was opened, for messages.
  const std::string& name() const { return name_; }
  // 1 or 2.
  int version() const { return version_; }
  // Sorted by name.
  const std::vector<SavedTensor>& tensors() const { return tensors_; }
  // nullptr when there is none of that name. OWNERSHIP: the checkpoint's.
  const SavedTensor* Find(absl::string_view tensor) const;

  // The tensor, or a part of it: numbers as tensor_content, little endian,
  // strings as string_val.
  // REQUIRES: the tensor is one of tensors(), the part lies in it.
  // ERRORS: DataLoss for bytes that are missing or do not have their checksum,
  // or pieces that do not make the tensor; Unimplemented for resources and
  // variants; ResourceExhausted beyond kMaxCheckpointTensorBytes.
  absl::StatusOr<tensorflow::TensorProto> Read(const SavedTensor& tensor) const;
  absl::StatusOr<tensorflow::TensorProto> Read(const SavedTensor& tensor,
                                               const TensorSlice& part) const;

 protected:
  // The elements of one piece; only one of the two is used.
  struct Values {
    std::string bytes;
    std::vector<std::string> strings;
  };

  // No tensor can have more than `most_elements`: that many the files hold if
  // each takes as few bytes as it can.
  Checkpoint(std::string name, int version, uint64_t most_elements)
      : name_(std::move(name)),
        version_(version),
        most_elements_(most_elements) {}

  // Sorts and checks: names are unique, pieces do not overlap.
  // ERRORS: DataLoss.
  absl::Status SetTensors(std::vector<SavedTensor> tensors);

 private:
  // ENSURES: as many elements as the piece's slice has.
  virtual absl::StatusOr<Values> ReadPiece(const SavedTensor& tensor,
                                           const SavedPiece& piece) const = 0;

  std::string name_;
  int version_;
  uint64_t most_elements_;
  std::vector<SavedTensor> tensors_;
};

// The shape as a list. ERRORS: InvalidArgument when it is not fully known or
// has 2^63 elements or more.
absl::StatusOr<std::vector<int64_t>> KnownShape(
    const tensorflow::TensorShapeProto& shape);

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_TENSORFLOW_CHECKPOINT_H_
