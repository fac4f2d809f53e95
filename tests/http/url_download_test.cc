// Files from an address, against a socket that answers once.

#include "http/url_download.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/http/one_answer.h"
#include "tests/support/status_matchers.h"

namespace optfarm::http {
namespace {

using ::optfarm::testing::IsOk;
using ::optfarm::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr absl::StatusCode kUnavailable = absl::StatusCode::kUnavailable;

class UrlDownloadTest : public ::testing::Test {
 protected:
  absl::Status Fetch(const std::string& answer, int64_t offset) {
    OneAnswer there(answer, "\r\n\r\n");
    taken_.clear();
    source_ = MakeUrlSource();
    const absl::Status status =
        source_->Fetch(there.url(), offset, [&](absl::string_view bytes) {
          absl::StrAppend(&taken_, bytes);
          return absl::OkStatus();
        });
    asked_ = there.Asked();
    return status;
  }

  std::unique_ptr<rpc::UrlSource> source_;
  std::string taken_, asked_;
};

TEST_F(UrlDownloadTest, TakesWhatIsThereFromTheOffsetOn) {
  EXPECT_THAT(Fetch("HTTP/1.1 206 Partial Content\r\nContent-Length: 5\r\n"
                    "Content-Range: bytes 3-7/8\r\n\r\nbytes and more",
                    3),
              IsOk());
  EXPECT_EQ(taken_, "bytes");
  EXPECT_THAT(asked_, AllOf(HasSubstr("GET /hook HTTP/1.1\r\n"),
                            HasSubstr("\r\nRange: bytes=3-\r\n")));
  EXPECT_TRUE(source_->WantsUrl());
}

TEST_F(UrlDownloadTest, AWholeAnswerIsNoRest) {
  const std::string whole = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nbytes";
  EXPECT_THAT(Fetch(whole, 0), IsOk());
  EXPECT_EQ(taken_, "bytes");
  EXPECT_THAT(Fetch(whole, 3), StatusIs(kUnavailable, HasSubstr("200")));
  EXPECT_EQ(taken_, "");
}

TEST_F(UrlDownloadTest, WhatFailedIsNotTriedAgainSoon) {
  EXPECT_THAT(Fetch("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno", 0),
              StatusIs(kUnavailable, HasSubstr("403")));
  EXPECT_EQ(taken_, "");
  EXPECT_FALSE(source_->WantsUrl());
  EXPECT_THAT(Fetch("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nbytes", 0),
              StatusIs(kUnavailable, HasSubstr("broke off")));
  EXPECT_FALSE(source_->WantsUrl());
}

TEST_F(UrlDownloadTest, WhatIsNoAnswerWithALengthIsRefused) {
  EXPECT_THAT(Fetch("HTTP/1.1 200 OK\r\n\r\nbytes", 0),
              StatusIs(kUnavailable, HasSubstr("how long")));
  EXPECT_THAT(Fetch("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                    "5\r\nbytes\r\n0\r\n\r\n",
                    0),
              StatusIs(kUnavailable, HasSubstr("how long")));
  EXPECT_THAT(Fetch("220 smtp.example.com ready\r\n\r\n", 0),
              StatusIs(kUnavailable, HasSubstr("not HTTP")));
  EXPECT_THAT(Fetch("", 0), StatusIs(kUnavailable, HasSubstr("no answer")));
}

TEST_F(UrlDownloadTest, ALongHeadIsRefused) {
  EXPECT_THAT(Fetch(absl::StrCat("HTTP/1.1 200 OK\r\nX: ",
                                 std::string(100'000, 'x'), "\r\n\r\n"),
                    0),
              StatusIs(kUnavailable, HasSubstr("not HTTP")));
}

TEST_F(UrlDownloadTest, AnErrorOfTheTakerIsNoFaultOfThePlace) {
  OneAnswer there("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nbytes",
                  "\r\n\r\n");
  const auto source = MakeUrlSource();
  EXPECT_THAT(source->Fetch(there.url(), 0,
                            [](absl::string_view) {
                              return absl::CancelledError("stop");
                            }),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("stop")));
  EXPECT_TRUE(source->WantsUrl());
}

}  // namespace
}  // namespace optfarm::http
