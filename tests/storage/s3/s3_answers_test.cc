// What users write and what stores answer, without a store.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "base/files.h"
#include "storage/s3/s3_errors.h"
#include "storage/s3/s3_location.h"
#include "storage/s3/xml_tree.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::storage {
namespace {

using ::optfarm::testing::FreshFolder;
using ::optfarm::testing::IsOk;
using ::optfarm::testing::StatusIs;
using ::testing::_;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(S3LocationTest, ReadsBucketPrefixAndEndpoint) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      S3Location location,
      ParseS3Location("s3://bucket/a/b_c/", "http://[::1]:9000/", "", true));
  EXPECT_EQ(location.bucket, "bucket");
  EXPECT_EQ(location.prefix, "a/b_c/");
  EXPECT_EQ(location.endpoint, "http://[::1]:9000");
  EXPECT_EQ(location.region, "us-east-1");
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      location, ParseS3Location("s3://bucket", "", "eu-central-1", false));
  EXPECT_EQ(location.prefix, "");
  EXPECT_EQ(location.endpoint, "https://s3.eu-central-1.amazonaws.com");
}

TEST(S3LocationTest, RefusesWhatWouldBecomeAnotherAddress) {
  for (const char* url :
       {"", "s3://", "s3:bucket", "s3://ab", "s3://Bucket", "s3://bu..cket",
        "s3://bucket/a b", "s3://bucket/../b", "s3://bucket/a//b",
        "s3://bucket/a?b", "s3://bucket/a%2f", "s3://-bucket"}) {
    EXPECT_THAT(ParseS3Location(url, "", "", true), StatusIs(kInvalid, _))
        << url;
  }
  EXPECT_THAT(ParseS3Location("s3://bu.cket", "", "", false),
              StatusIs(kInvalid, HasSubstr("--s3_path_style")));
  for (const char* endpoint :
       {"host:80", "ftp://host", "http://", "http://user:secret@host",
        "http://host/path", "http://host?x"}) {
    EXPECT_THAT(ParseS3Location("s3://bucket", endpoint, "", true),
                StatusIs(kInvalid, HasSubstr("--s3_endpoint")))
        << endpoint;
  }
  EXPECT_THAT(ParseS3Location("s3://bucket", "", "a\nb", true),
              StatusIs(kInvalid, HasSubstr("--s3_region")));
}

TEST(S3CredentialsTest, AreReadFromAFilesFirstProfile) {
  const std::string path = JoinPath(FreshFolder(), "keys");
  ASSERT_THAT(
      WriteFileAtomically(path,
                          "[default]\r\naws_access_key_id = ID\r\n"
                          "aws_secret_access_key=a/b+c=\r\n[other]\n"
                          "aws_access_key_id = OTHER\naws_session_token = T\n"),
      IsOk());
  OPTFARM_ASSERT_OK_AND_ASSIGN(const S3Credentials keys,
                               ReadS3Credentials(path));
  EXPECT_EQ(keys.access_key, "ID");
  EXPECT_EQ(keys.secret_key, "a/b+c=");
  EXPECT_EQ(keys.session_token, "");
  ASSERT_THAT(WriteFileAtomically(path, "aws_secret_access_key = secret\n"),
              IsOk());
  EXPECT_THAT(ReadS3Credentials(path),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       Not(HasSubstr("= secret"))));
}

TEST(XmlTreeTest, ReadsElementsAndText) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const XmlElement root,
      ParseXml("<?xml version='1.0'?><a xmlns='x'> <b>1&amp;2</b>"
               "<b>3</b><c/></a>"));
  EXPECT_EQ(root.name, "a");
  EXPECT_EQ(root.children.size(), 3u);
  EXPECT_EQ(root.ChildText("b"), "1&2");
  EXPECT_EQ(root.ChildText("c"), "");
  EXPECT_EQ(root.Child("d"), nullptr);
}

TEST(XmlTreeTest, RefusesWhatIsNoneOrTooMuch) {
  std::string deep;
  for (int i = 0; i < 30; ++i) deep += "<a>";
  std::string many = "<a>";
  for (int i = 0; i < 60'000; ++i) many += "<b/>";
  for (const std::string& bad :
       {std::string(), std::string("text"), std::string("<a>"),
        std::string("<a></b>"), std::string("<a/><a/>"),
        std::string("<html><br></html>"), std::string("\xff\xfe\0\0", 4), deep,
        many + "</a>",
        std::string("<!DOCTYPE a [<!ENTITY x \"y\">]><a>&x;</a>")}) {
    EXPECT_THAT(ParseXml(bad), StatusIs(kInvalid, _)) << bad.substr(0, 50);
  }
}

absl::Status Meaning(int status, const std::string& body) {
  S3Answer answer;
  answer.status = status;
  answer.body = body;
  S3Location location;
  location.bucket = "bucket";
  location.endpoint = "http://host";
  return StatusOfAnswer(answer, location, "writing x");
}

std::string Error(const std::string& code) {
  return "<Error><Code>" + code + "</Code><Message>words</Message></Error>";
}

TEST(S3ErrorsTest, SayWhatAnAnswerMeans) {
  using Code = absl::StatusCode;
  EXPECT_THAT(Meaning(204, ""), IsOk());
  EXPECT_THAT(Meaning(503, Error("SlowDown")),
              StatusIs(Code::kUnavailable, HasSubstr("SlowDown: words")));
  EXPECT_THAT(Meaning(500, "not XML"), StatusIs(Code::kUnavailable, _));
  EXPECT_THAT(Meaning(501, Error("NotImplemented")),
              StatusIs(Code::kInternal, _));
  EXPECT_THAT(Meaning(403, Error("SignatureDoesNotMatch")),
              StatusIs(Code::kFailedPrecondition, HasSubstr("--s3_region")));
  EXPECT_THAT(Meaning(403, Error("RequestTimeTooSkewed")),
              StatusIs(Code::kFailedPrecondition, HasSubstr("clock")));
  EXPECT_THAT(Meaning(403, Error("QuotaExceeded")),
              StatusIs(Code::kResourceExhausted, HasSubstr("quota")));
  EXPECT_THAT(Meaning(507, ""), StatusIs(Code::kResourceExhausted, _));
  EXPECT_THAT(Meaning(404, Error("NoSuchKey")), StatusIs(Code::kNotFound, _));
  EXPECT_THAT(Meaning(404, Error("NoSuchBucket")),
              StatusIs(Code::kFailedPrecondition, _));
  EXPECT_THAT(Meaning(400, Error("BadDigest")), StatusIs(Code::kDataLoss, _));
  EXPECT_THAT(Meaning(301, ""), StatusIs(Code::kFailedPrecondition, _));
  EXPECT_TRUE(IsPassing(Meaning(429, "")));
  EXPECT_FALSE(IsPassing(Meaning(403, "")));
  // A store's words neither break a line nor grow without bound.
  const absl::Status hostile =
      Meaning(500, "<Error><Code>a&#10;b</Code><Message>" +
                       std::string(99'999, 'x') + "</Message></Error>");
  EXPECT_LT(hostile.message().size(), 700u);
  EXPECT_THAT(std::string(hostile.message()), Not(HasSubstr("\n")));
}

}  // namespace
}  // namespace optfarm::storage
