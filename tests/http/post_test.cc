// The one request that we make of others, against a socket that answers once.

#include "http/post.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>
#include <cstdlib>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "tests/http/one_answer.h"
#include "tests/support/certificates.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::http {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

absl::StatusOr<int> PostTo(const std::string& url) {
  PostRequest request;
  absl::StatusOr<Url> parsed = ParseUrl(url);
  if (!parsed.ok()) return parsed.status();
  request.url = *std::move(parsed);
  request.content_type = "text/plain";
  request.body = "hello END";
  request.headers = {{"X-One", "1"}};
  return Post(request);
}

TEST(PostTest, SendsTheBodyAndReadsTheStatus) {
  OneAnswer server("HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n");
  OPTFARM_ASSERT_OK_AND_ASSIGN(const int status, PostTo(server.url()));
  EXPECT_EQ(status, 202);
  EXPECT_THAT(server.Asked(),
              AllOf(StartsWith("POST /hook HTTP/1.1\r\nHost: 127.0.0.1:"),
                    HasSubstr("Content-Length: 9\r\n"),
                    HasSubstr("X-One: 1\r\n"), EndsWith("\r\n\r\nhello END")));
}

TEST(PostTest, RedirectsAreNotFollowed) {
  OneAnswer server(
      "HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\n\r\n");
  OPTFARM_ASSERT_OK_AND_ASSIGN(const int status, PostTo(server.url()));
  EXPECT_EQ(status, 302);
}

TEST(PostTest, WhatIsNotHttpIsUnavailable) {
  OneAnswer server("220 smtp.example ESMTP\r\n");
  EXPECT_EQ(PostTo(server.url()).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_FALSE(PostTo("http://127.0.0.1:1/").ok());
}

absl::StatusOr<PostReply> AskForReply(const std::string& url,
                                      size_t max_body_bytes = 100) {
  PostRequest request;
  absl::StatusOr<Url> parsed = ParseUrl(url);
  if (!parsed.ok()) return parsed.status();
  request.url = *std::move(parsed);
  request.body = "hello END";
  return PostForReply(request, max_body_bytes);
}

TEST(PostTest, TheReplyHasABodyAndWhenToTryAgain) {
  for (const char* body :
       {"Content-Length: 5\r\n\r\nlater and more", "\r\nlater",
        "Transfer-Encoding: chunked\r\n\r\n2\r\nla\r\n3\r\nter\r\n0\r\n\r\n"}) {
    OneAnswer server(
        absl::StrCat("HTTP/1.1 503 Busy\r\nRetry-After: 7\r\n", body));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const PostReply reply,
                                 AskForReply(server.url()));
    EXPECT_EQ(reply.status, 503);
    EXPECT_EQ(reply.retry_after, absl::Seconds(7));
    EXPECT_EQ(reply.body, "later");
  }
}

TEST(PostTest, WhenToTryAgainMayBeADateAndMayBeNonsense) {
  const std::string date =
      absl::FormatTime("%a, %d %b %Y %H:%M:%S GMT",
                       absl::Now() + absl::Minutes(2), absl::UTCTimeZone());
  for (const auto& [text, is_known] : std::vector<std::pair<std::string, bool>>{
           {date, true},
           {"Thu, 01 Jan 1970 00:00:00 GMT", true},
           {"-5", true},
           {"soon", false}}) {
    OneAnswer server(absl::StrCat("HTTP/1.1 429 Slow\r\nRetry-After: ", text,
                                  "\r\nContent-Length: 0\r\n\r\n"));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const PostReply reply,
                                 AskForReply(server.url()));
    ASSERT_EQ(reply.retry_after.has_value(), is_known) << text;
    if (!is_known) continue;
    const bool is_later = text == date;
    EXPECT_GE(*reply.retry_after, absl::Seconds(is_later ? 60 : 0));
    EXPECT_LE(*reply.retry_after, absl::Seconds(is_later ? 121 : 0));
  }
}

TEST(PostTest, ABodyThatIsTooLongOrBreaksOffIsLeftOut) {
  for (const char* rest :
       {"Content-Length: 500\r\n\r\n12345678901",
        "Content-Length: 9\r\n\r\n1234567",
        "Transfer-Encoding: chunked\r\n\r\n0\r\n",
        "Transfer-Encoding: chunked\r\n\r\nzz\r\n1234\r\n"}) {
    OneAnswer server(absl::StrCat("HTTP/1.1 200 OK\r\n", rest));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const PostReply reply,
                                 AskForReply(server.url(), 10));
    EXPECT_EQ(reply.status, 200) << rest;
    EXPECT_EQ(reply.body, "") << rest;
  }
  for (const char* answer : {"", "HTTP/1.1 20", "220 smtp.example ESMTP\r\n"}) {
    OneAnswer server(answer);
    EXPECT_EQ(AskForReply(server.url()).status().code(),
              absl::StatusCode::kUnavailable)
        << answer;
  }
}

// The same over TLS, on all addresses of the loopback.
class OneTlsAnswer {
 public:
  explicit OneTlsAnswer(const testing::Certificate& own)
      : acceptor_(context_, {boost::asio::ip::address_v4::any(), 0}),
        tls_(boost::asio::ssl::context::tls_server) {
    tls_.use_certificate_chain(boost::asio::buffer(own.certificate));
    tls_.use_private_key(boost::asio::buffer(own.key),
                         boost::asio::ssl::context::pem);
    thread_ = std::thread([this] {
      boost::asio::ip::tcp::socket socket = acceptor_.accept();
      boost::asio::ssl::stream<boost::asio::ip::tcp::socket&> stream(socket,
                                                                     tls_);
      boost::system::error_code error;
      stream.handshake(boost::asio::ssl::stream_base::server, error);
      if (error) return;
      boost::asio::read_until(stream, boost::asio::dynamic_buffer(asked_),
                              "END", error);
      boost::asio::write(
          stream,
          boost::asio::buffer(std::string("HTTP/1.1 202 Accepted\r\n\r\n")),
          error);
    });
  }
  ~OneTlsAnswer() { thread_.join(); }

  std::string UrlAt(const std::string& host) {
    return absl::StrCat("https://", host, ":",
                        acceptor_.local_endpoint().port(), "/hook");
  }

 private:
  boost::asio::io_context context_;
  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::ssl::context tls_;
  std::string asked_;
  std::thread thread_;
};

TEST(PostTest, HttpsIsSpokenWithWhoTheSystemTrustsAlone) {
  testing::CertificateAuthority authority("hooks");
  testing::CertificateAuthority stranger("stranger");
  const std::string folder = testing::FreshFolder();
  OPTFARM_ASSERT_OK(MakeFolders(folder));
  const std::string trusted = JoinPath(folder, "ca.pem");
  OPTFARM_ASSERT_OK(WriteFileAtomically(trusted, authority.certificate()));
  // What OpenSSL takes for the system's authorities; read once a process.
  ::setenv("SSL_CERT_FILE", trusted.c_str(), 1);
  {
    OneTlsAnswer server(authority.Sign("127.0.0.1"));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const int status,
                                 PostTo(server.UrlAt("127.0.0.1")));
    EXPECT_EQ(status, 202);
  }
  const auto refused = [](const testing::Certificate& own, const char* host) {
    OneTlsAnswer server(own);
    EXPECT_EQ(PostTo(server.UrlAt(host)).status().code(),
              absl::StatusCode::kUnavailable);
  };
  // Signed by nobody that this system knows, and for another name.
  refused(stranger.Sign("127.0.0.1"), "127.0.0.1");
  refused(authority.Sign("127.0.0.1"), "127.0.0.2");
  ::unsetenv("SSL_CERT_FILE");
}

TEST(PostTest, AddressesComeApart) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Url plain, ParseUrl("http://A.b"));
  EXPECT_EQ(plain.Authority(), "a.b:80");
  EXPECT_EQ(plain.target, "/");
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Url six,
                               ParseUrl("https://[::1]:8443/x?y"));
  EXPECT_TRUE(six.tls);
  EXPECT_EQ(six.host, "::1");
  EXPECT_EQ(six.Authority(), "[::1]:8443");
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Url query, ParseUrl("http://a?x=1"));
  EXPECT_EQ(query.target, "/?x=1");
}

}  // namespace
}  // namespace optfarm::http
