// The web page's login: a token is traded for a cookie that counts as the token
// for this page alone.

#include "server/services/web_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/access/browser_sessions.h"
#include "tests/server/rest_client.h"
#include "tests/server/server_fixture.h"

namespace optfarm::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

using Headers = RestClient::Headers;

// "name=value" of a Set-Cookie.
std::string CookieIn(const RestAnswer& answer) {
  const auto found = answer.headers.find("set-cookie");
  if (found == answer.headers.end()) return "";
  return found->second.substr(0, found->second.find(';'));
}

class WebPageTest : public ServerFixture {
 protected:
  void SetUp() override {
    options_.http_address = "127.0.0.1:0";
    options_.token = "the-operators-token";
    ServerFixture::SetUp();
  }
  RestClient Browser() { return RestClient(server_->http_address()); }
  RestAnswer Login(const std::string& token, Headers headers = {}) {
    headers["Optfarm-Page"] = "1";
    headers["Authorization"] = absl::StrCat("Bearer ", token);
    return Browser().Call("POST", "/session", headers, "");
  }
  std::string Cookie() { return CookieIn(Login(options_.token)); }
};

TEST_F(WebPageTest, TradesATokenForACookieThatScriptsCannotRead) {
  const RestAnswer login = Login(options_.token);
  EXPECT_EQ(login.status, 204);
  EXPECT_THAT(login.headers.at("set-cookie"),
              AllOf(StartsWith("optfarm_session_"), HasSubstr("; HttpOnly"),
                    HasSubstr("; SameSite=Strict"), HasSubstr("; Path=/"),
                    Not(HasSubstr("Secure")), Not(HasSubstr(options_.token))));
  const std::string cookie = CookieIn(login);
  const RestAnswer who = Browser().Get("/v1/whoami", {{"Cookie", cookie}});
  EXPECT_EQ(who.status, 200);
  EXPECT_EQ(who.json()["name"], "operator");
  // Among others, and not under another name.
  EXPECT_EQ(Browser()
                .Get("/v1/whoami",
                     {{"Cookie", absl::StrCat("a=b; ", cookie, "; c=d")}})
                .status,
            200);
  EXPECT_EQ(Browser()
                .Get("/v1/whoami", {{"Cookie", absl::StrCat("x", cookie)}})
                .status,
            401);
}

TEST_F(WebPageTest, RefusesWhatIsNoToken) {
  for (const std::string token : {"another", "", "the-operators-token2"}) {
    const RestAnswer login = Login(token);
    EXPECT_EQ(login.status, 401) << token;
    EXPECT_THAT(CookieIn(login), IsEmpty());
  }
  EXPECT_EQ(
      Browser().Get("/v1/whoami", {{"Cookie", "optfarm_session=x"}}).status,
      401);
  // A form of another site cannot send the header.
  EXPECT_EQ(Browser()
                .Call("POST", "/session",
                      {{"Authorization", "Bearer the-operators-token"}}, "")
                .status,
            403);
  // It is looked at without a body.
  EXPECT_EQ(Browser()
                .Call("POST", "/session", {{"Optfarm-Page", "1"}}, "token=x")
                .status,
            400);
}

TEST_F(WebPageTest, RefusedLoginsAreInTheAuditLog) {
  Login("another");
  RestClient operator_client = Browser();
  operator_client.SetToken(options_.token);
  const auto entries = operator_client.Get("/v1/audit").json()["entries"];
  ASSERT_FALSE(entries.empty());
  EXPECT_EQ(entries[0]["method"], "TokenService.WhoAmI");
  EXPECT_EQ(entries[0]["outcome"], "UNAUTHENTICATED");
  EXPECT_THAT(std::string(entries[0]["peer"]), HasSubstr("127.0.0.1"));
}

TEST_F(WebPageTest, ChangesNeedThePagesHeader) {
  const std::string cookie = Cookie();
  const std::string token = R"({"name":"ci","scopes":["READ"]})";
  const RestAnswer bare =
      Browser().Post("/v1/tokens", token, {{"Cookie", cookie}});
  EXPECT_EQ(bare.status, 403);
  EXPECT_THAT(bare.body, HasSubstr("Optfarm-Page"));
  EXPECT_EQ(Browser()
                .Call("PUT", absl::StrCat("/v1/blobs/", Sha256Hex("x")),
                      {{"Cookie", cookie}}, "x")
                .status,
            403);
  EXPECT_EQ(Browser()
                .Post("/v1/tokens", token,
                      {{"Cookie", cookie}, {"Optfarm-Page", "1"}})
                .status,
            200);
}

TEST_F(WebPageTest, TheCookieOfAnotherSitesRequestDoesNotCount) {
  const std::string cookie = Cookie();
  for (const std::string site : {"cross-site", "same-site"}) {
    EXPECT_EQ(
        Browser()
            .Get("/v1/whoami", {{"Cookie", cookie}, {"Sec-Fetch-Site", site}})
            .status,
        401);
  }
  for (const std::string site : {"same-origin", "none"}) {
    EXPECT_EQ(
        Browser()
            .Get("/v1/whoami", {{"Cookie", cookie}, {"Sec-Fetch-Site", site}})
            .status,
        200);
  }
}

TEST_F(WebPageTest, SessionsEnd) {
  const std::string cookie = Cookie();
  const auto status = [&](const std::string& of) {
    return Browser().Get("/v1/whoami", {{"Cookie", of}}).status;
  };
  // Not by a link or a form.
  EXPECT_EQ(
      Browser().Call("DELETE", "/session", {{"Cookie", cookie}}, "").status,
      403);
  EXPECT_EQ(status(cookie), 200);
  const RestAnswer logout = Browser().Call(
      "DELETE", "/session", {{"Cookie", cookie}, {"Optfarm-Page", "1"}}, "");
  EXPECT_EQ(logout.status, 204);
  EXPECT_THAT(logout.headers.at("set-cookie"), HasSubstr("Max-Age=0"));
  EXPECT_EQ(status(cookie), 401);

  const std::string old = Cookie();
  clock_.Advance(absl::Hours(24 * 7) - absl::Seconds(1));
  EXPECT_EQ(status(old), 200);
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(status(old), 401);
}

TEST_F(WebPageTest, ARevokedTokenEndsItsSessions) {
  RestClient operator_client = Browser();
  operator_client.SetToken(options_.token);
  const auto made =
      operator_client.Post("/v1/tokens", R"({"name":"ann","scopes":["READ"]})")
          .json();
  const std::string cookie = CookieIn(Login(made["secret"]));
  ASSERT_THAT(cookie, Not(IsEmpty()));
  const Headers headers = {{"Cookie", cookie}, {"Optfarm-Page", "1"}};
  EXPECT_EQ(Browser().Get("/v1/jobs", headers).status, 200);
  // The session may do what its token may, and no more.
  EXPECT_EQ(Browser().Get("/v1/tokens", headers).status, 403);
  const std::string id = made["token"]["token_id"];
  operator_client.Call("DELETE", absl::StrCat("/v1/tokens/", id), {}, "");
  EXPECT_EQ(Browser().Get("/v1/jobs", headers).status, 401);
}

TEST_F(WebPageTest, ItsOwnAuthorizationWins) {
  EXPECT_EQ(Browser()
                .Get("/v1/whoami",
                     {{"Cookie", Cookie()}, {"Authorization", "Bearer wrong"}})
                .status,
            401);
}

TEST_F(WebPageTest, FilesAreServedPackedAndForGood) {
  if (WebFiles().empty()) {
    const RestAnswer docs = Browser().Get("/");
    EXPECT_EQ(docs.status, 302);
    EXPECT_EQ(docs.headers.at("location"), "/docs");
    GTEST_SKIP() << "built without the page: OPTFARM_WEB";
  }
  const RestAnswer page = Browser().Get("/");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.headers.at("cache-control"), "no-cache");
  EXPECT_THAT(
      page.headers.at("content-security-policy"),
      AllOf(HasSubstr("default-src 'none'"), HasSubstr("script-src 'self'"),
            HasSubstr("frame-ancestors 'none'"), Not(HasSubstr("unsafe"))));
  EXPECT_THAT(page.body, Not(HasSubstr("://")));
  EXPECT_EQ(
      Browser().Get("/", {{"If-None-Match", page.headers.at("etag")}}).status,
      304);
  size_t packed = 0;
  for (const WebFile& file : WebFiles()) {
    packed += file.gzip.size();
    const std::string path(file.path);
    const RestAnswer plain = Browser().Get(path);
    EXPECT_EQ(plain.body, file.bytes) << path;
    EXPECT_FALSE(plain.headers.contains("content-encoding"));
    EXPECT_EQ(plain.headers.at("vary"), "Accept-Encoding");
    const RestAnswer small =
        Browser().Get(path, {{"Accept-Encoding", "br, gzip"}});
    EXPECT_EQ(small.body, file.gzip) << path;
    EXPECT_EQ(small.headers.at("content-encoding"), "gzip");
    EXPECT_EQ(Browser().Get(path, {{"Accept-Encoding", "gzip;q=0"}}).body,
              file.bytes);
    if (path == "/") continue;
    EXPECT_THAT(path, StartsWith("/assets/"));
    EXPECT_THAT(plain.headers.at("cache-control"), HasSubstr("immutable"));
    EXPECT_THAT(page.body, HasSubstr(path));
  }
  EXPECT_LT(packed, 300'000u);
  EXPECT_EQ(Browser().Call("POST", "/", {}, "").status, 405);
}

// Without a server.
class BrowserSessionsTest : public ::testing::Test {
 protected:
  static http::RequestHead Head(const std::string& verb,
                                std::map<std::string, std::string> headers) {
    http::RequestHead head;
    head.verb = verb;
    head.headers = std::move(headers);
    head.headers.emplace("host", "farm.example");
    return head;
  }
  static std::string Value(const std::string& set_cookie) {
    return set_cookie.substr(0, set_cookie.find(';'));
  }
  std::string Begin(BrowserSessions& sessions) {
    const auto cookie =
        sessions.Begin(Head("POST", {{"authorization", "Bearer t"}}));
    EXPECT_TRUE(cookie.ok());
    return cookie.value_or("");
  }
  static std::string AuthorizationAfter(BrowserSessions& sessions,
                                        const std::string& cookie) {
    http::RequestHead head = Head("GET", {{"cookie", cookie}});
    EXPECT_TRUE(sessions.Admit(head).ok());
    return std::string(head.Header("authorization"));
  }

  FakeClock clock_{absl::FromUnixSeconds(1700000000)};
};

TEST_F(BrowserSessionsTest, CookiesStayOnTlsWhereThereIsTls) {
  BrowserSessions sessions({.secure = true}, clock_);
  const std::string cookie = Begin(sessions);
  EXPECT_THAT(cookie, AllOf(StartsWith("__Host-optfarm_session="),
                            HasSubstr("; Secure")));
  EXPECT_EQ(AuthorizationAfter(sessions, Value(cookie)), "Bearer t");
}

TEST_F(BrowserSessionsTest, TheOldestMakesRoom) {
  BrowserSessions sessions({.max_sessions = 2}, clock_);
  const std::string first = Value(Begin(sessions));
  clock_.Advance(absl::Seconds(1));
  const std::string second = Value(Begin(sessions));
  clock_.Advance(absl::Seconds(1));
  const std::string third = Value(Begin(sessions));
  EXPECT_EQ(AuthorizationAfter(sessions, first), "");
  EXPECT_EQ(AuthorizationAfter(sessions, second), "Bearer t");
  EXPECT_EQ(AuthorizationAfter(sessions, third), "Bearer t");
}

TEST_F(BrowserSessionsTest, ANewLoginEndsTheBrowsersFormerSession) {
  BrowserSessions sessions({}, clock_);
  const std::string former = Value(Begin(sessions));
  ASSERT_TRUE(sessions
                  .Begin(Head("POST", {{"authorization", "Bearer u"},
                                       {"cookie", former}}))
                  .ok());
  EXPECT_EQ(AuthorizationAfter(sessions, former), "");
}

TEST_F(BrowserSessionsTest, OddCookiesAreNobodys) {
  BrowserSessions sessions({}, clock_);
  for (const std::string cookie :
       {"", ";", "=", "optfarm_session", "optfarm_session=", ";;=;a",
        "optfarm_session==", "optfarm_session=\xff\x01"}) {
    EXPECT_EQ(AuthorizationAfter(sessions, cookie), "") << cookie;
  }
}

}  // namespace
}  // namespace optfarm::server
