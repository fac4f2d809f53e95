#include "base/authenticated_encryption.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/escaping.h"
#include "tests/support/status_matchers.h"

namespace optfarm {
namespace {

using ::optfarm::testing::IsOk;
using ::optfarm::testing::StatusIs;
using ::testing::HasSubstr;

const std::string kNonce(kAeadNonceBytes, '\0');

AeadKey ZeroKey() { return AeadKey(std::string(kAeadKeyBytes, '\0')); }

// Test cases 13 and 14 of the paper that defined GCM.
TEST(AuthenticatedEncryptionTest, HasTheValuesOfTheStandard) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const std::string empty,
                               AeadEncrypt(ZeroKey(), kNonce, "", ""));
  EXPECT_EQ(absl::BytesToHexString(empty), "530f8afbc74536b9a963b4f1c4cb738b");
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const std::string zeros,
      AeadEncrypt(ZeroKey(), kNonce, "", std::string(16, '\0')));
  EXPECT_EQ(absl::BytesToHexString(zeros),
            "cea7403d4d606b6e074ec5d3baf39d18"
            "d0d1c8a799996bf0265b98b5d48ab919");
}

TEST(AuthenticatedEncryptionTest, DecryptsOnlyWhatWasEncrypted) {
  const std::string text = "weights and biases";
  OPTFARM_ASSERT_OK_AND_ASSIGN(const std::string sealed,
                               AeadEncrypt(ZeroKey(), kNonce, "head", text));
  EXPECT_EQ(*AeadDecrypt(ZeroKey(), kNonce, "head", sealed), text);
  const auto kLost = absl::StatusCode::kDataLoss;
  for (size_t at = 0; at < sealed.size(); ++at) {
    std::string changed = sealed;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    EXPECT_THAT(AeadDecrypt(ZeroKey(), kNonce, "head", changed),
                StatusIs(kLost, HasSubstr("does not decrypt")));
  }
  for (size_t size = 0; size < sealed.size(); ++size) {
    EXPECT_FALSE(
        AeadDecrypt(ZeroKey(), kNonce, "head", sealed.substr(0, size)).ok());
  }
  EXPECT_FALSE(AeadDecrypt(ZeroKey(), kNonce, "heat", sealed).ok());
  EXPECT_FALSE(
      AeadDecrypt(ZeroKey(), std::string(12, '\1'), "head", sealed).ok());
  EXPECT_FALSE(
      AeadDecrypt(AeadKey(std::string(32, '\1')), kNonce, "head", sealed).ok());
}

TEST(AuthenticatedEncryptionTest, RandomBytesDiffer) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const std::string a, SecretRandomBytes(16));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const std::string b, SecretRandomBytes(16));
  EXPECT_EQ(a.size(), 16u);
  EXPECT_NE(a, b);
}

}  // namespace
}  // namespace optfarm
