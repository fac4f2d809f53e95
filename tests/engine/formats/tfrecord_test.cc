#include "engine/formats/files/tfrecord.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/status_matchers.h"

namespace optfarm::formats {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

std::string File(const std::vector<std::string>& records) {
  std::string bytes;
  for (const std::string& record : records) AppendRecord(record, &bytes);
  return bytes;
}

// Checksums worked out bit by bit apart from this program.
TEST(RecordFileTest, WritesAndReadsKnownBytes) {
  const std::string known(
      "\x07\0\0\0\0\0\0\0\xbb\xd7\x9f\x11"
      "optfarm"
      "\x30\x9f\x12\x4e",
      23);
  EXPECT_EQ(File({"optfarm"}), known);
  EXPECT_TRUE(IsRecordFile(known));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const RecordFile file,
                               RecordFile::FromBytes(known, "t"));
  EXPECT_EQ(*file.Read(0), "optfarm");
}

TEST(RecordFileTest, GivesBackWhatWasAppended) {
  const std::string large(100000, 'x');
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const RecordFile file,
      RecordFile::FromBytes(File({"first", "", large}), "t"));
  ASSERT_EQ(file.size(), 3);
  EXPECT_EQ(*file.Read(1), "");
  EXPECT_EQ(*file.Read(0), "first");
  EXPECT_EQ(*file.Read(2), large);
}

TEST(RecordFileTest, OfNothingHasNoRecords) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const RecordFile file,
                               RecordFile::FromBytes("", "t"));
  EXPECT_EQ(file.size(), 0);
}

TEST(RecordFileTest, RefusesALengthWithAWrongChecksum) {
  std::string bytes = File({"first", "second"});
  bytes[0] ^= 1;
  EXPECT_THAT(RecordFile::FromBytes(bytes, "t").status(),
              StatusIs(kInvalid, HasSubstr("no TFRecord file")));
  EXPECT_FALSE(IsRecordFile(bytes));
  bytes[0] ^= 1;
  bytes[8 + 4 + 5 + 4] ^= 1;
  EXPECT_THAT(RecordFile::FromBytes(bytes, "t").status(),
              StatusIs(kInvalid, HasSubstr("record 1")));
}

TEST(RecordFileTest, RefusesDataWithAWrongChecksumWhenItIsRead) {
  std::string bytes = File({"first", "second"});
  bytes[8 + 4 + 2] ^= 1;
  OPTFARM_ASSERT_OK_AND_ASSIGN(const RecordFile file,
                               RecordFile::FromBytes(bytes, "t"));
  EXPECT_THAT(file.Read(0).status(),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("record 0")));
  EXPECT_TRUE(file.Read(1).ok());
}

TEST(RecordFileTest, RefusesEveryFileThatWasCutOff) {
  const std::string bytes = File({"first", "second"});
  const size_t whole = 8 + 4 + 5 + 4;
  for (size_t size = 1; size < bytes.size(); ++size) {
    if (size == whole) continue;
    EXPECT_FALSE(RecordFile::FromBytes(bytes.substr(0, size), "t").ok())
        << size;
  }
}

TEST(RecordFileTest, RefusesLengthsBeyondTheFileBeforeTakingMemory) {
  // A length of 2^62 with its right checksum.
  std::string bytes = File({std::string(64, 'x')});
  std::string length("\0\0\0\0\0\0\0\x40", 8);
  std::string other = File({length});
  bytes.replace(0, 8, length);
  // The checksum over those eight bytes is the other record's.
  bytes.replace(8, 4, other.substr(8 + 4 + 8, 4));
  EXPECT_THAT(RecordFile::FromBytes(bytes, "t").status(),
              StatusIs(kInvalid, HasSubstr("at most")));
}

TEST(RecordFileTest, SaysThatAFileIsCompressed) {
  EXPECT_THAT(
      RecordFile::FromBytes("\x1f\x8b\x08 and more bytes", "t").status(),
      StatusIs(kInvalid, HasSubstr("unpack it")));
}

}  // namespace
}  // namespace optfarm::formats
