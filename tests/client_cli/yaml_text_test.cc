// JSON and the YAML that it becomes.

#include "client_cli/tables/yaml_text.h"

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace optfarm::client_cli {
namespace {

TEST(YamlTextTest, ObjectsListsAndScalars) {
  EXPECT_EQ(JsonToYaml(R"({"a": 1, "b": [1.5, "x", {"c": null, "d": []}],
                           "e": {}, "f": {"g": true}})"),
            "a: 1\n"
            "b:\n"
            "  - 1.5\n"
            "  - x\n"
            "  - c: null\n"
            "    d: []\n"
            "e: {}\n"
            "f:\n"
            "  g: true\n");
  EXPECT_EQ(JsonToYaml("[[1, 2], []]"), "- - 1\n  - 2\n- []\n");
}

TEST(YamlTextTest, TextsThatYamlReadsOtherwiseAreQuoted) {
  for (const std::string& text : std::vector<std::string>{
           "true", "No", "1e3", "0x1F", "a: b", "- a", "", " a", "a #b", "null",
           "é\n\"x\"", "*a", "nan", "NaN", "Infinity", "~"}) {
    const bool has_quotes = text == "é\n\"x\"";
    const auto yaml = JsonToYaml(
        absl::StrCat("{\"k\": \"", has_quotes ? "é\\n\\\"x\\\"" : text, "\"}"));
    ASSERT_TRUE(yaml.has_value()) << text;
    EXPECT_EQ(YAML::Load(*yaml)["k"].as<std::string>(), text) << *yaml;
    EXPECT_NE(yaml->find('"'), std::string::npos) << *yaml;
  }
}

TEST(YamlTextTest, LinesOfJsonAreDocuments) {
  EXPECT_EQ(JsonToYaml("{\"a\": 1}\n{\"a\": 2}\n"), "a: 1\n---\na: 2\n");
}

TEST(YamlTextTest, OtherTextIsRefused) {
  EXPECT_FALSE(JsonToYaml("Job j1 is QUEUED.\n").has_value());
  const std::string deep =
      absl::StrCat(std::string(300, '['), "1", std::string(300, ']'));
  EXPECT_FALSE(JsonToYaml(deep).has_value());
}

}  // namespace
}  // namespace optfarm::client_cli
