// docs/transforms.md is printed from the catalog and never written by hand:
// this test compares the two, and writes the page where OPTFARM_UPDATE_DOCS is
// set.

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/files.h"
#include "engine/transforms/machinery/catalog.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::transforms {
namespace {

constexpr char kOpening[] =
    "# Transforms\n\n"
    "Every transform for recipes and `optctl graph transform`, with its "
    "parameters. This page is printed\n"
    "from the catalog (`engine/transforms/machinery/catalog.h`) by\n"
    "`OPTFARM_UPDATE_DOCS=1 build/dev/bin/engine_transforms_test "
    "--gtest_filter='TransformsPage*'`.\n\n"
    "In a recipe: `- round_weights: {num_steps: 256}`. In TensorFlow's "
    "grammar, on the command line and\n"
    "in `transform_string`: `round_weights(num_steps=256)`.\n\n"
    "Every transform also takes `ignore_errors` (default false): if it fails, "
    "continue with the unchanged\n"
    "graph.\n";

// Text for a cell of a table.
std::string CellText(const std::string& text) {
  return absl::StrReplaceAll(text, {{"|", "\\|"}});
}

std::string ParameterRow(const ParameterDef& parameter) {
  const std::string value =
      parameter.default_value.empty()
          ? "–"
          : absl::StrCat("`", parameter.default_value, "`");
  return absl::StrCat(
      "| `", parameter.name, "` | ", ParameterTypeName(parameter.type), " | ",
      parameter.required ? "required" : CellText(value), " | ",
      CellText(parameter.help),
      parameter.repeated ? " May be given several times." : "", " |\n");
}

std::string PrintPage() {
  std::string page = kOpening;
  for (const TransformDef& def : AllTransforms()) {
    absl::StrAppend(&page, "\n## ", def.name, "\n\n", def.summary, "\n");
    std::string rows;
    for (const ParameterDef& parameter : def.parameters) {
      if (parameter.name == "ignore_errors") continue;
      absl::StrAppend(&rows, ParameterRow(parameter));
    }
    if (rows.empty()) continue;
    absl::StrAppend(&page, "\n| parameter | type | default | meaning |\n",
                    "|---|---|---|---|\n", rows);
  }
  return page;
}

TEST(TransformsPageTest, SaysWhatTheCatalogSays) {
  const std::string path = testing::SourcePath("docs/transforms.md");
  const std::string page = PrintPage();
  if (std::getenv("OPTFARM_UPDATE_DOCS") != nullptr) {
    OPTFARM_ASSERT_OK(WriteFileAtomically(path, page));
  }
  OPTFARM_ASSERT_OK_AND_ASSIGN(const std::string written, ReadFile(path));
  EXPECT_TRUE(written == page)
      << "docs/transforms.md is old; its first lines say how to print it";
}

}  // namespace
}  // namespace optfarm::transforms
