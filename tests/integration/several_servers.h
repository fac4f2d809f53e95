// Three servers on one PostgreSQL and one store of files, as real processes.

#ifndef OPTFARM_TESTS_INTEGRATION_SEVERAL_SERVERS_H_
#define OPTFARM_TESTS_INTEGRATION_SEVERAL_SERVERS_H_

#include <grpcpp/channel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "optfarm/v1/tokens.grpc.pb.h"
#include "tests/integration/farm.h"
#include "tests/integration/postgres_place.h"
#include "tests/support/s3_server.h"

namespace optfarm::integration {

class SeveralServers : public PostgresPlace {
 protected:
  static constexpr int kServers = 3;
  static constexpr char kOperator[] = "secret-of-all";
  static constexpr char kLeads[] = "this server leads, term";

  void SetUp() override {
    PostgresPlace::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    for (std::string& address : addresses_) {
      address = absl::StrCat("127.0.0.1:", FreePort());
    }
    all_ = absl::StrJoin(addresses_, ",");
  }

  // What the programs said is what explains a failure.
  void TearDown() override {
    programs_.clear();
    servers_ = {};
    if (HasFailure()) {
      const std::vector<std::string> names = ListFolder(logs_).value();
      for (const std::string& name : names) {
        if (LowerExtension(name) != "log") continue;
        std::cerr << "--- " << name << "\n"
                  << ReadFile(JoinPath(logs_, name)).value_or("");
      }
    }
    PostgresPlace::TearDown();
  }

  void StartServer(int number, const std::vector<std::string>& more = {}) {
    std::vector<std::string> command = {
        testing::ProgramPath("optfarm-server"),
        absl::StrCat("--data_dir=", logs_, "/data", number),
        "--grpc=" + addresses_[number],
        "--http=127.0.0.1:0",
        "--advertise=" + addresses_[number],
        "--lease_seconds=3",
        database_};
    command.insert(command.end(), more.begin(), more.end());
    servers_[number] = std::make_unique<Program>(
        std::move(command),
        absl::StrCat(logs_, "/server", number, "-", ++starts_, ".log"));
  }
  void StartServers(const std::vector<std::string>& more) {
    for (int i = 0; i < kServers; ++i) StartServer(i, more);
  }

  // Of a store that all servers see.
  std::vector<std::string> SharedFolder() {
    return {absl::StrCat("--blobs=file:", logs_, "/blobs")};
  }
  std::vector<std::string> BucketOrFolder() {
    const auto s3 = testing::S3Server::Shared();
    if (!s3.ok()) return SharedFolder();
    const std::string keys = JoinPath(logs_, "keys");
    EXPECT_TRUE(
        WriteFileAtomically(
            keys, absl::StrCat(
                      "[default]\naws_access_key_id = ", (*s3)->access_key(),
                      "\naws_secret_access_key = ", (*s3)->secret_key(), "\n"))
            .ok());
    return {
        absl::StrCat("--blobs=s3://", testing::S3Server::kBucket, "/several"),
        "--s3_endpoint=" + (*s3)->endpoint(), "--s3_region=" + (*s3)->region(),
        "--s3_path_style", "--s3_credentials_file=" + keys};
  }

  Program& StartProgram(const std::string& name,
                        std::vector<std::string> command,
                        bool await_ready = true) {
    command.push_back("--server=" + all_);
    programs_.push_back(std::make_unique<Program>(
        std::move(command), absl::StrCat(logs_, "/", name, ".log"),
        await_ready));
    return *programs_.back();
  }
  void StartParticipants() {
    StartProgram("worker",
                 {testing::ProgramPath("optfarm-worker"), "--name=worker",
                  absl::StrCat("--work_dir=", logs_, "/worker")});
    StartProgram("agent",
                 {testing::ProgramPath("optfarm-agent"), "--name=agent",
                  absl::StrCat("--work_dir=", logs_, "/agent")});
  }

  // The one that has begun to lead more often than it has ended; -1: none.
  int Leader() const {
    for (int i = 0; i < kServers; ++i) {
      const std::string log = servers_[i]->Log();
      const size_t begun = log.rfind(kLeads);
      const size_t ended = log.rfind("leads no longer");
      if (begun != std::string::npos &&
          (ended == std::string::npos || ended < begun) &&
          std::find(gone_.begin(), gone_.end(), i) == gone_.end()) {
        return i;
      }
    }
    return -1;
  }

  // It answers before it says so. REQUIRES: there will be one.
  int AwaitLeader() const {
    int leader = -1;
    if (!Await([&] { return (leader = Leader()) >= 0; })) {
      throw std::runtime_error("no server leads");
    }
    return leader;
  }

  // Of one server alone.
  std::shared_ptr<grpc::Channel> ChannelTo(int number,
                                           const std::string& token = "") {
    rpc::ChannelOptions options;
    options.target = addresses_[number];
    options.token = token;
    return rpc::MakeChannel(options).value();
  }

  // What an HTTP GET of one server answers.
  std::string Get(int number, const std::string& path,
                  const std::vector<std::string>& headers) {
    const std::string log = servers_[number]->Log();
    const size_t at = log.find(" http=") + 6;
    std::vector<std::string> curl = {"/usr/bin/curl", "-sS"};
    for (const std::string& header : headers) {
      curl.insert(curl.end(), {"-H", header});
    }
    curl.push_back(
        absl::StrCat("http://", log.substr(at, log.find(' ', at) - at), path));
    Run(curl);
    return said_;
  }

  // With kOperator as the operator's token.
  void StartAll(std::vector<std::string> flags) {
    const std::string token_file = JoinPath(logs_, "token");
    ASSERT_TRUE(
        WriteFileAtomically(token_file, absl::StrCat(kOperator, "\n")).ok());
    flags.push_back("--token_file=" + token_file);
    flags_ = std::move(flags);
    StartServers(flags_);
    ASSERT_EQ(Leader(), 0);
  }

  // Returns its secret and its id.
  std::pair<std::string, std::string> MakeToken(
      const std::string& project, std::vector<v1::Access::Scope> scopes) {
    const auto tokens = v1::TokenService::NewStub(ChannelTo(0, kOperator));
    grpc::ClientContext context;
    v1::CreateTokenRequest request;
    request.set_name(absl::StrCat("one-", ++made_));
    request.set_project(project);
    for (const auto scope : scopes) request.add_scopes(scope);
    v1::CreateTokenResponse response;
    const grpc::Status status =
        tokens->CreateToken(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return {response.secret(), response.token().token_id()};
  }
  void Revoke(int server, const std::string& token_id) {
    const auto tokens = v1::TokenService::NewStub(ChannelTo(server, kOperator));
    grpc::ClientContext context;
    v1::RevokeTokenRequest request;
    request.set_token_id(token_id);
    v1::Token token;
    EXPECT_TRUE(tokens->RevokeToken(&context, request, &token).ok());
  }

  // The last number that the server's /metrics have under a name.
  std::string Metric(int server, const std::string& name) {
    const std::string text =
        Get(server, "/metrics",
            {absl::StrCat("Authorization: Bearer ", kOperator)});
    const size_t at = text.find("\n" + name + " ");
    if (at == std::string::npos) return text;
    const size_t begin = at + name.size() + 2;
    return text.substr(begin, text.find('\n', begin) - begin);
  }

  std::array<std::string, kServers> addresses_;
  std::string all_;
  std::array<std::unique_ptr<Program>, kServers> servers_;
  std::vector<std::unique_ptr<Program>> programs_;
  // Killed, and paused for so long that another leads.
  std::vector<int> gone_;
  int starts_ = 0;
  // Of StartAll.
  std::vector<std::string> flags_;
  // Tokens and files.
  int made_ = 0;
};

}  // namespace optfarm::integration

#endif  // OPTFARM_TESTS_INTEGRATION_SEVERAL_SERVERS_H_
