#include "engine/formats/samples/idx.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optfarm::formats {
namespace {

constexpr size_t kMagicBytes = 4;

struct ElementType {
  tensorflow::DataType dtype;
  size_t bytes;
};

std::optional<ElementType> TypeOfCode(uint8_t code) {
  switch (code) {
    case 0x08:
      return ElementType{tensorflow::DT_UINT8, 1};
    case 0x09:
      return ElementType{tensorflow::DT_INT8, 1};
    case 0x0B:
      return ElementType{tensorflow::DT_INT16, 2};
    case 0x0C:
      return ElementType{tensorflow::DT_INT32, 4};
    case 0x0D:
      return ElementType{tensorflow::DT_FLOAT, 4};
    case 0x0E:
      return ElementType{tensorflow::DT_DOUBLE, 8};
    default:
      return std::nullopt;
  }
}

struct Header {
  ElementType type;
  std::vector<int64_t> dims;
  // UNITS: bytes.
  size_t begin = 0;
  size_t content = 0;
};

uint32_t BigEndian(absl::string_view bytes) {
  uint32_t value = 0;
  for (const char c : bytes.substr(0, 4)) {
    value = value << 8 | static_cast<uint8_t>(c);
  }
  return value;
}

absl::StatusOr<Header> ParseHeader(absl::string_view bytes) {
  if (bytes.size() < kMagicBytes || bytes[0] != 0 || bytes[1] != 0) {
    return absl::InvalidArgumentError("it does not begin as an IDX file");
  }
  const auto code = static_cast<uint8_t>(bytes[2]);
  const std::optional<ElementType> type = TypeOfCode(code);
  if (!type.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("element type ", code, " is not one of IDX"));
  }
  Header header{*type, {}, 0, type->bytes};
  const size_t rank = static_cast<uint8_t>(bytes[3]);
  header.begin = kMagicBytes + 4 * rank;
  if (rank == 0 || bytes.size() < header.begin) {
    return absl::InvalidArgumentError(
        absl::StrCat("it ends within its ", rank, " dimensions"));
  }
  for (size_t i = 0; i < rank; ++i) {
    header.dims.push_back(BigEndian(bytes.substr(kMagicBytes + 4 * i, 4)));
    if (__builtin_mul_overflow(header.content, header.dims.back(),
                               &header.content)) {
      return absl::InvalidArgumentError("its dimensions are too large");
    }
  }
  if (header.content != bytes.size() - header.begin) {
    return absl::InvalidArgumentError(absl::StrCat(
        "its dimensions ask for ", header.content, " bytes of elements, and ",
        bytes.size() - header.begin, " are there"));
  }
  return header;
}

}  // namespace

bool IsIdx(absl::string_view bytes) {
  return bytes.size() >= kMagicBytes && bytes[0] == 0 && bytes[1] == 0 &&
         TypeOfCode(static_cast<uint8_t>(bytes[2])).has_value() &&
         bytes[3] != 0;
}

absl::StatusOr<tensorflow::TensorProto> ParseIdx(absl::string_view bytes,
                                                 absl::string_view name) {
  const absl::StatusOr<Header> header = ParseHeader(bytes);
  if (!header.ok()) {
    return Annotate(header.status(),
                    absl::StrCat("While reading '", name, "' as IDX"));
  }
  tensorflow::TensorProto proto;
  proto.set_dtype(header->type.dtype);
  for (const int64_t dim : header->dims) {
    proto.mutable_tensor_shape()->add_dim()->set_size(dim);
  }
  std::string content(bytes.substr(header->begin));
  const size_t width = header->type.bytes;
  for (size_t i = 0; width > 1 && i < content.size(); i += width) {
    std::reverse(content.begin() + static_cast<ptrdiff_t>(i),
                 content.begin() + static_cast<ptrdiff_t>(i + width));
  }
  *proto.mutable_tensor_content() = std::move(content);
  return proto;
}

}  // namespace optfarm::formats
