#include "engine/formats/tensorflow/tensor_values.h"

#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/tensor_proto.h"

namespace optfarm::formats {
namespace {

using tensorflow::TensorProto;

template <typename To, typename List>
std::string PackedAs(const List& list) {
  std::string bytes(list.size() * sizeof(To), '\0');
  for (int i = 0; i < list.size(); ++i) {
    const To value = static_cast<To>(list.Get(i));
    std::memcpy(&bytes[i * sizeof(To)], &value, sizeof(To));
  }
  return bytes;
}

}  // namespace

std::optional<std::string> ListedBytes(tensorflow::DataType dtype,
                                       const TensorProto& data) {
  switch (dtype) {
    case tensorflow::DT_FLOAT:
      return PackedAs<float>(data.float_val());
    case tensorflow::DT_DOUBLE:
      return PackedAs<double>(data.double_val());
    case tensorflow::DT_INT32:
    case tensorflow::DT_QINT32:
      return PackedAs<int32_t>(data.int_val());
    case tensorflow::DT_INT16:
    case tensorflow::DT_QINT16:
    case tensorflow::DT_UINT16:
    case tensorflow::DT_QUINT16:
      return PackedAs<int16_t>(data.int_val());
    case tensorflow::DT_INT8:
    case tensorflow::DT_QINT8:
    case tensorflow::DT_UINT8:
    case tensorflow::DT_QUINT8:
      return PackedAs<int8_t>(data.int_val());
    case tensorflow::DT_HALF:
    case tensorflow::DT_BFLOAT16:
      return PackedAs<uint16_t>(data.half_val());
    case tensorflow::DT_INT64:
      return PackedAs<int64_t>(data.int64_val());
    case tensorflow::DT_UINT32:
      return PackedAs<uint32_t>(data.uint32_val());
    case tensorflow::DT_UINT64:
      return PackedAs<uint64_t>(data.uint64_val());
    case tensorflow::DT_BOOL:
      return PackedAs<uint8_t>(data.bool_val());
    case tensorflow::DT_COMPLEX64:
      return PackedAs<float>(data.scomplex_val());
    case tensorflow::DT_COMPLEX128:
      return PackedAs<double>(data.dcomplex_val());
    default:
      return std::nullopt;
  }
}

absl::StatusOr<std::string> RawBytes(const TensorProto& tensor) {
  OPTFARM_RETURN_IF_ERROR(graph::CheckTensorProto(tensor));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t elements,
                           graph::ElementCount(tensor.tensor_shape()));
  const int64_t width = graph::ElementBytes(tensor.dtype());
  std::optional<std::string> listed;
  if (width > 0) {
    if (!tensor.tensor_content().empty()) return tensor.tensor_content();
    listed = ListedBytes(tensor.dtype(), tensor);
  }
  if (!listed) {
    return absl::InvalidArgumentError(
        absl::StrCat("elements of type ", graph::DataTypeName(tensor.dtype()),
                     " have no fixed size"));
  }
  const auto size = static_cast<size_t>(elements * width);
  std::string bytes = *std::move(listed);
  if (bytes.size() > size) bytes.resize(size);
  const std::string last = bytes.empty() ? std::string(width, '\0')
                                         : bytes.substr(bytes.size() - width);
  bytes.reserve(size);
  while (bytes.size() < size) bytes += last;
  return bytes;
}

}  // namespace optfarm::formats
