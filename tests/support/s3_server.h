// A real S3 server for tests: s3_server.py beside this file.

#ifndef OPTFARM_TESTS_SUPPORT_S3_SERVER_H_
#define OPTFARM_TESTS_SUPPORT_S3_SERVER_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/subprocess.h"

namespace optfarm::testing {

// OWNERSHIP: the destructor ends the server; it dies with this process too.
class S3Server {
 public:
  // The bucket that is there.
  static constexpr char kBucket[] = "optfarm-test";

  // Returns once it answers. `port` 0: a free one.
  // ERRORS: FailedPrecondition when it cannot run here, saying why.
  static absl::StatusOr<std::unique_ptr<S3Server>> Start(
      const std::string& folder, int port = 0);

  // The one of this program, started by the first who asks.
  static absl::StatusOr<S3Server*> Shared();

  const std::string& endpoint() const { return endpoint_; }
  int port() const { return port_; }
  const std::string& access_key() const { return access_key_; }
  const std::string& secret_key() const { return secret_key_; }
  const std::string& region() const { return region_; }

 private:
  explicit S3Server(Subprocess process) : process_(std::move(process)) {}

  Subprocess process_;
  std::string endpoint_;
  int port_ = 0;
  std::string access_key_;
  std::string secret_key_;
  std::string region_;
};

}  // namespace optfarm::testing

#endif  // OPTFARM_TESTS_SUPPORT_S3_SERVER_H_
