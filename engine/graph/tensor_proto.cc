// What the many forms of a TensorProto hold, told without decoding it.

#include "engine/graph/tensor_proto.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/partial_shape.h"

namespace optfarm::graph {
namespace {

using tensorflow::DataType;
using tensorflow::TensorProto;

// Number of values in the list that belongs to the type; -1 when the type has
// no list. Complex values take two entries each.
int64_t ListedValues(const TensorProto& tensor) {
  switch (tensor.dtype()) {
    case tensorflow::DT_FLOAT:
      return tensor.float_val_size();
    case tensorflow::DT_DOUBLE:
      return tensor.double_val_size();
    case tensorflow::DT_INT32:
    case tensorflow::DT_INT16:
    case tensorflow::DT_UINT16:
    case tensorflow::DT_INT8:
    case tensorflow::DT_UINT8:
    case tensorflow::DT_QINT8:
    case tensorflow::DT_QUINT8:
    case tensorflow::DT_QINT16:
    case tensorflow::DT_QUINT16:
    case tensorflow::DT_QINT32:
    case tensorflow::DT_INT4:
    case tensorflow::DT_UINT4:
    case tensorflow::DT_INT2:
    case tensorflow::DT_UINT2:
      return tensor.int_val_size();
    case tensorflow::DT_HALF:
    case tensorflow::DT_BFLOAT16:
      return tensor.half_val_size();
    case tensorflow::DT_STRING:
      return tensor.string_val_size();
    case tensorflow::DT_COMPLEX64:
      return tensor.scomplex_val_size() / 2;
    case tensorflow::DT_COMPLEX128:
      return tensor.dcomplex_val_size() / 2;
    case tensorflow::DT_INT64:
      return tensor.int64_val_size();
    case tensorflow::DT_BOOL:
      return tensor.bool_val_size();
    case tensorflow::DT_UINT32:
      return tensor.uint32_val_size();
    case tensorflow::DT_UINT64:
      return tensor.uint64_val_size();
    case tensorflow::DT_RESOURCE:
      return tensor.resource_handle_val_size();
    case tensorflow::DT_VARIANT:
      return tensor.variant_val_size();
    case tensorflow::DT_FLOAT8_E5M2:
    case tensorflow::DT_FLOAT8_E4M3FN:
    case tensorflow::DT_FLOAT8_E4M3FNUZ:
    case tensorflow::DT_FLOAT8_E4M3B11FNUZ:
    case tensorflow::DT_FLOAT8_E5M2FNUZ:
      return static_cast<int64_t>(tensor.float8_val().size());
    default:
      return -1;
  }
}

// What a tensor costs in memory per element, for bounding repeated values.
int64_t MemoryPerElement(DataType dtype) {
  const int64_t bytes = ElementBytes(dtype);
  return bytes > 0 ? bytes : static_cast<int64_t>(sizeof(std::string));
}

template <typename T>
std::vector<int64_t> WidenBytes(const std::string& bytes, int64_t count) {
  std::vector<int64_t> values(count);
  for (int64_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = static_cast<int64_t>(value);
  }
  return values;
}

std::vector<int64_t> ReadContent(const TensorProto& tensor, int64_t count) {
  const std::string& bytes = tensor.tensor_content();
  switch (tensor.dtype()) {
    case tensorflow::DT_INT64:
      return WidenBytes<int64_t>(bytes, count);
    case tensorflow::DT_INT32:
      return WidenBytes<int32_t>(bytes, count);
    case tensorflow::DT_INT16:
      return WidenBytes<int16_t>(bytes, count);
    case tensorflow::DT_UINT16:
      return WidenBytes<uint16_t>(bytes, count);
    case tensorflow::DT_INT8:
      return WidenBytes<int8_t>(bytes, count);
    default:  // uint8 and bool
      return WidenBytes<uint8_t>(bytes, count);
  }
}

int64_t ListedInteger(const TensorProto& tensor, int64_t i) {
  const int index = static_cast<int>(i);
  switch (tensor.dtype()) {
    case tensorflow::DT_INT64:
      return tensor.int64_val(index);
    case tensorflow::DT_BOOL:
      return tensor.bool_val(index);
    default:
      return tensor.int_val(index);
  }
}

}  // namespace

int64_t ElementBytes(DataType dtype) {
  switch (dtype) {
    case tensorflow::DT_BOOL:
    case tensorflow::DT_INT8:
    case tensorflow::DT_UINT8:
    case tensorflow::DT_QINT8:
    case tensorflow::DT_QUINT8:
    case tensorflow::DT_FLOAT8_E5M2:
    case tensorflow::DT_FLOAT8_E4M3FN:
    case tensorflow::DT_FLOAT8_E4M3FNUZ:
    case tensorflow::DT_FLOAT8_E4M3B11FNUZ:
    case tensorflow::DT_FLOAT8_E5M2FNUZ:
      return 1;
    case tensorflow::DT_INT16:
    case tensorflow::DT_UINT16:
    case tensorflow::DT_QINT16:
    case tensorflow::DT_QUINT16:
    case tensorflow::DT_HALF:
    case tensorflow::DT_BFLOAT16:
      return 2;
    case tensorflow::DT_FLOAT:
    case tensorflow::DT_INT32:
    case tensorflow::DT_QINT32:
    case tensorflow::DT_UINT32:
      return 4;
    case tensorflow::DT_DOUBLE:
    case tensorflow::DT_INT64:
    case tensorflow::DT_UINT64:
    case tensorflow::DT_COMPLEX64:
      return 8;
    case tensorflow::DT_COMPLEX128:
      return 16;
    default:
      return 0;
  }
}

absl::StatusOr<int64_t> ElementCount(
    const tensorflow::TensorShapeProto& shape) {
  if (shape.unknown_rank()) {
    return absl::InvalidArgumentError("its shape has no rank");
  }
  if (shape.dim_size() > kMaxRank) {
    return absl::InvalidArgumentError(
        absl::StrCat("its shape has ", shape.dim_size(), " axes"));
  }
  int64_t count = 1;
  for (const auto& dim : shape.dim()) {
    if (dim.size() < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("its shape has the dimension ", dim.size()));
    }
    if (__builtin_mul_overflow(count, dim.size(), &count)) {
      return absl::InvalidArgumentError("its shape has too many elements");
    }
  }
  return count;
}

absl::Status CheckTensorProto(const TensorProto& tensor) {
  const int64_t listed = ListedValues(tensor);
  if (listed < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a tensor cannot have the type ", DataTypeName(tensor.dtype())));
  }
  OPTFARM_ASSIGN_OR_RETURN(const int64_t count,
                           ElementCount(tensor.tensor_shape()));
  int64_t bytes = 0;
  if (__builtin_mul_overflow(count, MemoryPerElement(tensor.dtype()), &bytes)) {
    return absl::InvalidArgumentError("its shape has too many elements");
  }
  if (!tensor.tensor_content().empty()) {
    const int64_t have = static_cast<int64_t>(tensor.tensor_content().size());
    if (ElementBytes(tensor.dtype()) == 0) {
      // Strings and types below a byte have encodings of their own; they are
      // at least not larger than what is there.
      if (count <= have * 8) return absl::OkStatus();
    } else if (have == bytes) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "it declares ", count, " elements of type ",
        DataTypeName(tensor.dtype()), " but has ", have, " bytes of content"));
  }
  if (listed < count && bytes > kMaxRepeatedBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("it declares ", count, " elements of type ",
                     DataTypeName(tensor.dtype()), " but has only ", listed,
                     listed == 1 ? " value" : " values"));
  }
  return absl::OkStatus();
}

std::optional<std::vector<int64_t>> ReadIntegers(const TensorProto& tensor,
                                                 int64_t most) {
  switch (tensor.dtype()) {
    case tensorflow::DT_INT64:
    case tensorflow::DT_INT32:
    case tensorflow::DT_INT16:
    case tensorflow::DT_UINT16:
    case tensorflow::DT_INT8:
    case tensorflow::DT_UINT8:
    case tensorflow::DT_BOOL:
      break;
    default:
      return std::nullopt;
  }
  const absl::StatusOr<int64_t> count = ElementCount(tensor.tensor_shape());
  if (!count.ok() || *count > most || !CheckTensorProto(tensor).ok()) {
    return std::nullopt;
  }
  if (!tensor.tensor_content().empty()) return ReadContent(tensor, *count);
  std::vector<int64_t> values(*count, 0);
  const int64_t listed = ListedValues(tensor);
  for (int64_t i = 0; i < *count && listed > 0; ++i) {
    values[i] = ListedInteger(tensor, std::min(i, listed - 1));
  }
  return values;
}

}  // namespace optfarm::graph
