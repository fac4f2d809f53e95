#include "rpc/proto_time.h"

#include <gtest/gtest.h>

#include <limits>

namespace optfarm::rpc {
namespace {

TEST(ProtoTimeTest, TimesComeBackInMicroseconds) {
  for (const int64_t micros :
       {int64_t{0}, int64_t{1}, int64_t{-1}, int64_t{-1'500'000},
        int64_t{1'700'000'000'123'456}}) {
    const absl::Time time = absl::FromUnixMicros(micros);
    EXPECT_EQ(FromTimestamp(ToTimestamp(time)), time) << micros;
  }
}

TEST(ProtoTimeTest, TimesBeforeTheEpochHavePositiveNanoseconds) {
  const google::protobuf::Timestamp timestamp =
      ToTimestamp(absl::FromUnixMicros(-1'500'000));
  EXPECT_EQ(timestamp.seconds(), -2);
  EXPECT_EQ(timestamp.nanos(), 500'000'000);
}

TEST(ProtoTimeTest, TimesStayWithinWhatProtobufKnows) {
  EXPECT_EQ(ToTimestamp(absl::InfiniteFuture()).seconds(), 253402300799);
  EXPECT_EQ(ToTimestamp(absl::InfinitePast()).seconds(), -62135596800);
}

TEST(ProtoTimeTest, NumbersThatNoClockShowsSaturate) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  google::protobuf::Timestamp timestamp;
  EXPECT_EQ(FromTimestamp(timestamp), absl::UnixEpoch());
  timestamp.set_seconds(kMost);
  timestamp.set_nanos(std::numeric_limits<int32_t>::max());
  EXPECT_GT(FromTimestamp(timestamp), absl::FromUnixSeconds(kMost / 2));
  google::protobuf::Duration duration;
  duration.set_seconds(-kMost);
  EXPECT_LT(FromProtoDuration(duration), -absl::Hours(24 * 365 * 100));
}

TEST(ProtoTimeTest, DurationsAreBounded) {
  EXPECT_EQ(FromProtoDuration(ToProtoDuration(absl::Microseconds(1'500'001))),
            absl::Microseconds(1'500'001));
  EXPECT_EQ(FromProtoDuration(ToProtoDuration(-absl::Seconds(1))),
            absl::ZeroDuration());
  EXPECT_EQ(FromProtoDuration(ToProtoDuration(absl::InfiniteDuration())),
            absl::Hours(24 * 365 * 100));
}

}  // namespace
}  // namespace optfarm::rpc
