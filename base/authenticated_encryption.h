// AES-256-GCM: bytes that cannot be read without the key, nor changed without
// being noticed.

#ifndef OPTFARM_BASE_AUTHENTICATED_ENCRYPTION_H_
#define OPTFARM_BASE_AUTHENTICATED_ENCRYPTION_H_

#include <array>
#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optfarm {

// UNITS: bytes.
inline constexpr size_t kAeadKeyBytes = 32;
inline constexpr size_t kAeadNonceBytes = 12;
inline constexpr size_t kAeadTagBytes = 16;

// A secret; wiped from memory when it goes.
class AeadKey {
 public:
  // REQUIRES: kAeadKeyBytes bytes.
  explicit AeadKey(absl::string_view bytes);
  ~AeadKey();
  AeadKey(const AeadKey&) = default;
  AeadKey& operator=(const AeadKey&) = default;

  const unsigned char* data() const { return bytes_.data(); }

 private:
  std::array<unsigned char, kAeadKeyBytes> bytes_;
};

// Bytes from the system's generator for secrets. ERRORS: Unavailable.
absl::StatusOr<std::string> SecretRandomBytes(size_t count);

// The encrypted text followed by its tag. `associated` is not hidden but
// authenticated: decrypting needs the same.
// REQUIRES: kAeadNonceBytes bytes of nonce, never used with this key before.
// ERRORS: Internal when the library fails; ResourceExhausted beyond 2^31 bytes.
absl::StatusOr<std::string> AeadEncrypt(const AeadKey& key,
                                        absl::string_view nonce,
                                        absl::string_view associated,
                                        absl::string_view plain);

// ERRORS: DataLoss when key, nonce, associated bytes or text are not those of
// the encryption; nothing of the text is given out then.
absl::StatusOr<std::string> AeadDecrypt(const AeadKey& key,
                                        absl::string_view nonce,
                                        absl::string_view associated,
                                        absl::string_view sealed);

}  // namespace optfarm

#endif  // OPTFARM_BASE_AUTHENTICATED_ENCRYPTION_H_
