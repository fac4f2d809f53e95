// Takes numbers off the front of untrusted bytes, never beyond their end.

#ifndef OPTFARM_ENGINE_FORMATS_FILES_BYTE_READER_H_
#define OPTFARM_ENGINE_FORMATS_FILES_BYTE_READER_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace optfarm::formats {

// Each method returns false, and takes nothing, when the bytes do not hold
// what is asked for. OWNERSHIP: the bytes belong to the caller.
class ByteReader {
 public:
  explicit ByteReader(absl::string_view bytes) : bytes_(bytes) {}

  bool TakeByte(uint8_t* value);
  // Little endian.
  bool TakeFixed32(uint32_t* value);
  bool TakeFixed64(uint64_t* value);
  // Seven bits a byte, least significant first, as protobuf has them. A value
  // beyond the type is refused.
  bool TakeVarint32(uint32_t* value);
  bool TakeVarint64(uint64_t* value);
  bool TakeBytes(uint64_t count, absl::string_view* value);

  // What is left.
  absl::string_view rest() const { return bytes_; }
  bool empty() const { return bytes_.empty(); }

 private:
  absl::string_view bytes_;
};

// REQUIRES: 4 or 8 bytes at `bytes`. Little endian.
uint32_t ReadFixed32(const char* bytes);
uint64_t ReadFixed64(const char* bytes);

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_FILES_BYTE_READER_H_
