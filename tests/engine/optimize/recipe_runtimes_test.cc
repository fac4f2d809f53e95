// README's table of which runtimes run what each recipe makes, from running
// every recipe. OPTFARM_UPDATE_DOCS=1 writes it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "engine/export/runtime_support.h"
#include "engine/optimize/optimize_job.h"
#include "engine/optimize/recipes/recipes.h"
#include "tests/engine/optimize/small_model.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::optimize {
namespace {

using ::optfarm::testing::FreshFolder;
using ::optfarm::testing::SourcePath;

absl::StatusOr<v1::Report> RunRecipe(const std::string& recipe) {
  OptimizeRequest request;
  request.model_path =
      testing::WriteModel(testing::SmallModel(), FreshFolder());
  request.recipe = *BuiltInRecipe(recipe);
  const std::string data = testing::WriteSamples(12, FreshFolder());
  request.data.AddInput("input", JoinPath(data, "x.npy"));
  request.out_folder = FreshFolder();
  request.tool_version = "test";
  return RunOptimize(request, nullptr);
}

constexpr char kBegin[] = "<!-- recipes and runtimes: begin -->\n";
constexpr char kEnd[] = "<!-- recipes and runtimes: end -->";

void CheckOrUpdateReadme(const std::string& table) {
  const std::string path = SourcePath("README.md");
  OPTFARM_ASSERT_OK_AND_ASSIGN(const std::string page, ReadFile(path));
  const size_t begin = page.find(kBegin);
  const size_t end = page.find(kEnd);
  ASSERT_NE(begin, std::string::npos);
  ASSERT_NE(end, std::string::npos);
  const std::string wanted =
      absl::StrCat(page.substr(0, begin), kBegin, table, page.substr(end));
  if (std::getenv("OPTFARM_UPDATE_DOCS") != nullptr) {
    ASSERT_TRUE(WriteFileAtomically(path, wanted).ok());
    return;
  }
  EXPECT_EQ(page, wanted) << "OPTFARM_UPDATE_DOCS=1 writes it anew";
}

TEST(RecipeRuntimesTest, ReadmeHasTheTableAndAdviceHolds) {
  std::string table = "| recipe |";
  std::string line = "\n|---|";
  for (const auto& target : exporting::RuntimeTargets()) {
    absl::StrAppend(&table, " ", target.title, " |");
    absl::StrAppend(&line, "---|");
  }
  absl::StrAppend(&table, line, "\n");
  std::map<std::string, std::map<std::string, bool>> runs;
  for (const std::string& name : BuiltInRecipeNames()) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report report, RunRecipe(name));
    ASSERT_EQ(static_cast<size_t>(report.runtimes_size()),
              exporting::RuntimeTargets().size());
    absl::StrAppend(&table, "| `", name, "` |");
    for (const v1::RuntimeSupport& runtime : report.runtimes()) {
      runs[name][runtime.runtime()] = runtime.runs();
      EXPECT_EQ(runtime.runs(), runtime.problems().empty());
      EXPECT_NE(runtime.recipe(), name);
      absl::StrAppend(&table, " ",
                      runtime.runs() ? "yes"
                      : runtime.recipe().empty()
                          ? "no"
                          : absl::StrCat("no: `", runtime.recipe(), "`"),
                      " |");
    }
    absl::StrAppend(&table, "\n");
    EXPECT_TRUE(runs[name]["optfarm"]) << name;
  }
  // The recipe that is named in place of another works there.
  for (const auto& target : exporting::RuntimeTargets()) {
    EXPECT_TRUE(runs[target.recipe][target.name]) << target.name;
  }
  CheckOrUpdateReadme(table);
}

}  // namespace
}  // namespace optfarm::optimize
