#include "engine/formats/tensorflow/checkpoint.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/tensor_proto.h"

namespace optfarm::formats {
namespace {

using tensorflow::TensorProto;

// Pieces are compared with each other, so there is a limit to their number.
constexpr size_t kMaxPieces = 1 << 12;

bool IsString(const SavedTensor& tensor) {
  return tensor.dtype == tensorflow::DT_STRING;
}

absl::Status CheckPieces(const SavedTensor& tensor) {
  if (tensor.pieces.size() > kMaxPieces) {
    return absl::DataLossError(absl::StrCat("it has ", tensor.pieces.size(),
                                            " parts; at most ", kMaxPieces,
                                            " are taken"));
  }
  int64_t elements = 0;
  for (size_t i = 0; i < tensor.pieces.size(); ++i) {
    const TensorSlice& slice = tensor.pieces[i].slice;
    // No two overlap, so the sum stays within the tensor.
    elements += slice.Volume();
    for (size_t j = 0; j < i; ++j) {
      if (Overlap(slice, tensor.pieces[j].slice)) {
        return absl::DataLossError(
            absl::StrCat("part ", slice.ToString(), " is there twice"));
      }
    }
  }
  const int64_t whole = WholeTensor(tensor.shape).Volume();
  if (elements == whole) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("its parts have ", elements, " of ", whole,
                   " elements; is one of the checkpoint's files missing?"));
}

absl::Status CheckReadable(const SavedTensor& tensor, int64_t elements,
                           uint64_t most_elements) {
  if (static_cast<uint64_t>(elements) > most_elements) {
    return absl::DataLossError(
        absl::StrCat(elements, " elements are more than the files can hold"));
  }
  if (IsString(tensor)) return absl::OkStatus();
  const int64_t size = graph::ElementBytes(tensor.dtype);
  if (size == 0) {
    return absl::UnimplementedError(
        absl::StrCat("values of type ", graph::DataTypeName(tensor.dtype),
                     " cannot be read"));
  }
  if (elements > kMaxCheckpointTensorBytes / size) {
    return absl::ResourceExhaustedError(
        absl::StrCat(elements, " elements of ", size,
                     " bytes are more than a graph can hold"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<int64_t>> KnownShape(
    const tensorflow::TensorShapeProto& shape) {
  OPTFARM_RETURN_IF_ERROR(graph::ElementCount(shape).status());
  std::vector<int64_t> sizes;
  for (const auto& dim : shape.dim()) sizes.push_back(dim.size());
  return sizes;
}

const SavedTensor* Checkpoint::Find(absl::string_view tensor) const {
  const auto it =
      std::lower_bound(tensors_.begin(), tensors_.end(), tensor,
                       [](const SavedTensor& t, absl::string_view name) {
                         return t.name < name;
                       });
  return it != tensors_.end() && it->name == tensor ? &*it : nullptr;
}

absl::Status Checkpoint::SetTensors(std::vector<SavedTensor> tensors) {
  std::sort(tensors.begin(), tensors.end(),
            [](const SavedTensor& a, const SavedTensor& b) {
              return a.name < b.name;
            });
  for (size_t i = 0; i < tensors.size(); ++i) {
    const std::string what =
        absl::StrCat("'", name_, "': tensor '", tensors[i].name, "'");
    if (i > 0 && tensors[i].name == tensors[i - 1].name) {
      return absl::DataLossError(absl::StrCat(what, " is there twice"));
    }
    OPTFARM_RETURN_IF_ERROR(Annotate(CheckPieces(tensors[i]), what));
  }
  tensors_ = std::move(tensors);
  return absl::OkStatus();
}

absl::StatusOr<TensorProto> Checkpoint::Read(const SavedTensor& tensor) const {
  return Read(tensor, WholeTensor(tensor.shape));
}

absl::StatusOr<TensorProto> Checkpoint::Read(const SavedTensor& tensor,
                                             const TensorSlice& part) const {
  const std::string what =
      absl::StrCat("'", name_, "': tensor '", tensor.name, "'");
  const int64_t elements = part.Volume();
  OPTFARM_RETURN_IF_ERROR(
      Annotate(CheckReadable(tensor, elements, most_elements_), what));
  TensorProto proto;
  proto.set_dtype(tensor.dtype);
  for (const int64_t size : part.Shape()) {
    proto.mutable_tensor_shape()->add_dim()->set_size(size);
  }
  proto.mutable_tensor_shape();
  const int64_t width = graph::ElementBytes(tensor.dtype);
  Values all;
  for (const SavedPiece& piece : tensor.pieces) {
    if (!Overlap(piece.slice, part)) continue;
    absl::StatusOr<Values> values = ReadPiece(tensor, piece);
    if (!values.ok()) return Annotate(values.status(), what);
    if (piece.slice == part) {
      all = *std::move(values);
      break;
    }
    // Memory for the whole is taken when the first part has been read.
    all.bytes.resize(IsString(tensor) ? 0 : elements * width);
    all.strings.resize(IsString(tensor) ? elements : 0);
    ForEachSharedRun(
        piece.slice, part, [&](int64_t from, int64_t to, int64_t count) {
          if (IsString(tensor)) {
            std::move(values->strings.begin() + from,
                      values->strings.begin() + from + count,
                      all.strings.begin() + to);
          } else {
            std::memcpy(&all.bytes[to * width], &values->bytes[from * width],
                        count * width);
          }
        });
  }
  *proto.mutable_tensor_content() = std::move(all.bytes);
  for (std::string& text : all.strings) proto.add_string_val(std::move(text));
  return proto;
}

}  // namespace optfarm::formats
