// Walks the outermost fields of a serialized protobuf message without parsing
// what is inside: to tell files apart and to say where one is damaged.

#ifndef OPTFARM_ENGINE_FORMATS_FILES_WIRE_READER_H_
#define OPTFARM_ENGINE_FORMATS_FILES_WIRE_READER_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace optfarm::formats {

struct WireField {
  int number = 0;
  // Length-delimited: `bytes` is its content. Else a number.
  bool is_bytes = false;
  absl::string_view bytes;
};

// OWNERSHIP: the bytes belong to the caller and outlive the reader.
class WireReader {
 public:
  explicit WireReader(absl::string_view bytes) : bytes_(bytes) {}

  // The next field; nullopt at the end and at the first malformed field.
  std::optional<WireField> Next();

  // All bytes were read as whole fields.
  bool AtEnd() const { return position_ == bytes_.size() && !malformed_; }
  // The bytes end inside a field whose beginning is well formed.
  bool truncated() const { return truncated_; }
  // UNITS: bytes. Where the next field begins, or the malformed one.
  size_t position() const { return position_; }
  // UNITS: bytes that the truncated field lacks; 0 when not known.
  uint64_t missing_bytes() const { return missing_bytes_; }

 private:
  bool ReadVarint(size_t* at, uint64_t* value);
  std::optional<WireField> Fail(bool truncated, uint64_t missing);

  absl::string_view bytes_;
  size_t position_ = 0;
  bool malformed_ = false;
  bool truncated_ = false;
  uint64_t missing_bytes_ = 0;
};

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_FILES_WIRE_READER_H_
