#include "tests/support/s3_server.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "tests/support/test_data.h"

namespace optfarm::testing {
namespace {

constexpr int kCannotRun = 77;
constexpr absl::Duration kPatience = absl::Seconds(60);

// The value of a line KEY=VALUE; empty where there is none.
std::string ValueOf(const std::string& text, absl::string_view key) {
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::pair<absl::string_view, absl::string_view> sides =
        absl::StrSplit(line, absl::MaxSplits('=', 1));
    if (sides.first == key) return std::string(sides.second);
  }
  return "";
}

}  // namespace

absl::StatusOr<std::unique_ptr<S3Server>> S3Server::Start(
    const std::string& folder, int port) {
  OPTFARM_RETURN_IF_ERROR(MakeFolders(folder));
  SubprocessOptions options;
  options.output_file = JoinPath(folder, "log");
  OPTFARM_RETURN_IF_ERROR(RemoveAll(options.output_file));
  options.argv = {SourcePath("tests/support/s3_server.py"), folder,
                  absl::StrCat("--port=", port),
                  absl::StrCat("--bucket=", kBucket)};
  OPTFARM_ASSIGN_OR_RETURN(Subprocess process, Subprocess::Start(options));
  std::unique_ptr<S3Server> server(new S3Server(std::move(process)));
  const absl::Time deadline = absl::Now() + kPatience;
  std::string log;
  while (ValueOf(log, "S3_READY").empty()) {
    const auto ended = server->process_.Wait(absl::Milliseconds(20));
    log = ReadFile(options.output_file).value_or("");
    if (ended && ended->exit_code == kCannotRun) {
      return absl::FailedPreconditionError(log);
    }
    if (ended || absl::Now() > deadline) {
      return absl::InternalError(
          absl::StrCat("the S3 server did not start: ", log));
    }
  }
  server->endpoint_ = ValueOf(log, "S3_ENDPOINT");
  server->access_key_ = ValueOf(log, "S3_ACCESS_KEY");
  server->secret_key_ = ValueOf(log, "S3_SECRET_KEY");
  server->region_ = ValueOf(log, "S3_REGION");
  const size_t colon = server->endpoint_.rfind(':');
  if (!absl::SimpleAtoi(server->endpoint_.substr(colon + 1), &server->port_)) {
    return absl::InternalError("the S3 server names no port");
  }
  return server;
}

absl::StatusOr<S3Server*> S3Server::Shared() {
  static auto server = Start(FreshFolder());
  if (!server.ok()) return server.status();
  return server->get();
}

}  // namespace optfarm::testing
