// Models that only holders of a key can read: a header and sealed chunks.
//
//   header  "OPTFENC1" (the last digit is the version), chunk size (4 bytes,
//           little endian), length of the plain text (8), random prefix of the
//           nonces (8)
//   chunks  AES-256-GCM over chunk-size bytes of the plain text each (the last
//           one has the rest), followed by a tag of 16 bytes
//
// A chunk's nonce is the prefix and its number; the header is authenticated
// with every chunk. So no byte can be changed, no chunk left out, added or
// moved without an error. Decrypting happens in memory, never to a file.

#ifndef OPTFARM_ENGINE_FORMATS_TENSORFLOW_ENCRYPTED_MODEL_H_
#define OPTFARM_ENGINE_FORMATS_TENSORFLOW_ENCRYPTED_MODEL_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/authenticated_encryption.h"
#include "base/shared_bytes.h"

namespace optfarm::formats {

// UNITS: bytes of plain text in a chunk.
inline constexpr uint32_t kEncryptionChunkBytes = 1 << 20;

// Where a program finds the key when nobody names a file: the key itself as 64
// hex digits, or a file that has it.
inline constexpr char kModelKeyVariable[] = "OPTFARM_MODEL_KEY";
inline constexpr char kModelKeyFileVariable[] = "OPTFARM_MODEL_KEY_FILE";

bool IsEncryptedModel(absl::string_view bytes);

// A key from a file of 32 bytes, or of 64 hex digits and white space.
// ERRORS: InvalidArgument without a word of the content; the file's.
absl::StatusOr<AeadKey> ReadModelKey(const std::string& path);
// The key that the environment names; nullopt when it names none.
// ERRORS: InvalidArgument for a malformed key or both variables at once.
absl::StatusOr<std::optional<AeadKey>> ModelKeyFromEnvironment();

// ERRORS: Unavailable without random numbers.
absl::StatusOr<std::string> EncryptModel(
    absl::string_view plain, const AeadKey& key,
    uint32_t chunk_bytes = kEncryptionChunkBytes);

// `name` stands in messages.
// ERRORS: InvalidArgument for bytes that are no encrypted model or of a newer
// version; DataLoss for a wrong key or any change.
absl::StatusOr<std::string> DecryptModel(absl::string_view bytes,
                                         const AeadKey& key,
                                         absl::string_view name);
// The same into memory that is aligned as memory-mapped packages need it, so
// that one is used where it was decrypted.
// ERRORS: the same; ResourceExhausted when there is no memory.
absl::StatusOr<SharedBytes> DecryptModelAligned(absl::string_view bytes,
                                                const AeadKey& key,
                                                absl::string_view name);

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_TENSORFLOW_ENCRYPTED_MODEL_H_
