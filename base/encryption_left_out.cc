// authenticated_encryption.h in builds without encrypted models
// (OPTFARM_ENCRYPTED_MODELS=OFF), which need no encryption library.

#include <string.h>

#include <algorithm>

#include "base/authenticated_encryption.h"
#include "base/check.h"

namespace optfarm {
namespace {

absl::Status LeftOut() {
  return absl::UnimplementedError(
      "this build cannot read or write encrypted models; build it with "
      "-DOPTFARM_ENCRYPTED_MODELS=ON");
}

}  // namespace

AeadKey::AeadKey(absl::string_view bytes) {
  OPTFARM_CHECK(bytes.size() == kAeadKeyBytes);
  std::copy(bytes.begin(), bytes.end(), bytes_.begin());
}

AeadKey::~AeadKey() { explicit_bzero(bytes_.data(), bytes_.size()); }

absl::StatusOr<std::string> SecretRandomBytes(size_t count) {
  return LeftOut();
}

absl::StatusOr<std::string> AeadEncrypt(const AeadKey& key,
                                        absl::string_view nonce,
                                        absl::string_view associated,
                                        absl::string_view plain) {
  return LeftOut();
}

absl::StatusOr<std::string> AeadDecrypt(const AeadKey& key,
                                        absl::string_view nonce,
                                        absl::string_view associated,
                                        absl::string_view sealed) {
  return LeftOut();
}

}  // namespace optfarm
