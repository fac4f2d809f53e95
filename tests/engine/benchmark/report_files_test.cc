#include "engine/benchmark/report_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/files.h"
#include "tensorflow/core/util/test_log.pb.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::benchmark {
namespace {

using ::optfarm::testing::FreshFolder;
using ::optfarm::testing::StatusIs;
using ::testing::HasSubstr;

tensorflow::BenchmarkEntry Read(const std::string& path) {
  tensorflow::BenchmarkEntries entries;
  const auto bytes = ReadFile(path);
  EXPECT_TRUE(bytes.ok()) << path;
  if (!bytes.ok()) return {};
  EXPECT_TRUE(entries.ParseFromString(*bytes));
  EXPECT_EQ(entries.entry_size(), 1);
  return entries.entry(0);
}

TEST(ReportFilesTest, OneFileForEachPart) {
  const std::string prefix = JoinPath(FreshFolder(), "out.");
  OPTFARM_ASSERT_OK(WriteReportFiles(
      prefix, "nets/small", {{"", 4, 2.0, 12.5}, {"Conv2D", 4, 1.0, -1}}));
  const auto whole = Read(prefix + "nets__small");
  EXPECT_EQ(whole.name(), "nets/small");
  EXPECT_EQ(whole.iters(), 4);
  EXPECT_EQ(whole.cpu_time(), -0.25);
  EXPECT_EQ(whole.wall_time(), 0.5);
  EXPECT_EQ(whole.throughput(), 12.5);
  const auto part = Read(prefix + "nets__small_Conv2D");
  EXPECT_EQ(part.name(), "nets/small_Conv2D");
  EXPECT_EQ(part.wall_time(), 0.25);
  EXPECT_EQ(part.throughput(), -1);
}

TEST(ReportFilesTest, FieldsAreTensorFlowsOnTheWire) {
  const std::string prefix = JoinPath(FreshFolder(), "");
  OPTFARM_ASSERT_OK(WriteReportFiles(prefix, "n", {{"", 1, 1.0, -1}}));
  const auto bytes = ReadFile(prefix + "n");
  OPTFARM_ASSERT_OK(bytes);
  // entry {1: "n"  2: 1  3: -1.0  4: 1.0  5: -1.0}
  EXPECT_EQ(*bytes, std::string("\x0A\x20\x0A\x01n\x10\x01"
                                "\x19\0\0\0\0\0\0\xF0\xBF"
                                "\x21\0\0\0\0\0\0\xF0\x3F"
                                "\x29\0\0\0\0\0\0\xF0\xBF",
                                34));
}

TEST(ReportFilesTest, ExistingFileIsAnErrorBeforeAnyIsWritten) {
  const std::string prefix = JoinPath(FreshFolder(), "");
  OPTFARM_ASSERT_OK(WriteFileAtomically(prefix + "n_meta-init", "mine"));
  EXPECT_THAT(
      WriteReportFiles(prefix, "n", {{"", 1, 1}, {"meta-init", 1, 1}}),
      StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("n_meta-init")));
  EXPECT_FALSE(Exists(prefix + "n"));
}

}  // namespace
}  // namespace optfarm::benchmark
