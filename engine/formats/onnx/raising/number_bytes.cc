#include "engine/formats/onnx/raising/number_bytes.h"

#include <cstring>

#include "engine/runtime/core/half.h"

namespace optfarm::formats {
namespace {

using tensorflow::DataType;

template <typename T>
std::string BytesOf(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

template <typename T>
std::vector<int64_t> Widened(absl::string_view bytes) {
  std::vector<int64_t> values(bytes.size() / sizeof(T));
  for (size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = static_cast<int64_t>(value);
  }
  return values;
}

}  // namespace

std::string NumberBytes(DataType type, double value) {
  switch (type) {
    case tensorflow::DT_FLOAT:
      return BytesOf(static_cast<float>(value));
    case tensorflow::DT_DOUBLE:
      return BytesOf(value);
    case tensorflow::DT_HALF:
      return BytesOf(runtime::FloatToHalf(static_cast<float>(value)));
    case tensorflow::DT_BFLOAT16:
      return BytesOf(runtime::FloatToBfloat(static_cast<float>(value)));
    case tensorflow::DT_INT8:
    case tensorflow::DT_QINT8:
      return BytesOf(static_cast<int8_t>(value));
    case tensorflow::DT_UINT8:
    case tensorflow::DT_QUINT8:
    case tensorflow::DT_BOOL:
      return BytesOf(static_cast<uint8_t>(value));
    case tensorflow::DT_INT16:
      return BytesOf(static_cast<int16_t>(value));
    case tensorflow::DT_UINT16:
      return BytesOf(static_cast<uint16_t>(value));
    case tensorflow::DT_INT32:
    case tensorflow::DT_QINT32:
      return BytesOf(static_cast<int32_t>(value));
    case tensorflow::DT_UINT32:
      return BytesOf(static_cast<uint32_t>(value));
    case tensorflow::DT_INT64:
      return BytesOf(static_cast<int64_t>(value));
    case tensorflow::DT_UINT64:
      return BytesOf(static_cast<uint64_t>(value));
    default:
      return "";
  }
}

std::string IntegerBytes(DataType type, int64_t value) {
  return type == tensorflow::DT_INT64 ? BytesOf(value)
                                      : BytesOf(static_cast<int32_t>(value));
}

std::optional<std::vector<int64_t>> IntegersFromBytes(DataType type,
                                                      absl::string_view bytes) {
  switch (type) {
    case tensorflow::DT_INT8:
    case tensorflow::DT_QINT8:
      return Widened<int8_t>(bytes);
    case tensorflow::DT_UINT8:
    case tensorflow::DT_QUINT8:
    case tensorflow::DT_BOOL:
      return Widened<uint8_t>(bytes);
    case tensorflow::DT_INT16:
      return Widened<int16_t>(bytes);
    case tensorflow::DT_UINT16:
      return Widened<uint16_t>(bytes);
    case tensorflow::DT_INT32:
    case tensorflow::DT_QINT32:
      return Widened<int32_t>(bytes);
    case tensorflow::DT_UINT32:
      return Widened<uint32_t>(bytes);
    case tensorflow::DT_INT64:
    case tensorflow::DT_UINT64:
      return Widened<int64_t>(bytes);
    default:
      return std::nullopt;
  }
}

}  // namespace optfarm::formats
