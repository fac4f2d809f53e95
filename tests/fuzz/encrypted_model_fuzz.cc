// Encrypted models: no bytes but those that were made with the key decrypt, and
// what is encrypted decrypts to itself in chunks of any size.

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "base/check.h"
#include "engine/formats/tensorflow/encrypted_model.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace formats = optfarm::formats;
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const optfarm::AeadKey key(std::string(optfarm::kAeadKeyBytes, 'k'));
  (void)formats::DecryptModel(bytes, key, "fuzz");
  if (size == 0) return 0;
  const auto sealed = formats::EncryptModel(bytes.substr(1), key, data[0] + 1);
  OPTFARM_CHECK(sealed.ok());
  const auto plain = formats::DecryptModel(*sealed, key, "fuzz");
  OPTFARM_CHECK(plain.ok() && *plain == bytes.substr(1));
  return 0;
}
