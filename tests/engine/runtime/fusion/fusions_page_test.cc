// docs/fusions.md is printed from the catalog of fusions and never written by
// hand. This test compares the two, and writes the page where
// OPTFARM_UPDATE_DOCS is set.

#ifdef OPTFARM_FAST_KERNELS
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "engine/runtime/fusion/fusions.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::runtime {
namespace {

constexpr char kOpening[] =
    "# Fusions\n\n"
    "A fusion replaces a pattern of steps by one step with a faster kernel, "
    "when a session is made. Nodes that\n"
    "are fetched, or that others read, stay. Results differ from the "
    "reference kernels' by rounding at most.\n\n"
    "- `optctl graph benchmark --explain` lists which fusions took which "
    "nodes of a graph.\n"
    "- `OPTFARM_WITHOUT=join,pool` in the environment leaves fusions out.\n"
    "- `SessionOptions::fast_kernels = false` leaves all of them out.\n\n"
    "They run in this order; in a pattern, [] may be missing. [Adding a "
    "fusion](adding-a-fusion.md) shows how\n"
    "one is added. This page is printed from the catalog by\n"
    "`OPTFARM_UPDATE_DOCS=1 build/dev/bin/engine_runtime_test "
    "--gtest_filter='FusionsPage*'`.\n\n"
    "| name | pattern | replacement |\n|---|---|---|\n";

std::string Page() {
  std::string page = kOpening;
  for (const Fusion* fusion : AllFusions()) {
    absl::StrAppend(&page, "| `", fusion->name, "` | ", fusion->pattern, " | ",
                    fusion->replacement, " |\n");
  }
  return page;
}

TEST(FusionsPageTest, DocsAreThoseOfTheCatalog) {
  const std::string path = testing::SourcePath("docs/fusions.md");
  if (std::getenv("OPTFARM_UPDATE_DOCS") != nullptr) {
    OPTFARM_ASSERT_OK(WriteFileAtomically(path, Page()));
  }
  OPTFARM_ASSERT_OK_AND_ASSIGN(const std::string docs, ReadFile(path));
  EXPECT_EQ(docs, Page()) << "run this test with OPTFARM_UPDATE_DOCS=1";
}

TEST(FusionsPageTest, EachFusionHasANameOfItsOwn) {
  for (const Fusion* fusion : AllFusions()) {
    int times = 0;
    for (const Fusion* other : AllFusions()) {
      times += fusion->name == other->name ? 1 : 0;
    }
    EXPECT_EQ(times, 1) << fusion->name;
    EXPECT_NE(fusion->run, nullptr) << fusion->name;
  }
}

TEST(FusionLimitTest, LeavesOneFusionOut) {
  const size_t all = UsedFusions().size();
  for (const Fusion* fusion : AllFusions()) {
    const FusionLimit limit(fusion->name);
    EXPECT_EQ(UsedFusions().size(), all - 1);
    EXPECT_THAT(UsedFusions(), ::testing::Not(::testing::Contains(fusion)));
  }
  const FusionLimit limit("no such fusion");
  EXPECT_EQ(UsedFusions().size(), all);
}

}  // namespace
}  // namespace optfarm::runtime
#endif  // OPTFARM_FAST_KERNELS
