// One connection from its first request to its end.

#include <algorithm>
#include <memory>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/log.h"
#include "http/exchange.h"
#include "http/service_map.h"

namespace optfarm::http {
namespace {

// What an answered client may still send before the connection is dropped.
constexpr absl::Duration kLinger = absl::Seconds(2);
constexpr size_t kLingerBytes = 8 << 20;

bool IsLoopbackHost(absl::string_view host) {
  // Without its port; "[::1]:80" has colons of its own.
  if (!absl::EndsWith(host, "]")) host = host.substr(0, host.rfind(':'));
  if (absl::EqualsIgnoreCase(host, "localhost") || host == "[::1]") return true;
  return absl::StartsWith(host, "127.") &&
         std::all_of(host.begin(), host.end(), [](char c) {
           return c == '.' ||
                  absl::ascii_isdigit(static_cast<unsigned char>(c));
         });
}

class Connection {
 public:
  Connection(ByteStream& stream, const ServiceMap& services,
             const ConnectionHooks& hooks)
      : stream_(stream),
        services_(services),
        hooks_(hooks),
        reader_(stream, services.limits) {}

  void Run() {
    bool open = true;
    while (open && !hooks_.stop()) open = ServeOne();
    Linger();
  }

 private:
  // Returns whether another request may come.
  bool ServeOne() {
    RequestHead head;
    const bool read = reader_.ReadHead(&head);
    ReplyWriter::Options options;
    options.write_time = services_.limits.write_time;
    if (!read) {
      const ReadFailure& failure = reader_.failure();
      if (failure.http_status == 0) return false;
      options.keep_alive = false;
      ReplyWriter writer(stream_, options);
      writer.Send(Problem(failure.http_status, failure.status)).IgnoreError();
      return false;
    }
    options.head_only = head.verb == "HEAD";
    options.keep_alive =
        reader_.KeepAlive() && !hooks_.stop() && !hooks_.health_only;
    options.old_version = reader_.IsOldVersion();
    ReplyWriter writer(stream_, options);
    head.peer = stream_.Peer();
    head.certified = stream_.PeerCertified();
    hooks_.note_busy(true);
    const absl::Status status = Answer(head, writer);
    hooks_.note_busy(false);
    if (!status.ok()) return false;
    return writer.keep_alive() && reader_.BodyDone();
  }

  absl::Status Answer(RequestHead& head, ReplyWriter& writer) {
    if (hooks_.health_only && !services_.health_pages.contains(head.path)) {
      Reply reply = Problem(absl::UnavailableError(
          "all connections are in use; try again in a few seconds"));
      reply.headers.emplace_back("Retry-After", "2");
      return Refuse(writer, reply);
    }
    if (services_.loopback_hosts_only && !head.Header("host").empty() &&
        !IsLoopbackHost(head.Header("host"))) {
      return Refuse(writer,
                    Problem(421, absl::PermissionDeniedError(
                                     "this server answers for localhost "
                                     "only; give it tokens to have it answer "
                                     "for other names")));
    }
    if (services_.admit) {
      const absl::Status admitted = services_.admit(head);
      if (!admitted.ok()) return Refuse(writer, Problem(admitted));
    }
    const auto action =
        services_.actions.find(absl::StrCat(head.verb, " ", head.path));
    if (action != services_.actions.end()) {
      return AnswerAction(head, action->second, writer);
    }
    const auto page = services_.pages.find(head.path);
    if (page != services_.pages.end()) {
      return AnswerPage(head, page->second, writer);
    }
    for (const auto& [folder, page_below] : services_.page_folders) {
      if (head.path.size() > folder.size() &&
          absl::StartsWith(head.path, folder)) {
        return AnswerPage(head, page_below, writer);
      }
    }
    absl::StatusOr<RouteMatch> match =
        services_.routes.Find(head.verb, head.path);
    if (absl::IsUnimplemented(match.status())) {
      Reply reply = Problem(405, match.status());
      reply.headers.emplace_back("Allow", services_.routes.VerbsOf(head.path));
      return Refuse(writer, reply);
    }
    if (!match.ok()) return Refuse(writer, Problem(match.status()));
    Exchange exchange{services_, stream_,           reader_,    writer,
                      head,      *std::move(match), hooks_.stop};
    return Dispatch(exchange);
  }

  absl::Status Dispatch(Exchange& exchange) {
    const Route& route = *exchange.match.route;
    const absl::Status admitted = AdmitCall(exchange);
    if (!admitted.ok()) return Refuse(exchange.writer, Problem(admitted));
    if (route.method->client_streaming()) return ServeUpload(exchange);
    // No other way takes a body but that of JSON.
    if (!route.json_body && !reader_.BodyDone()) {
      return Refuse(exchange.writer,
                    Problem(absl::InvalidArgumentError(absl::StrCat(
                        route.verb, " ", route.pattern, " takes no body"))));
    }
    if (!route.method->server_streaming()) return ServeUnary(exchange);
    return route.raw_bytes ? ServeDownload(exchange) : ServeEvents(exchange);
  }

  absl::Status AnswerPage(const RequestHead& head, const Page& page,
                          ReplyWriter& writer) {
    if (head.verb == "GET" || head.verb == "HEAD") {
      if (!reader_.BodyDone()) writer.DoNotKeepAlive();
      return writer.Send(page(head));
    }
    Reply reply = Problem(
        405, absl::UnimplementedError("this page can only be read with GET"));
    reply.headers.emplace_back("Allow", "GET, HEAD");
    return Refuse(writer, reply);
  }

  absl::Status AnswerAction(const RequestHead& head, const Page& action,
                            ReplyWriter& writer) {
    if (!reader_.BodyDone()) {
      return Refuse(writer, Problem(absl::InvalidArgumentError(absl::StrCat(
                                head.verb, " ", head.path, " takes no body"))));
    }
    return writer.Send(action(head));
  }

  // An answer before the body was looked at.
  absl::Status Refuse(ReplyWriter& writer, const Reply& reply) {
    if (!reader_.BodyDone()) writer.DoNotKeepAlive();
    return writer.Send(reply);
  }

  // A connection that is closed while bytes come is reset, and the client may
  // lose the answer before it has read it.
  void Linger() {
    stream_.CloseWrite();
    const absl::Time deadline = absl::Now() + kLinger;
    const auto buffer = std::make_unique<char[]>(kBufferBytes);
    size_t total = 0;
    while (total < kLingerBytes && !hooks_.stop()) {
      const absl::StatusOr<size_t> read =
          stream_.Read(buffer.get(), kBufferBytes, deadline);
      if (!read.ok() || *read == 0) return;
      total += *read;
    }
  }

  static constexpr size_t kBufferBytes = 64 << 10;

  ByteStream& stream_;
  const ServiceMap& services_;
  const ConnectionHooks& hooks_;
  RequestReader reader_;
};

}  // namespace

void ServeConnection(ByteStream& stream, const ServiceMap& services,
                     const ConnectionHooks& hooks) {
  Connection(stream, services, hooks).Run();
}

}  // namespace optfarm::http
