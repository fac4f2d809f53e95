// A small HTTP client for tests: one connection a request, plain or with TLS.

#ifndef OPTFARM_TESTS_SERVER_REST_CLIENT_H_
#define OPTFARM_TESTS_SERVER_REST_CLIENT_H_

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"
#include "tests/support/certificates.h"

namespace optfarm::server {

struct RestAnswer {
  // 0: there was none.
  int status = 0;
  // By lower-case name.
  std::map<std::string, std::string> headers;
  std::string body;
  nlohmann::json json() const {
    return nlohmann::json::parse(body, nullptr, false);
  }
};

class RestClient {
 public:
  using Headers = std::map<std::string, std::string>;

  explicit RestClient(std::string address) : address_(std::move(address)) {}

  // Brings "Authorization: Bearer TOKEN" along.
  void SetToken(const std::string& token) { token_ = token; }
  // Speaks TLS and trusts who `ca` (PEM) trusts.
  void SetTls(const std::string& ca, testing::Certificate own = {}) {
    ca_ = ca;
    own_ = std::move(own);
  }

  RestAnswer Get(const std::string& target, Headers headers = {}) {
    return Call("GET", target, std::move(headers), "");
  }
  RestAnswer Post(const std::string& target, const std::string& json,
                  Headers headers = {}) {
    headers["Content-Type"] = "application/json";
    return Call("POST", target, std::move(headers), json);
  }

  RestAnswer Call(const std::string& verb, const std::string& target,
                  Headers headers, const std::string& body) {
    namespace asio = boost::asio;
    asio::io_context context;
    asio::ip::tcp::socket socket(context);
    boost::system::error_code error;
    const size_t colon = address_.rfind(':');
    asio::ip::tcp::resolver resolver(context);
    asio::connect(socket,
                  resolver.resolve(address_.substr(0, colon),
                                   address_.substr(colon + 1), error),
                  error);
    if (error) return {};
    namespace http = boost::beast::http;
    http::request<http::string_body> request;
    request.method_string(verb);
    request.target(target);
    request.set(http::field::host, address_);
    request.set(http::field::connection, "close");
    if (!token_.empty()) {
      request.set(http::field::authorization, "Bearer " + token_);
    }
    for (const auto& [name, value] : headers) request.set(name, value);
    request.body() = body;
    request.prepare_payload();
    if (ca_.empty()) return Talk(socket, request);
    asio::ssl::context tls(asio::ssl::context::tls_client);
    tls.add_certificate_authority(asio::buffer(ca_));
    tls.set_verify_mode(asio::ssl::verify_peer);
    if (!own_.certificate.empty()) {
      tls.use_certificate_chain(asio::buffer(own_.certificate));
      tls.use_private_key(asio::buffer(own_.key), asio::ssl::context::pem);
    }
    asio::ssl::stream<asio::ip::tcp::socket&> stream(socket, tls);
    stream.handshake(asio::ssl::stream_base::client, error);
    return error ? RestAnswer() : Talk(stream, request);
  }

 private:
  template <typename Stream, typename Request>
  static RestAnswer Talk(Stream& stream, const Request& request) {
    namespace http = boost::beast::http;
    boost::system::error_code error;
    http::write(stream, request, error);
    // Even then there may be an answer: the server need not read it all.
    boost::beast::flat_buffer buffer;
    http::response_parser<http::string_body> parser;
    parser.body_limit(1 << 30);
    if (request.method() == http::verb::head) parser.skip(true);
    http::read(stream, buffer, parser, error);
    RestAnswer answer;
    if (!parser.is_header_done()) return answer;
    answer.status = static_cast<int>(parser.get().result_int());
    for (const auto& field : parser.get()) {
      const auto name = field.name_string();
      const auto value = field.value();
      answer.headers[absl::AsciiStrToLower(std::string(
          name.data(), name.size()))] = std::string(value.data(), value.size());
    }
    answer.body = parser.get().body();
    return answer;
  }

  const std::string address_;
  std::string token_;
  std::string ca_;
  testing::Certificate own_;
};

}  // namespace optfarm::server

#endif  // OPTFARM_TESTS_SERVER_REST_CLIENT_H_
