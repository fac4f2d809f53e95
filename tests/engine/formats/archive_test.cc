#include "engine/formats/files/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/files.h"
#include "engine/formats/tensorflow/file_kind.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::formats {
namespace {

using ::optfarm::testing::FreshFolder;
using ::optfarm::testing::IsOk;
using ::optfarm::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

struct Item {
  std::string path;
  std::string bytes = {};
  // What it is besides a plain file: a link's target, or another type.
  std::string link = {};
  unsigned type = AE_IFREG;
};

enum class Form { kZip, kTar, kTarGz };

std::string WriteArchive(const std::vector<Item>& items,
                         Form form = Form::kTar) {
  const std::string path = JoinPath(FreshFolder(), "model.archive");
  struct archive* out = archive_write_new();
  if (form == Form::kZip) {
    archive_write_set_format_zip(out);
  } else {
    archive_write_set_format_pax_restricted(out);
  }
  if (form == Form::kTarGz) archive_write_add_filter_gzip(out);
  EXPECT_EQ(archive_write_open_filename(out, path.c_str()), ARCHIVE_OK);
  for (const Item& item : items) {
    struct archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, item.path.c_str());
    archive_entry_set_filetype(entry, item.type);
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_size(entry, static_cast<int64_t>(item.bytes.size()));
    if (item.type == AE_IFLNK) {
      archive_entry_set_symlink(entry, item.link.c_str());
    } else if (!item.link.empty()) {
      archive_entry_set_hardlink(entry, item.link.c_str());
    }
    EXPECT_EQ(archive_write_header(out, entry), ARCHIVE_OK) << item.path;
    archive_write_data(out, item.bytes.data(), item.bytes.size());
    archive_entry_free(entry);
  }
  EXPECT_EQ(archive_write_close(out), ARCHIVE_OK);
  archive_write_free(out);
  return path;
}

absl::Status Unpack(const std::vector<Item>& items,
                    const ArchiveLimits& limits = {}) {
  return UnpackArchive(WriteArchive(items), FreshFolder(), limits);
}

TEST(ArchiveTest, UnpacksEachForm) {
  for (const Form form : {Form::kZip, Form::kTar, Form::kTarGz}) {
    const std::string path =
        WriteArchive({{"./m/saved_model.pb", "graph"},
                      {"m/variables/variables.index", std::string(70000, 'x')}},
                     form);
    const FileKind kind = IdentifyBytes(*ReadFile(path));
    EXPECT_EQ(kind, form == Form::kZip   ? FileKind::kZip
                    : form == Form::kTar ? FileKind::kTar
                                         : FileKind::kGzip);
    const std::string folder = FreshFolder();
    ASSERT_THAT(UnpackArchive(path, folder), IsOk());
    EXPECT_EQ(*ReadFile(JoinPath(folder, "m/saved_model.pb")), "graph");
    EXPECT_EQ(*FileSize(JoinPath(folder, "m/variables/variables.index")),
              70000u);
  }
}

TEST(ArchiveTest, NothingLeavesTheFolder) {
  for (const char* name : {"../out", "a/../../out", "a/..", ".."}) {
    EXPECT_THAT(Unpack({{name, "x"}}),
                StatusIs(kInvalid, HasSubstr("leaves the folder")))
        << name;
  }
  EXPECT_THAT(Unpack({{"/tmp/out", "x"}}),
              StatusIs(kInvalid, HasSubstr("absolute path")));
}

TEST(ArchiveTest, RefusesLinksAndDevices) {
  EXPECT_THAT(Unpack({{"a", "", "/etc/passwd", AE_IFLNK}}),
              StatusIs(kInvalid, HasSubstr("is a link")));
  EXPECT_THAT(Unpack({{"f", "x"}, {"a", "", "f"}}),
              StatusIs(kInvalid, HasSubstr("is a link")));
  EXPECT_THAT(Unpack({{"a", "", "", AE_IFIFO}}),
              StatusIs(kInvalid, HasSubstr("neither a file nor a folder")));
}

TEST(ArchiveTest, RefusesEntriesThatAreThereTwice) {
  EXPECT_THAT(Unpack({{"a", "x"}, {"./a", "y"}}),
              StatusIs(kInvalid, HasSubstr("is there twice")));
}

TEST(ArchiveTest, KeepsItsLimits) {
  const auto kExhausted = absl::StatusCode::kResourceExhausted;
  EXPECT_THAT(Unpack({{"a", "x"}, {"b", "x"}}, {.entries = 1}),
              StatusIs(kExhausted, HasSubstr("more than 1 entries")));
  EXPECT_THAT(
      Unpack({{"a", std::string(500, 'x')}, {"b", std::string(500, 'x')}},
             {.bytes = 999}),
      StatusIs(kExhausted, HasSubstr("more than 999 bytes")));
  std::string deep;
  for (int i = 0; i < 40; ++i) deep += "d/";
  EXPECT_THAT(Unpack({{deep + "f", "x"}}),
              StatusIs(kInvalid, HasSubstr("too deep")));
}

TEST(ArchiveTest, DamagedArchivesAreErrors) {
  const std::string whole = *ReadFile(
      WriteArchive({{"m/saved_model.pb", std::string(3000, 'g')}}, Form::kZip));
  const std::string path = JoinPath(FreshFolder(), "cut");
  for (size_t size = 0; size < whole.size(); size += 7) {
    ASSERT_THAT(WriteFileAtomically(path, whole.substr(0, size)), IsOk());
    const absl::Status status = UnpackArchive(path, FreshFolder());
    if (!status.ok()) {
      EXPECT_THAT(status, StatusIs(kInvalid, HasSubstr("cut")));
    }
  }
  ASSERT_THAT(WriteFileAtomically(path, "no archive at all"), IsOk());
  EXPECT_THAT(UnpackArchive(path, FreshFolder()),
              StatusIs(kInvalid, HasSubstr("cannot be unpacked")));
}

}  // namespace
}  // namespace optfarm::formats
