// Targets and tokens are checked before anything is sent; the token reaches
// the server.

#include "rpc/channel.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "optfarm/v1/models.grpc.pb.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::rpc {
namespace {

using ::optfarm::testing::FreshFolder;
using ::optfarm::testing::IsOk;
using ::optfarm::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ChannelTest, ReadsTheFirstLineOfATokenFile) {
  const std::string path = JoinPath(FreshFolder(), "token");
  OPTFARM_ASSERT_OK(WriteFileAtomically(path, " secret-1 \nmore\n"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const std::string token, ReadToken(path));
  EXPECT_EQ(token, "secret-1");
}

TEST(ChannelTest, RefusesOddTokensWithoutRepeatingThem) {
  const std::string path = JoinPath(FreshFolder(), "token");
  for (const std::string& odd :
       {std::string("\n"), std::string("two words"), std::string("caf\xc3\xa9"),
        std::string(5000, 'x')}) {
    OPTFARM_ASSERT_OK(WriteFileAtomically(path, odd));
    const auto token = ReadToken(path);
    EXPECT_THAT(token, StatusIs(absl::StatusCode::kInvalidArgument,
                                HasSubstr("visible ASCII")));
    EXPECT_THAT(std::string(token.status().message()),
                Not(HasSubstr("two words")));
  }
  EXPECT_THAT(ReadToken(path + ".absent"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("token file")));
}

class TokenService final : public v1::ModelService::Service {
 public:
  grpc::Status FindMissing(grpc::ServerContext* context,
                           const v1::FindMissingRequest*,
                           v1::FindMissingResponse*) override {
    const auto found = context->client_metadata().find(kAuthorizationKey);
    if (found != context->client_metadata().end()) {
      seen.assign(found->second.data(), found->second.size());
    }
    return grpc::Status::OK;
  }

  std::string seen;
};

TEST(ChannelTest, SendsTheTokenWithEveryCall) {
  TokenService service;
  int port = 0;
  grpc::ServerBuilder builder;
  MatchChannelLimits(&builder);
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  ASSERT_NE(server, nullptr);
  ChannelOptions options;
  options.target = absl::StrCat("127.0.0.1:", port);
  options.token_file = JoinPath(FreshFolder(), "token");
  OPTFARM_ASSERT_OK(WriteFileAtomically(options.token_file, "secret-1\n"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto channel, MakeChannel(options));
  const auto stub = v1::ModelService::NewStub(channel);
  grpc::ClientContext context;
  v1::FindMissingResponse response;
  ASSERT_TRUE(stub->FindMissing(&context, {}, &response).ok());
  EXPECT_EQ(service.seen, "Bearer secret-1");
}

}  // namespace
}  // namespace optfarm::rpc
