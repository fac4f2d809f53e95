#include "base/authenticated_encryption.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <algorithm>
#include <memory>

#include "base/check.h"

namespace optfarm {
namespace {

using Context = std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)>;

// The library counts in int.
constexpr size_t kMostBytes = size_t{1} << 30;

const unsigned char* Bytes(absl::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

unsigned char* Bytes(std::string* text) {
  return reinterpret_cast<unsigned char*>(text->data());
}

absl::Status LibraryFailed() {
  return absl::InternalError("the encryption library failed");
}

absl::Status TooLarge() {
  return absl::ResourceExhaustedError(
      "more than 2^30 bytes cannot be encrypted as one piece");
}

// A context that has key, nonce and associated bytes.
Context Start(const AeadKey& key, absl::string_view nonce,
              absl::string_view associated, int encrypt) {
  OPTFARM_CHECK(nonce.size() == kAeadNonceBytes);
  Context context(EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
  int length = 0;
  // Twelve bytes of nonce are what the cipher takes by default.
  if (context == nullptr ||
      EVP_CipherInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, key.data(),
                        Bytes(nonce), encrypt) != 1 ||
      EVP_CipherUpdate(context.get(), nullptr, &length, Bytes(associated),
                       static_cast<int>(associated.size())) != 1) {
    return Context(nullptr, EVP_CIPHER_CTX_free);
  }
  return context;
}

}  // namespace

AeadKey::AeadKey(absl::string_view bytes) {
  OPTFARM_CHECK(bytes.size() == kAeadKeyBytes);
  std::copy(bytes.begin(), bytes.end(), bytes_.begin());
}

AeadKey::~AeadKey() { OPENSSL_cleanse(bytes_.data(), bytes_.size()); }

absl::StatusOr<std::string> SecretRandomBytes(size_t count) {
  std::string bytes(count, '\0');
  if (RAND_bytes(Bytes(&bytes), static_cast<int>(count)) != 1) {
    return absl::UnavailableError("the system gives no random bytes");
  }
  return bytes;
}

absl::StatusOr<std::string> AeadEncrypt(const AeadKey& key,
                                        absl::string_view nonce,
                                        absl::string_view associated,
                                        absl::string_view plain) {
  if (plain.size() > kMostBytes || associated.size() > kMostBytes) {
    return TooLarge();
  }
  const Context context = Start(key, nonce, associated, 1);
  std::string sealed(plain.size() + kAeadTagBytes, '\0');
  int length = 0, rest = 0;
  if (context == nullptr ||
      EVP_CipherUpdate(context.get(), Bytes(&sealed), &length, Bytes(plain),
                       static_cast<int>(plain.size())) != 1 ||
      EVP_CipherFinal_ex(context.get(), Bytes(&sealed) + length, &rest) != 1 ||
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_GET_TAG, kAeadTagBytes,
                          Bytes(&sealed) + plain.size()) != 1) {
    return LibraryFailed();
  }
  return sealed;
}

absl::StatusOr<std::string> AeadDecrypt(const AeadKey& key,
                                        absl::string_view nonce,
                                        absl::string_view associated,
                                        absl::string_view sealed) {
  if (sealed.size() < kAeadTagBytes) {
    return absl::DataLossError("the encrypted text is cut off");
  }
  if (sealed.size() > kMostBytes + kAeadTagBytes ||
      associated.size() > kMostBytes) {
    return TooLarge();
  }
  const absl::string_view text =
      sealed.substr(0, sealed.size() - kAeadTagBytes);
  std::string tag(sealed.substr(text.size()));
  const Context context = Start(key, nonce, associated, 0);
  std::string plain(text.size(), '\0');
  int length = 0, rest = 0;
  if (context == nullptr ||
      EVP_CipherUpdate(context.get(), Bytes(&plain), &length, Bytes(text),
                       static_cast<int>(text.size())) != 1 ||
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_SET_TAG, kAeadTagBytes,
                          Bytes(&tag)) != 1) {
    return LibraryFailed();
  }
  if (EVP_CipherFinal_ex(context.get(), Bytes(&plain) + length, &rest) != 1) {
    OPENSSL_cleanse(plain.data(), plain.size());
    return absl::DataLossError(
        "it does not decrypt: the key is another one, or the file is damaged");
  }
  return plain;
}

}  // namespace optfarm
