#include "rpc/message_bounds.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/message.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optfarm::rpc {
namespace {

using ::google::protobuf::Descriptor;
using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::MessageFactory;
using ::google::protobuf::internal::WireFormatLite;
using CodedInput = ::google::protobuf::io::CodedInputStream;

constexpr int kMaxDepth = 100;
// UNITS: bytes. What the allocator adds to each object, and a pointer to it.
constexpr size_t kObject = 24;
// An unknown field keeps its number, its kind and its value, in a vector that
// doubles.
constexpr size_t kUnknown = 32;

size_t SizeOf(const Descriptor& type) {
  const auto* prototype =
      MessageFactory::generated_factory()->GetPrototype(&type);
  return prototype == nullptr ? 256 : prototype->SpaceUsedLong();
}

// UNITS: bytes in memory for each byte on the wire, at most.
size_t Expansion(const FieldDescriptor& field) {
  switch (field.type()) {
    case FieldDescriptor::TYPE_BOOL:
    case FieldDescriptor::TYPE_FIXED32:
    case FieldDescriptor::TYPE_FIXED64:
    case FieldDescriptor::TYPE_SFIXED32:
    case FieldDescriptor::TYPE_SFIXED64:
    case FieldDescriptor::TYPE_FLOAT:
    case FieldDescriptor::TYPE_DOUBLE:
      return 1;
    case FieldDescriptor::TYPE_INT64:
    case FieldDescriptor::TYPE_UINT64:
    case FieldDescriptor::TYPE_SINT64:
      return 8;
    default:
      return 4;
  }
}

class Walk {
 public:
  Walk(absl::string_view wire, const MessageBounds& bounds)
      : input_(reinterpret_cast<const uint8_t*>(wire.data()),
               static_cast<int>(wire.size())),
        bounds_(bounds) {}

  // Reads to the end of the bytes or of the innermost limit.
  absl::Status Message(const Descriptor& type, int depth) {
    if (depth > kMaxDepth) return Malformed();
    OPTFARM_RETURN_IF_ERROR(Add(SizeOf(type) + kObject));
    while (const uint32_t tag = input_.ReadTag()) {
      const int number = WireFormatLite::GetTagFieldNumber(tag);
      OPTFARM_RETURN_IF_ERROR(Field(type.FindFieldByNumber(number),
                                    WireFormatLite::GetTagWireType(tag),
                                    depth));
    }
    if (!input_.ConsumedEntireMessage()) return Malformed();
    return absl::OkStatus();
  }

  size_t bytes() const { return bytes_; }

 private:
  absl::Status Field(const FieldDescriptor* field, int wire_type, int depth) {
    uint64_t ignored64 = 0;
    uint32_t ignored32 = 0;
    const size_t scalar = field == nullptr       ? kUnknown
                          : field->is_repeated() ? sizeof(uint64_t)
                                                 : 0;
    switch (wire_type) {
      case WireFormatLite::WIRETYPE_VARINT:
        return input_.ReadVarint64(&ignored64) ? Add(scalar) : Malformed();
      case WireFormatLite::WIRETYPE_FIXED64:
        return input_.ReadLittleEndian64(&ignored64) ? Add(scalar)
                                                     : Malformed();
      case WireFormatLite::WIRETYPE_FIXED32:
        return input_.ReadLittleEndian32(&ignored32) ? Add(scalar)
                                                     : Malformed();
      case WireFormatLite::WIRETYPE_LENGTH_DELIMITED:
        return Delimited(field, depth);
      default:
        // Groups: none of our contracts has any.
        return Malformed();
    }
  }

  absl::Status Delimited(const FieldDescriptor* field, int depth) {
    uint32_t size = 0;
    if (!input_.ReadVarint32(&size) ||
        size > static_cast<uint32_t>(std::numeric_limits<int>::max())) {
      return Malformed();
    }
    if (field != nullptr && field->message_type() != nullptr) {
      const auto limit = input_.PushLimit(static_cast<int>(size));
      // A limit beyond the one around it is cut off silently.
      if (input_.BytesUntilLimit() != static_cast<int>(size)) {
        return Malformed();
      }
      OPTFARM_RETURN_IF_ERROR(Message(*field->message_type(), depth + 1));
      input_.PopLimit(limit);
      return absl::OkStatus();
    }
    if (!input_.Skip(static_cast<int>(size))) return Malformed();
    if (field == nullptr) return Add(kUnknown + kObject + size);
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      return Add(sizeof(std::string) + kObject + size);
    }
    return Add(size * Expansion(*field));
  }

  absl::Status Add(size_t bytes) {
    bytes_ += bytes;
    if (bytes_ <= bounds_.max_parsed_bytes) return absl::OkStatus();
    return absl::ResourceExhaustedError(
        absl::StrCat("it would take more than ", bounds_.max_parsed_bytes,
                     " bytes of memory; send fewer things at once"));
  }

  static absl::Status Malformed() {
    return absl::InvalidArgumentError("its bytes are malformed");
  }

  CodedInput input_;
  const MessageBounds& bounds_;
  size_t bytes_ = 0;
};

}  // namespace

absl::StatusOr<size_t> ParsedBytes(const Descriptor& type,
                                   absl::string_view wire,
                                   const MessageBounds& bounds) {
  const std::string name(type.name());
  if (wire.size() > bounds.max_bytes ||
      wire.size() > static_cast<size_t>(std::numeric_limits<int>::max())) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the ", name, " has ", wire.size(), " bytes, and at most ",
        bounds.max_bytes, " are taken; send fewer things at once"));
  }
  Walk walk(wire, bounds);
  OPTFARM_RETURN_IF_ERROR(
      Annotate(walk.Message(type, 0), absl::StrCat("reading the ", name)));
  return walk.bytes();
}

}  // namespace optfarm::rpc
