#include "base/resumable_sha256.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/digest.h"
#include "tests/support/status_matchers.h"

namespace optfarm {
namespace {

using ::testing::_;

std::string Bytes(size_t size) {
  std::string bytes(size, 0);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 7 + i / 9);
  return bytes;
}

TEST(ResumableSha256Test, GoesOnFromWhatWasSaved) {
  const std::string bytes = Bytes(1000);
  for (const size_t saved_at : {size_t{0}, size_t{64}, size_t{640}}) {
    ResumableSha256 first;
    first.Update(absl::string_view(bytes).substr(0, saved_at));
    OPTFARM_ASSERT_OK_AND_ASSIGN(ResumableSha256 second,
                                 ResumableSha256::Restore(first.Save()));
    EXPECT_EQ(second.bytes(), static_cast<int64_t>(saved_at));
    second.Update(absl::string_view(bytes).substr(saved_at));
    EXPECT_EQ(second.Digest(), Sha256Hex(bytes)) << saved_at;
  }
}

// The length is part of the hash, and its upper half is saved too.
TEST(ResumableSha256Test, CountsBeyondFourGigabits) {
  const std::string megabyte = Bytes(1 << 20);
  Sha256 whole;
  ResumableSha256 resumed;
  for (int i = 0; i < 600; ++i) {
    whole.Update(megabyte);
    resumed.Update(megabyte);
    if (i % 100 == 99) {
      OPTFARM_ASSERT_OK_AND_ASSIGN(resumed,
                                   ResumableSha256::Restore(resumed.Save()));
    }
  }
  EXPECT_EQ(resumed.Digest(), whole.Finish());
}

TEST(ResumableSha256Test, DigestDoesNotEndIt) {
  ResumableSha256 hash;
  hash.Update("ab");
  EXPECT_EQ(hash.Digest(), Sha256Hex("ab"));
  ResumableSha256 copy = hash;
  hash.Update("c");
  EXPECT_EQ(hash.Digest(), Sha256Hex("abc"));
  EXPECT_EQ(copy.Digest(), Sha256Hex("ab"));
}

TEST(ResumableSha256Test, RefusesWhatWasNotSaved) {
  const std::string good = ResumableSha256().Save();
  EXPECT_THAT(ResumableSha256::Restore(good), testing::IsOk());
  for (const std::string& bad :
       {std::string(), std::string("0"), good.substr(1), good + " 0",
        "1" + good.substr(1), "-64" + good.substr(1),
        good.substr(0, good.size() - 1), good.substr(0, good.size() - 1) + "g",
        "99999999999999999999" + good.substr(1)}) {
    EXPECT_THAT(ResumableSha256::Restore(bad),
                testing::StatusIs(absl::StatusCode::kInvalidArgument, _))
        << bad;
  }
}

TEST(Md5HexTest, IsMd5) {
  EXPECT_EQ(Md5Hex(""), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(Md5Hex("abc"), "900150983cd24fb0d6963f7d28e17f72");
}

}  // namespace
}  // namespace optfarm
