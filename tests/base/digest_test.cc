#include "base/digest.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm {
namespace {

using ::testing::HasSubstr;

// From FIPS 180-2.
constexpr char kAbc[] =
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

TEST(Sha256Test, AgreesWithThePublishedExample) {
  EXPECT_EQ(Sha256Hex("abc"), kAbc);
}

TEST(Sha256Test, PiecesGiveTheDigestOfTheWhole) {
  Sha256 hash;
  hash.Update("a");
  hash.Update("");
  hash.Update("bc");
  EXPECT_EQ(hash.Finish(), kAbc);
}

TEST(Sha256Test, FileHasTheDigestOfItsBytes) {
  const std::string path = JoinPath(testing::FreshFolder(), "abc");
  OPTFARM_ASSERT_OK(WriteFileAtomically(path, "abc"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(std::string digest, Sha256OfFile(path));
  EXPECT_EQ(digest, kAbc);
}

TEST(Sha256Test, MissingFileIsNamed) {
  EXPECT_THAT(Sha256OfFile("/no/such/file"),
              testing::StatusIs(absl::StatusCode::kNotFound,
                                HasSubstr("/no/such/file")));
}

TEST(IsSha256HexTest, OnlyLowerCaseHexOfTheRightLength) {
  EXPECT_TRUE(IsSha256Hex(kAbc));
  EXPECT_FALSE(IsSha256Hex("BA78"));
  EXPECT_FALSE(IsSha256Hex(std::string(64, 'A')));
  EXPECT_FALSE(IsSha256Hex("../" + std::string(61, 'a')));
}

}  // namespace
}  // namespace optfarm
