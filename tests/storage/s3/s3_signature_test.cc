// Signed addresses, against the example of Amazon's documentation of Signature
// Version 4 in query parameters.

#include "storage/s3/s3_signature.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace optfarm::storage {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const absl::Time kThen = absl::FromUnixSeconds(1369353600);  // 2013-05-24

S3Credentials Example() {
  return {"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
          ""};
}

S3Location At(const std::string& endpoint) {
  S3Location location;
  location.bucket = "examplebucket";
  location.endpoint = endpoint;
  return location;
}

TEST(S3SignatureTest, IsThatOfTheDocumentation) {
  // The port is the scheme's own, and no part of the header that is signed.
  for (const char* endpoint :
       {"https://s3.amazonaws.com", "https://s3.amazonaws.com:443"}) {
    const std::string url = PresignedGet(At(endpoint), Example(), "test.txt",
                                         kThen, absl::Hours(24));
    EXPECT_THAT(
        url,
        AllOf(StartsWith("https://examplebucket.s3.amazonaws.com"),
              HasSubstr("/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&"
                        "X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2F"
                        "us-east-1%2Fs3%2Faws4_request&"
                        "X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&"
                        "X-Amz-SignedHeaders=host&"),
              EndsWith("X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330"
                       "da4c265957d157751f604d404")));
  }
}

TEST(S3SignatureTest, NamesPrefixAndTokenAndSignsThem) {
  S3Location location = At("http://127.0.0.1:9000");
  location.path_style = true;
  location.prefix = "farm/";
  S3Credentials keys = Example();
  const std::string plain =
      PresignedGet(location, keys, "key", kThen, absl::Hours(1));
  EXPECT_THAT(plain,
              StartsWith("http://127.0.0.1:9000/examplebucket/farm/key?"));
  keys.session_token = "a/b";
  const std::string with_token =
      PresignedGet(location, keys, "key", kThen, absl::Hours(1));
  EXPECT_THAT(with_token, HasSubstr("&X-Amz-Security-Token=a%2Fb&"));
  EXPECT_NE(plain.substr(plain.size() - 64),
            with_token.substr(with_token.size() - 64));
}

}  // namespace
}  // namespace optfarm::storage
