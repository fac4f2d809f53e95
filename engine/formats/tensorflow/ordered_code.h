// Ordered code, the encoding of checkpoint keys: comparing two encodings byte
// by byte gives the order of what they encode. Only canonical encodings are
// read.

#ifndef OPTFARM_ENGINE_FORMATS_TENSORFLOW_ORDERED_CODE_H_
#define OPTFARM_ENGINE_FORMATS_TENSORFLOW_ORDERED_CODE_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace optfarm::formats {

// A length byte, then that many bytes, most significant first.
void AppendOrderedUint(uint64_t value, std::string* out);
// Bytes 00 and FF are escaped; 00 01 ends the text.
void AppendOrderedString(absl::string_view text, std::string* out);
// Between 1 and 10 bytes; the header bits tell how many.
void AppendOrderedInt(int64_t value, std::string* out);

// Take one value off the front. False, and the bytes unchanged, when they do
// not begin with one.
bool TakeOrderedUint(absl::string_view* bytes, uint64_t* value);
bool TakeOrderedString(absl::string_view* bytes, std::string* text);
bool TakeOrderedInt(absl::string_view* bytes, int64_t* value);

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_TENSORFLOW_ORDERED_CODE_H_
