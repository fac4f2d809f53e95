// Status and its payloads survive the way over the wire, within limits.

#include "rpc/status.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/cord.h"

namespace optfarm::rpc {
namespace {

TEST(StatusTest, CodesMessagesAndPayloadsSurvive) {
  for (int code = 0; code <= 16; ++code) {
    absl::Status status(static_cast<absl::StatusCode>(code),
                        code == 0 ? "" : "what was wrong");
    status.SetPayload("type.googleapis.com/x.Y", absl::Cord("bytes"));
    EXPECT_EQ(FromGrpc(ToGrpc(status)), status) << code;
  }
}

TEST(StatusTest, LeavesOutWhatDoesNotFitIntoHeaders) {
  absl::Status status = absl::InternalError(std::string(100000, 'x'));
  status.SetPayload("type.googleapis.com/x.Y",
                    absl::Cord(std::string(100000, 'y')));
  const grpc::Status sent = ToGrpc(status);
  EXPECT_LT(sent.error_message().size(), 3000u);
  EXPECT_LT(sent.error_details().size(), 5000u);
}

TEST(StatusTest, CutsBetweenCharacters) {
  std::string message = "x";
  while (message.size() < 4000) message += "\xc3\xa4";
  const std::string sent = ToGrpc(absl::InternalError(message)).error_message();
  EXPECT_EQ(sent.substr(sent.size() - 5), "\xc3\xa4...");
}

TEST(StatusTest, ReadsDamagedDetailsWithoutHarm) {
  const grpc::Status good = ToGrpc([] {
    absl::Status status = absl::NotFoundError("x");
    status.SetPayload("url", absl::Cord("value"));
    return status;
  }());
  for (size_t size = 0; size < good.error_details().size(); ++size) {
    const absl::Status status =
        FromGrpc(grpc::Status(grpc::StatusCode::NOT_FOUND, "x",
                              good.error_details().substr(0, size)));
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  }
}

}  // namespace
}  // namespace optfarm::rpc
