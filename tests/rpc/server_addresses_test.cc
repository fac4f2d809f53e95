// Lists of servers: what is taken, what is refused, and that a channel goes on
// to the next server when one ends, with and without TLS.

#include "rpc/server_addresses.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files.h"
#include "optfarm/v1/models.grpc.pb.h"
#include "rpc/channel.h"
#include "tests/support/certificates.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::rpc {
namespace {

using ::optfarm::testing::FreshFolder;
using ::optfarm::testing::IsOk;
using ::optfarm::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(ServerAddressesTest, TakesAddressesAndRefusesTheRest) {
  for (const char* good : {"127.0.0.1:7070", "farm.example:1", "[::1]:65535",
                           "localhost:80", "unix:/tmp/socket"}) {
    EXPECT_THAT(CheckTarget(good), IsOk()) << good;
    EXPECT_THAT(CheckServers(good), IsOk()) << good;
  }
  for (const char* bad : {"", "localhost", "localhost:", ":7070", "localhost:0",
                          "localhost:65536", "localhost:x", "::1:7070",
                          "http://farm:80", "unix:", "a:1,"}) {
    EXPECT_THAT(CheckServers(bad), StatusIs(absl::StatusCode::kInvalidArgument,
                                            HasSubstr("HOST:PORT")))
        << bad;
  }
  EXPECT_THAT(CheckServers("a:1,b.example:2,[::1]:3"), IsOk());
  EXPECT_THAT(
      CheckTarget("a:1,b:2"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("HOST:PORT")));
  EXPECT_THAT(CheckServers("a:1,unix:/tmp/socket"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("one of several")));
  const std::vector<std::string> many(kMaxServers + 1, "a:1");
  EXPECT_THAT(
      CheckServers(absl::StrJoin(many, ",")),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("at most 16")));
}

TEST(ServerAddressesTest, LooksUpTheNamesOfSeveral) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const ServerTarget one,
                               FindServers("farm.example:70"));
  EXPECT_EQ(one.uri, "farm.example:70");
  EXPECT_EQ(one.authority, "");
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const ServerTarget two,
      FindServers("127.0.0.1:70,nobody.invalid:71,[::1]:72"));
  EXPECT_EQ(two.uri, "ipv6:[::ffff:127.0.0.1]:70,[::1]:72");
  EXPECT_EQ(two.authority, "127.0.0.1:70");
  EXPECT_THAT(
      FindServers("nobody.invalid:70,nobody.invalid:71"),
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr("nobody.invalid")));
}

class NamedService final : public v1::ModelService::Service {
 public:
  explicit NamedService(std::string name) : name_(std::move(name)) {}
  grpc::Status FindMissing(grpc::ServerContext* context,
                           const v1::FindMissingRequest*,
                           v1::FindMissingResponse*) override {
    context->AddInitialMetadata("name", name_);
    return grpc::Status::OK;
  }

 private:
  const std::string name_;
};

// A server of this process on a free port of loopback.
class Named {
 public:
  Named(const std::string& name, const ServerTls& tls) : service_(name) {
    grpc::ServerBuilder builder;
    MatchChannelLimits(&builder);
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", MakeServerCredentials(tls).value(),
                             &port);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    address_ = absl::StrCat("127.0.0.1:", port);
  }
  const std::string& address() const { return address_; }
  void Stop() { server_->Shutdown(std::chrono::system_clock::now()); }

 private:
  NamedService service_;
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

// Who answers; empty: nobody does.
std::string Ask(v1::ModelService::Stub& stub) {
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::seconds(20));
  v1::FindMissingResponse response;
  if (!stub.FindMissing(&context, {}, &response).ok()) return "";
  const auto& metadata = context.GetServerInitialMetadata();
  const auto name = metadata.find("name");
  return name == metadata.end()
             ? ""
             : std::string(name->second.data(), name->second.size());
}

void GoesOnToTheNext(const ServerTls& server_tls, const ClientTls& tls) {
  Named first("first", server_tls);
  Named second("second", server_tls);
  ChannelOptions options;
  options.target = absl::StrCat(first.address(), ",", second.address());
  options.tls = tls;
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto channel, MakeChannel(options));
  const auto stub = v1::ModelService::NewStub(channel);
  EXPECT_EQ(Ask(*stub), "first");
  first.Stop();
  // A call may still go out on the connection that is being closed.
  std::string answer = Ask(*stub);
  if (answer.empty()) answer = Ask(*stub);
  EXPECT_EQ(answer, "second");
}

TEST(ServerAddressesTest, AChannelGoesOnToTheNextServer) {
  GoesOnToTheNext({}, {});
}

TEST(ServerAddressesTest, CertificatesAreCheckedForTheFirstName) {
  const std::string folder = FreshFolder();
  const auto write = [&](const std::string& name, const std::string& text) {
    const std::string path = JoinPath(folder, name);
    EXPECT_THAT(WriteFileAtomically(path, text), IsOk());
    return path;
  };
  testing::CertificateAuthority authority("farm");
  const testing::Certificate server = authority.Sign("server");
  const ServerTls server_tls = {write("cert", server.certificate),
                                write("key", server.key), ""};
  const ClientTls tls = {write("ca", authority.certificate()), "", ""};
  GoesOnToTheNext(server_tls, tls);
  // The right server under a name that its certificate has not.
  Named named("named", server_tls);
  ChannelOptions options;
  options.target = absl::StrCat("127.0.0.2:1,", named.address());
  options.tls = tls;
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto channel, MakeChannel(options));
  const auto stub = v1::ModelService::NewStub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::seconds(5));
  v1::FindMissingResponse response;
  EXPECT_FALSE(stub->FindMissing(&context, {}, &response).ok());
}

}  // namespace
}  // namespace optfarm::rpc
