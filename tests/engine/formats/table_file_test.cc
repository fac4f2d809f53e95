#include "engine/formats/tensorflow/table_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <snappy.h>

#include <boost/crc.hpp>
#include <map>
#include <random>
#include <string>

#include "absl/strings/str_format.h"
#include "engine/formats/files/byte_reader.h"
#include "engine/formats/files/crc32c.h"
#include "tests/engine/formats/checkpoint_writer.h"
#include "tests/support/status_matchers.h"

namespace optfarm::formats {
namespace {

using ::optfarm::testing::IsOk;
using ::optfarm::testing::StatusIs;
using ::optfarm::testing::TableBytes;
using ::optfarm::testing::TableOptions;
using ::testing::HasSubstr;

using Entries = std::map<std::string, std::string>;

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;

absl::StatusOr<Entries> ReadAll(const std::string& bytes) {
  auto table = TableFile::Open(RandomAccessFile::FromBytes(bytes, "t.index"));
  if (!table.ok()) return table.status();
  Entries entries;
  const absl::Status status =
      (*table)->ForEach([&](absl::string_view key, absl::string_view value) {
        entries.emplace(key, value);
        return absl::OkStatus();
      });
  if (!status.ok()) return status;
  return entries;
}

Entries ManyEntries(int count) {
  Entries entries = {{"", "header"}};
  for (int i = 0; i < count; ++i) {
    entries[absl::StrFormat("layer/%04d/weights", i)] =
        std::string(i % 50, static_cast<char>('a' + i % 26));
  }
  return entries;
}

// A block with its trailer.
std::string Block(const std::string& content, char type) {
  std::string bytes = content + type;
  const uint32_t crc = MaskCrc(Crc32c(bytes));
  bytes.append(reinterpret_cast<const char*>(&crc), 4);
  return bytes;
}

// A block's content with one restart point.
std::string Content(const std::string& entries) {
  return entries + std::string("\0\0\0\0\1\0\0\0", 8);
}

// A table whose one block is given; the numbers stay below 128.
std::string TableAround(const std::string& block, char type) {
  std::string file = Block(block, type);
  const std::string handle = {'\0', static_cast<char>(block.size())};
  const auto index_at = static_cast<char>(file.size());
  // Key "z", not shared, 1 byte, value of 2 bytes.
  const std::string index = Content(std::string("\0\1\2z", 4) + handle);
  file += Block(index, 0);
  std::string footer = {'\0', '\0', index_at, static_cast<char>(index.size())};
  footer.resize(40);
  return file + footer + "\x57\xfb\x80\x8b\x24\x75\x47\xdb";
}

TEST(Crc32cTest, HasTheValuesOfTheStandard) {
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(Crc32c(""), 0u);
  EXPECT_EQ(UnmaskCrc(MaskCrc(0x12345678u)), 0x12345678u);
}

TEST(Crc32cTest, IsTheSameWithAndWithoutTheInstruction) {
  std::mt19937 random(1);
  for (int size = 0; size < 100; ++size) {
    std::string bytes;
    for (int i = 0; i < size; ++i) bytes += static_cast<char>(random());
    boost::crc_optimal<32, 0x1edc6f41, 0xffffffff, 0xffffffff, true, true>
        other;
    other.process_bytes(bytes.data(), bytes.size());
    EXPECT_EQ(Crc32c(bytes), other.checksum());
    EXPECT_EQ(ExtendCrc32cByTable(0, bytes), other.checksum());
    EXPECT_EQ(
        ExtendCrc32c(Crc32c(bytes.substr(0, size / 3)), bytes.substr(size / 3)),
        other.checksum());
  }
}

TEST(TableFileTest, ReadsWhatLevelDbWrote) {
  for (const bool snappy : {false, true}) {
    for (const size_t block_size : {64, 1024, 262144}) {
      for (const int count : {0, 1, 16, 17, 500}) {
        const Entries entries = ManyEntries(count);
        const TableOptions options{snappy, block_size};
        OPTFARM_ASSERT_OK_AND_ASSIGN(const Entries read,
                                     ReadAll(TableBytes(entries, options)));
        EXPECT_EQ(read, entries);
      }
    }
  }
}

TEST(TableFileTest, FindsEachKeyAndNoOther) {
  const Entries entries = ManyEntries(300);
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto table,
      TableFile::Open(RandomAccessFile::FromBytes(
          TableBytes(entries, {.snappy = true, .block_size = 256}), "t")));
  for (const auto& [key, value] : entries) {
    EXPECT_EQ(*table->Find(key), value) << key;
    EXPECT_EQ(*table->Find(key + "x"), std::nullopt);
  }
  EXPECT_EQ(*table->Find("zzz"), std::nullopt);
}

TEST(TableFileTest, RefusesWhatIsNoTable) {
  EXPECT_THAT(ReadAll("short"),
              StatusIs(kDataLoss, HasSubstr("too short to be an sstable")));
  EXPECT_THAT(ReadAll(std::string(100, 'x')),
              StatusIs(kDataLoss, HasSubstr("bad magic number")));
}

TEST(TableFileTest, EveryFlippedByteIsAnErrorOrDoesNotMatter) {
  const Entries entries = ManyEntries(20);
  for (const bool snappy : {false, true}) {
    const std::string bytes = TableBytes(entries, {snappy, 128});
    for (size_t at = 0; at < bytes.size(); ++at) {
      for (const char flip : {'\x01', '\x80', '\xff'}) {
        std::string damaged = bytes;
        damaged[at] = static_cast<char>(damaged[at] ^ flip);
        const auto read = ReadAll(damaged);
        if (read.ok()) {
          EXPECT_EQ(*read, entries) << "byte " << at;
        } else {
          EXPECT_THAT(read, StatusIs(kDataLoss, HasSubstr("t.index")));
        }
      }
    }
  }
}

TEST(TableFileTest, EveryCutIsAnError) {
  const std::string bytes = TableBytes(ManyEntries(20));
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THAT(ReadAll(bytes.substr(0, size)),
                StatusIs(kDataLoss, HasSubstr("t.index")));
  }
}

TEST(TableFileTest, RefusesBlocksThatAreWrongUnderTheirChecksum) {
  const std::string one = std::string("\0\1\1ab", 5);
  EXPECT_THAT(ReadAll(TableAround(Content(one), 0)), IsOk());
  const struct {
    std::string block;
    char type;
    const char* says;
  } kCases[] = {
      {Content(one), 2, "bad block type"},
      {"not snappy at all", 1, "corrupted compressed block"},
      // 2^31 - 1 bytes out of seven.
      {std::string("\xff\xff\xff\xff\x07\x00q", 7), 1,
       "corrupted compressed block"},
      {"\1\1", 0, "restart points"},
      {std::string("\0\0\0\0\xff\xff\xff\x0f", 8), 0, "restart points"},
      // The first key shares a byte with a key before it.
      {Content(std::string("\1\1\1ab", 5)), 0, "cut off"},
      {Content(std::string("\0\x7f\1ab", 5)), 0, "cut off"},
      {Content(std::string("\0\1\x7f"
                           "ab",
                           5)),
       0, "cut off"},
      {Content(one + one), 0, "do not rise"},
      {Content(std::string("\0\1\1bx\0\1\1ax", 10)), 0, "do not rise"},
      {Content(std::string("\0\2\1zzx", 6)), 0, "index disagree"},
  };
  for (const auto& test : kCases) {
    EXPECT_THAT(ReadAll(TableAround(test.block, test.type)),
                StatusIs(kDataLoss, HasSubstr(test.says)));
  }
}

TEST(TableFileTest, DoesNotUnpackMoreThanSnappyCanHold) {
  std::string packed;
  const std::string zeros(100000, '\0');
  snappy::Compress(zeros.data(), zeros.size(), &packed);
  // The densest that there is passes the check and fails as a block.
  EXPECT_LT(packed.size() * 22, zeros.size() * 2);
  EXPECT_GT(packed.size() * 22, zeros.size());
}

TEST(TableFileTest, HandsTheVisitorsErrorOn) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto table,
                               TableFile::Open(RandomAccessFile::FromBytes(
                                   TableBytes(ManyEntries(5)), "t")));
  int calls = 0;
  EXPECT_THAT(table->ForEach([&](absl::string_view, absl::string_view) {
    return ++calls == 3 ? absl::CancelledError("enough") : absl::OkStatus();
  }),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("enough")));
  EXPECT_EQ(calls, 3);
}

TEST(ByteReaderTest, RefusesVarintsThatAreTooLong) {
  uint64_t value = 0;
  ByteReader most("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
  EXPECT_TRUE(most.TakeVarint64(&value));
  EXPECT_EQ(value, UINT64_MAX);
  ByteReader above("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02");
  EXPECT_FALSE(above.TakeVarint64(&value));
  EXPECT_EQ(above.rest().size(), 10u);
  uint32_t small = 0;
  ByteReader wide("\xff\xff\xff\xff\x1f");
  EXPECT_FALSE(wide.TakeVarint32(&small));
  ByteReader cut("\xff\xff");
  EXPECT_FALSE(cut.TakeVarint64(&value));
}

}  // namespace
}  // namespace optfarm::formats
