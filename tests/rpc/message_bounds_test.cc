#include "rpc/message_bounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "optfarm/v1/jobs.pb.h"
#include "optfarm/v1/models.pb.h"
#include "optfarm/v1/work.pb.h"
#include "tests/support/status_matchers.h"

namespace optfarm::rpc {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<size_t> Parsed(const google::protobuf::Message& message,
                              const std::string& wire,
                              MessageBounds bounds = {}) {
  return ParsedBytes(*message.GetDescriptor(), wire, bounds);
}

// What it takes once parsed is estimated from below one time in two at most.
template <typename Message>
void ExpectCovered(const std::string& wire) {
  Message message;
  ASSERT_TRUE(message.ParseFromString(wire));
  const absl::StatusOr<size_t> parsed =
      Parsed(message, wire, {wire.size(), std::numeric_limits<size_t>::max()});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  // Arrays that grow have room for as much again.
  EXPECT_GE(2 * *parsed, message.SpaceUsedLong());
  EXPECT_LE(*parsed, 4 * message.SpaceUsedLong() + 1000);
}

TEST(MessageBoundsTest, CoversWhatMessagesTakeInMemory) {
  v1::FindMissingRequest digests;
  for (int i = 0; i < 1000; ++i) {
    v1::Digest& digest = *digests.add_digests();
    if (i % 2 == 0) digest.set_sha256(std::string(64, 'a'));
    digest.set_size_bytes(i);
  }
  ExpectCovered<v1::FindMissingRequest>(digests.SerializeAsString());
  v1::SubmitJobRequest submit;
  for (int i = 0; i < 1000; ++i) {
    submit.mutable_spec()->mutable_recipe()->add_transforms()->set_name("fold");
    submit.mutable_spec()->add_tags("tag");
  }
  ExpectCovered<v1::SubmitJobRequest>(submit.SerializeAsString());
  // Fields that no contract has: 100 in one byte each, and texts.
  std::string unknown;
  for (int i = 0; i < 1000; ++i) unknown.append("\xf8\x7f\x01\xfa\x7f\x01z", 7);
  ExpectCovered<v1::FindMissingRequest>(unknown);
}

TEST(MessageBoundsTest, StopsAtEitherBound) {
  std::string wire;
  for (int i = 0; i < 1000; ++i) wire.append("\x0a\x00", 2);
  const v1::FindMissingRequest type;
  EXPECT_THAT(Parsed(type, wire, {2000, 1 << 20}), ::optfarm::testing::IsOk());
  const auto bytes = Parsed(type, wire, {1999, 1 << 20});
  EXPECT_TRUE(absl::IsResourceExhausted(bytes.status()));
  EXPECT_THAT(std::string(bytes.status().message()),
              HasSubstr("FindMissingRequest has 2000 bytes"));
  const auto memory = Parsed(type, wire, {2000, 10000});
  EXPECT_TRUE(absl::IsResourceExhausted(memory.status()));
  EXPECT_THAT(std::string(memory.status().message()),
              HasSubstr("10000 bytes of memory"));
}

TEST(MessageBoundsTest, RefusesWhatIsNoMessage) {
  const v1::FindMissingRequest type;
  for (const std::string& wire :
       {std::string("\x0a"),
        std::string("\x0a\x05"
                    "a",
                    3),
        std::string("\x0a\xff\xff\xff\xff\x0f", 6), std::string("\x00", 1),
        // A digest whose text goes on behind it.
        std::string("\x0a\x02\x0a\x40"
                    "aaaa",
                    8),
        std::string("\x0b\x0c", 2),
        std::string("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11)}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Parsed(type, wire).status()));
  }
}

}  // namespace
}  // namespace optfarm::rpc
