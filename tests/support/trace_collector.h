// A collector of traces for tests: a real HTTP server on the loopback that
// reads OTLP in protobuf and answers as it is told.

#ifndef OPTFARM_TESTS_SUPPORT_TRACE_COLLECTOR_H_
#define OPTFARM_TESTS_SUPPORT_TRACE_COLLECTOR_H_

#include <sys/socket.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <deque>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "opentelemetry/traces.pb.h"

namespace optfarm::testing {

// A span with the service that it belongs to.
struct SeenSpan {
  std::string service;
  std::string instance;
  otlp::Span span;

  // As text, whatever its type; "" without one.
  std::string Attribute(const std::string& key) const {
    return ValueOf(span.attributes(), key);
  }
  absl::Time start() const {
    return absl::FromUnixNanos(
        static_cast<int64_t>(span.start_time_unix_nano()));
  }
  absl::Time end() const {
    return absl::FromUnixNanos(static_cast<int64_t>(span.end_time_unix_nano()));
  }
  absl::Duration length() const { return end() - start(); }

  static std::string ValueOf(
      const google::protobuf::RepeatedPtrField<otlp::KeyValue>& all,
      const std::string& key) {
    for (const otlp::KeyValue& one : all) {
      if (one.key() != key) continue;
      const otlp::AnyValue& value = one.value();
      switch (value.value_case()) {
        case otlp::AnyValue::kIntValue:
          return absl::StrCat(value.int_value());
        case otlp::AnyValue::kDoubleValue:
          return absl::StrCat(value.double_value());
        case otlp::AnyValue::kBoolValue:
          return value.bool_value() ? "true" : "false";
        default:
          return value.string_value();
      }
    }
    return "";
  }
};

class TraceCollector {
 public:
  using Fields = boost::beast::http::fields;
  struct Request {
    std::string target;
    Fields headers;
    std::string body;
  };
  struct Answer {
    int status = 200;
    std::string body = {};
    std::string retry_after = {};
  };

  TraceCollector()
      : acceptor_(context_, {boost::asio::ip::make_address("127.0.0.1"), 0}),
        port_(acceptor_.local_endpoint().port()),
        thread_([this] { Serve(); }) {}
  ~TraceCollector() {
    // Wakes the thread that accepts.
    ::shutdown(acceptor_.native_handle(), SHUT_RDWR);
    thread_.join();
  }

  std::string endpoint() const {
    return absl::StrCat("http://127.0.0.1:", port_);
  }

  // The next request that has no answer yet gets this one; all others 200.
  void AnswerNext(Answer answer) {
    absl::MutexLock lock(&mutex_);
    answers_.push_back(std::move(answer));
  }

  // All requests, once there are so many of them, or after a minute.
  std::vector<Request> Await(size_t count) {
    absl::MutexLock lock(&mutex_);
    const auto enough = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return requests_.size() >= count;
    };
    mutex_.AwaitWithTimeout(absl::Condition(&enough), absl::Minutes(1));
    return requests_;
  }

  // The spans of a request, in its order.
  static std::vector<SeenSpan> SpansOf(const Request& request) {
    std::vector<SeenSpan> spans;
    otlp::ExportTraceServiceRequest traces;
    if (!traces.ParseFromString(request.body)) return spans;
    for (const otlp::ResourceSpans& of : traces.resource_spans()) {
      const auto& resource = of.resource().attributes();
      for (const otlp::ScopeSpans& scope : of.scope_spans()) {
        for (const otlp::Span& span : scope.spans()) {
          spans.push_back({SeenSpan::ValueOf(resource, "service.name"),
                           SeenSpan::ValueOf(resource, "service.instance.id"),
                           span});
        }
      }
    }
    return spans;
  }

 private:
  void Serve() {
    boost::system::error_code error;
    while (true) {
      boost::asio::ip::tcp::socket socket(context_);
      acceptor_.accept(socket, error);
      if (error) return;
      ServeOne(socket);
    }
  }

  void ServeOne(boost::asio::ip::tcp::socket& socket) {
    namespace http = boost::beast::http;
    boost::system::error_code error;
    boost::beast::flat_buffer buffer;
    http::request<http::string_body> asked;
    http::read(socket, buffer, asked, error);
    if (error) return;
    const Answer answer = Take(asked);
    http::response<http::string_body> reply;
    reply.result(static_cast<unsigned>(answer.status));
    reply.set(http::field::content_type, "application/x-protobuf");
    if (!answer.retry_after.empty()) {
      reply.set(http::field::retry_after, answer.retry_after);
    }
    reply.body() = answer.body;
    reply.prepare_payload();
    http::write(socket, reply, error);
  }

  Answer Take(
      const boost::beast::http::request<boost::beast::http::string_body>&
          asked) {
    absl::MutexLock lock(&mutex_);
    requests_.push_back(
        {std::string(asked.target().data(), asked.target().size()),
         asked.base(), asked.body()});
    if (answers_.empty()) return {};
    Answer answer = std::move(answers_.front());
    answers_.pop_front();
    return answer;
  }

  boost::asio::io_context context_;
  boost::asio::ip::tcp::acceptor acceptor_;
  const int port_;
  absl::Mutex mutex_;
  std::deque<Answer> answers_ ABSL_GUARDED_BY(mutex_);
  std::vector<Request> requests_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace optfarm::testing

#endif  // OPTFARM_TESTS_SUPPORT_TRACE_COLLECTOR_H_
