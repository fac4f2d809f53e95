// Only the older interface of OpenSSL shows the state between two blocks.
#define OPENSSL_SUPPRESS_DEPRECATED

#include "base/resumable_sha256.h"

#include <openssl/evp.h>
#include <openssl/sha.h>

#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/check.h"

namespace optfarm {
namespace {

constexpr size_t kWords = 8;

std::string Hex(const unsigned char* bytes, size_t size) {
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(bytes), size));
}

}  // namespace

struct ResumableSha256::Context {
  SHA256_CTX sha;
};

ResumableSha256::ResumableSha256() : context_(std::make_unique<Context>()) {
  OPTFARM_CHECK(SHA256_Init(&context_->sha) == 1);
}
ResumableSha256::~ResumableSha256() = default;
ResumableSha256::ResumableSha256(const ResumableSha256& other)
    : context_(std::make_unique<Context>(*other.context_)),
      bytes_(other.bytes_) {}
ResumableSha256& ResumableSha256::operator=(const ResumableSha256& other) {
  *context_ = *other.context_;
  bytes_ = other.bytes_;
  return *this;
}

void ResumableSha256::Update(absl::string_view bytes) {
  OPTFARM_CHECK(SHA256_Update(&context_->sha, bytes.data(), bytes.size()) == 1);
  bytes_ += static_cast<int64_t>(bytes.size());
}

std::string ResumableSha256::Save() const {
  OPTFARM_CHECK(bytes_ % kBlockBytes == 0);
  std::string saved = absl::StrCat(bytes_);
  for (const auto word : context_->sha.h) {
    absl::StrAppend(&saved, " ", absl::Hex(word, absl::kZeroPad8));
  }
  return saved;
}

absl::StatusOr<ResumableSha256> ResumableSha256::Restore(
    absl::string_view saved) {
  const std::vector<absl::string_view> words = absl::StrSplit(saved, ' ');
  ResumableSha256 hash;
  SHA256_CTX& sha = hash.context_->sha;
  bool good = words.size() == kWords + 1 &&
              absl::SimpleAtoi(words[0], &hash.bytes_) && hash.bytes_ >= 0 &&
              hash.bytes_ % kBlockBytes == 0;
  for (size_t i = 0; good && i < kWords; ++i) {
    uint32_t word = 0;
    good = words[i + 1].size() == 8 && absl::SimpleHexAtoi(words[i + 1], &word);
    sha.h[i] = word;
  }
  if (!good) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", absl::CHexEscape(saved.substr(0, 100)),
                     "' is not the saved state of a SHA-256"));
  }
  const uint64_t bits = static_cast<uint64_t>(hash.bytes_) * 8;
  sha.Nl = static_cast<uint32_t>(bits);
  sha.Nh = static_cast<uint32_t>(bits >> 32);
  return hash;
}

std::string ResumableSha256::Digest() const {
  SHA256_CTX sha = context_->sha;
  unsigned char digest[SHA256_DIGEST_LENGTH];
  OPTFARM_CHECK(SHA256_Final(digest, &sha) == 1);
  return Hex(digest, sizeof(digest));
}

std::string Md5Hex(absl::string_view bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  OPTFARM_CHECK(EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_md5(),
                           nullptr) == 1);
  return Hex(digest, size);
}

}  // namespace optfarm
